# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""Spans until stdin ends, 200,000 at the most. The span id of each that the collector has acknowledged is a line of the file ACKNOWLEDGED;
how many were not is printed at the end: failed, those that the exporter gave up; dropped, those that the SDK's queue had no room for."""

import os
import sys
import threading
import time

import witness
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter


class Counting(SpanExporter):
    def __init__(self):
        self._otlp = OTLPSpanExporter()
        self._file = open(os.environ["ACKNOWLEDGED"], "w", buffering=1)
        self.acknowledged = self.failed = 0

    def export(self, spans):
        result = self._otlp.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.acknowledged += len(spans)
            self._file.write("".join(f"{s.context.span_id:016x}\n" for s in spans))
        else:
            self.failed += len(spans)
        return result

    def shutdown(self):
        self._otlp.shutdown()


exporter = Counting()
telemetry = witness.start(span_exporter=exporter)
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
made = 0
while made < 200_000 and not ended.is_set():
    telemetry.tracer.start_span("step", attributes={"n": made}).end()
    made += 1
    if made % 10 == 0:
        time.sleep(0.005)
telemetry.shutdown()
dropped = made - exporter.acknowledged - exporter.failed
print(f'{{"made": {made}, "acknowledged": {exporter.acknowledged}, "failed": {exporter.failed}, "dropped": {dropped}}}')
