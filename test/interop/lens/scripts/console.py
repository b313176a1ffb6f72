# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""Every kind of telemetry, printed by Lens's console exporter and sent by OTLP beside it: the same objects, in the same order."""

import logging

from opentelemetry import trace
from opentelemetry._logs import get_logger_provider
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode

import witness
from nemo.lens import create_linked_span, managed_span
from nemo.lens.instruments.inference import record_inference_metrics
from nemo.lens.instruments.rl import record_rl_metrics
from nemo.lens.logging_bridge import setup_logging_bridge


class Both(ConsoleMetricExporter):
    def __init__(self):
        super().__init__()
        self._otlp = OTLPMetricExporter()

    def export(self, metrics_data, *args, **kwargs):
        super().export(metrics_data, *args, **kwargs)
        return self._otlp.export(metrics_data, *args, **kwargs)


telemetry = witness.start(metric_reader=PeriodicExportingMetricReader(Both(), export_interval_millis=3_600_000))
trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
get_logger_provider().add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
setup_logging_bridge("trainer", logging.DEBUG)
log = logging.getLogger("trainer")
log.setLevel(logging.DEBUG)
tracer, meter = telemetry.tracer, telemetry.meter

values = {
    "text": 'tïny "quoted" \\ \t\u2028 😀 \x00',
    "numbers": [0, -1, 2**63 - 1, -(2**63)],
    "doubles": [0.1, 1e-7, 1e16, 123456789.0, -0.0],
    "yes": True,
    "mixed.case": ["a", "b"],
    "empty": [],
}
for key, value in list(values.items()):
    with managed_span("step", f"attribute {key}", tracer) as span:
        span.set_attribute(key, value)
for kind in SpanKind:
    tracer.start_span(f"kind {kind.name}", kind=kind).end()
try:
    with managed_span("step", "fails", tracer):
        log.error("about to fail", extra={"step": 3, "who": "rank 0"})
        raise ValueError("lost:\nall of it")
except ValueError:
    log.exception("failed")
with tracer.start_as_current_span("done") as done:
    done.add_event("checkpoint", {"path": "/ckpt/3", "bytes": 12})
    done.add_event("bare")
    done.set_status(Status(StatusCode.OK))
carrier = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
create_linked_span(tracer, "linked", remote_carrier=carrier, stage=1).end()
carrier["tracestate"] = "vendor=a:b"
create_linked_span(tracer, "linked with a trace state", remote_carrier=carrier).end()

log.debug("no span around it")
log.info({"a": 1, "b": [1.5, "x"]})
record_rl_metrics(meter, reward_mean=0.5, policy_loss=-0.25, generation_duration_ms=12.5, rollout_duration_ms=1e6)
record_inference_metrics(meter, request_duration_s=0.25, model="tiny", input_tokens=128, output_tokens=7)
meter.create_counter("steps", "1", "Steps done.").add(3, {"kind": "train"})
meter.create_up_down_counter("queue").add(-2.5)
telemetry.shutdown()
