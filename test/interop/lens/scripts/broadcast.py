# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of torch.distributed (gloo, RANK, WORLD_SIZE and MASTER_PORT of the environment): rank 0 broadcasts the context of its span, below
which all ranks span. A span of rank 1 links to what a pipeline stage before it handed over."""

import os

import torch
import torch.distributed as dist

import witness
from nemo.lens import broadcast_trace_context, create_linked_span, extract_context, managed_span
from opentelemetry import context

rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
os.environ["MASTER_ADDR"] = "127.0.0.1"
dist.init_process_group("gloo", rank=rank, world_size=world_size)
telemetry = witness.start()

with managed_span("job", "job", telemetry.tracer) if rank == 0 else managed_span("none", "none"):
    carrier = broadcast_trace_context(rank)
    token = context.attach(extract_context(carrier))
    for step in range(2):
        with managed_span("step", "step", telemetry.tracer, **{"megatron.iteration": step}) as span:
            loss = torch.tensor([float(rank)])
            dist.all_reduce(loss)
            span.set_attribute("loss", loss.item())
    if rank == 1:
        create_linked_span(telemetry.tracer, "recv_forward", remote_carrier=carrier, stage=1).end()
    context.detach(token)
dist.barrier()
telemetry.shutdown()
dist.destroy_process_group()
