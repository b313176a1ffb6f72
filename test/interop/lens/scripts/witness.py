# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""How every script here starts: NeMo Lens, set up from the environment as a rank of a job does it.

Each span that ends is also written to the file that WITNESS names, a line each, as OpenTelemetry's own formatter has it and with the times that
lack nanoseconds there: what the test holds the archive against. It is written whatever becomes of the process.
"""

import json
import os

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from nemo.lens import NemoLensConfig, TelemetryHandle, setup_telemetry


class Witness(SpanProcessor):
    def __init__(self) -> None:
        self._file = os.open(os.environ["WITNESS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def on_end(self, span) -> None:
        times = {"start_ns": span.start_time, "end_ns": span.end_time, "events_ns": [e.timestamp for e in span.events]}
        os.write(self._file, f'{{"span": {span.to_json(indent=None)}, "times": {json.dumps(times)}}}\n'.encode())


def start(rank: int | None = None, world_size: int | None = None, **more) -> TelemetryHandle:
    """Sets Lens up; rank and world size are those of the environment, 0 of 1 without."""
    if rank is None:
        rank = int(os.environ.get("RANK", "0"))
    if world_size is None:
        world_size = int(os.environ.get("WORLD_SIZE", "1"))
    handle = setup_telemetry(NemoLensConfig.from_env(), rank, world_size, **more)
    if handle.is_exporting:
        trace.get_tracer_provider().add_span_processor(Witness())
    return handle
