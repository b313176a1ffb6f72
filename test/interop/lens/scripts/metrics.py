# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""Instruments under the reader that READER names: Lens's own, one of the caller that sends OTLP/JSON, or one that is only read in the process.
It records, and stays until stdin ends; then it records once more and shuts down."""

import os
import sys

import witness
from nemo.lens.instruments.rl import record_rl_metrics
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, PeriodicExportingMetricReader

reader = None
match os.environ["READER"]:
    case "json":
        from opentelemetry.exporter.otlp.json.http.metric_exporter import OTLPMetricExporter

        reader = PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=100)
    case "memory":
        reader = InMemoryMetricReader()
telemetry = witness.start(metric_reader=reader)
meter = telemetry.meter
tokens = meter.create_counter("tokens", "{token}", "Tokens seen.")
queue = meter.create_up_down_counter("queue")
meter.create_observable_gauge("memory", [lambda _: [Observation(80.5, {"gpu": 0}), Observation(79, {"gpu": 1})]], "GB")


def record(first):
    tokens.add(first, {"split": "train"})
    queue.add(-2)
    for ms in 1.0, 40.0, 12000.0:
        record_rl_metrics(meter, reward_mean=first / 8, generation_duration_ms=ms)


record(100)
sys.stdin.read()
record(28)
if reader is not None and os.environ["READER"] == "memory":
    data = reader.get_metrics_data()
    print(sorted(m.name for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics))
telemetry.shutdown()
