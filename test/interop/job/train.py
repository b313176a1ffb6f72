# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of a small job: it sends what Megatron-LM sends through NeMo Lens, and sleeps where that would train.

    srun rank.sh python train.py [slow=RANK] [failing=RANK]

It trains until there is a file `stop` in the working directory. The ids of spans whose export was acknowledged stand in
`acknowledged-RANK`, a line each, once a batch is on disk.
"""

import os
import pathlib
import sys
import time

from nemo.lens import NemoLensConfig, SpanGroup, create_linked_span, inject_context, managed_span, setup_telemetry
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import use_span

rank, world_size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
role = dict(argument.split("=") for argument in sys.argv[1:])
pace = 0.6 if role.get("slow") == str(rank) else 0.2  # seconds a step
save_interval = 40
books = open(f"acknowledged-{rank}", "w")
export = OTLPSpanExporter.export


def export_and_note(self, spans):
    result = export(self, spans)
    if result is SpanExportResult.SUCCESS:
        books.writelines(f"{span.context.span_id:016x}\n" for span in spans)
        books.flush()
        os.fsync(books.fileno())
    return result


OTLPSpanExporter.export = export_and_note
handle = setup_telemetry(NemoLensConfig.from_env("MEGATRON_OTEL", "NEMO_LENS"), rank, world_size)
tracer, meter = handle.tracer, handle.meter
step_duration = meter.create_histogram("megatron.training.step_duration_ms", "ms")
loss = meter.create_gauge("megatron.training.loss")


def train_step(iteration):
    with managed_span(SpanGroup.STEP, "megatron.train.iteration", tracer, **{"megatron.iteration": iteration, "megatron.skipped": False}):
        with managed_span(SpanGroup.FORWARD_BACKWARD, "megatron.train.iteration.forward_backward", tracer, num_microbatches=8):
            time.sleep(pace * 0.8)
            if role.get("failing") == str(rank) and iteration == 7:
                raise ValueError(f"loss is NaN at iteration {iteration}")
        with managed_span(SpanGroup.OPTIMIZER, "megatron.train.iteration.optimizer", tracer, **{"megatron.update_successful": True}):
            time.sleep(pace * 0.2)


with managed_span(SpanGroup.JOB, "megatron.startup", tracer):
    with managed_span(SpanGroup.MODEL_INIT, "megatron.startup.model_init", tracer):
        time.sleep(0.1)

iteration, previous = 0, None
while not pathlib.Path("stop").exists():
    # A root for each save interval, linked to the one before.
    train = create_linked_span(tracer, "megatron.train", remote_carrier=previous)
    with use_span(train, end_on_exit=True):
        inject_context(previous := {})
        while not pathlib.Path("stop").exists():
            iteration += 1
            began = time.monotonic()
            try:
                train_step(iteration)
            except ValueError:
                pass  # The next batch is a better one.
            step_duration.record((time.monotonic() - began) * 1000)
            loss.set(10 / iteration)
            if iteration % save_interval == 0:
                with managed_span(SpanGroup.CHECKPOINT, "megatron.checkpoint.exposed_save", tracer, **{"megatron.iteration": iteration}):
                    time.sleep(0.1)
                break
handle.shutdown(60_000)
