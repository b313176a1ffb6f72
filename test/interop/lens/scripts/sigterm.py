# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank that gets SIGTERM with a span flushed, one in the SDK's queue and one open. ON_SIGTERM says what it does: die (Python's default),
exit (which runs what the SDK has registered to run at the end), or shutdown (of Lens, as Megatron does)."""

import os
import signal
import sys

import witness
from opentelemetry import trace

telemetry = witness.start()


def exit(*_):
    sys.exit(0)


def shutdown(*_):
    telemetry.shutdown()
    os._exit(0)


on = {"die": signal.SIG_DFL, "exit": exit, "shutdown": shutdown}[os.environ["ON_SIGTERM"]]
signal.signal(signal.SIGTERM, on)
telemetry.tracer.start_span("flushed").end()
trace.get_tracer_provider().force_flush()
telemetry.tracer.start_span("queued").end()
still_open = telemetry.tracer.start_span("open")
print("ready", flush=True)
while True:
    signal.pause()
