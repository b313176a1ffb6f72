# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""A small job as Lens's quickstart has it: three steps, a checkpoint, metrics and log records.

With OTLP=json, traces go as OTLP/JSON: Lens has no exporter for that, and takes one.
"""

import logging
import os

import witness
from nemo.lens import managed_span, trace_fn
from nemo.lens.instruments.rl import record_rl_metrics
from nemo.lens.logging_bridge import setup_logging_bridge

more = {}
if os.environ.get("OTLP") == "json":
    from opentelemetry.exporter.otlp.json.http.trace_exporter import OTLPSpanExporter

    more["span_exporter"] = OTLPSpanExporter()
telemetry = witness.start(**more)
setup_logging_bridge("trainer")
log = logging.getLogger("trainer")
log.setLevel(logging.INFO)


@trace_fn("optimizer", "optimizer")
def optimize():
    pass


with managed_span("job", "train", telemetry.tracer, model="tïny", prompt="a secret") as job:
    log.info("training starts")
    for step in range(3):
        with managed_span("step", "step", telemetry.tracer, **{"megatron.iteration": step, "loss": 1.0 / (step + 1)}) as span:
            with managed_span("forward_backward", "forward_backward", telemetry.tracer, num_microbatches=4):
                pass
            optimize()
            span.set_attribute("shape", [step, 128])
        record_rl_metrics(telemetry.meter, reward_mean=step / 2, generation_duration_ms=100.0 * (step + 1))
        log.info("step %d done", step)
    with managed_span("layer", "a group that is not on", telemetry.tracer) as none:
        assert none is None
    with managed_span("checkpoint", "save_checkpoint", telemetry.tracer, path="/ckpt/3"):
        pass
    log.warning("training ends")
telemetry.shutdown()
