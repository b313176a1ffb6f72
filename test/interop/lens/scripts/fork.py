# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank that is set up, and a child that it starts by METHOD: os.fork, or one of multiprocessing's fork, spawn and forkserver.

A forked child has its parent's Lens and goes on with it; a spawned one sets Lens up for itself. Both span below the parent's.
"""

import multiprocessing
import os
import sys

import witness
from nemo.lens import extract_context, get_tracer, inject_context
from opentelemetry import trace


def child(carrier, own):
    telemetry = witness.start() if own else None
    with get_tracer().start_as_current_span("child", extract_context(carrier)) as span:
        span.set_attribute("pid", os.getpid())
        with get_tracer().start_as_current_span("grandchild"):
            pass
    telemetry.shutdown() if own else trace.get_tracer_provider().force_flush()


def main(method):
    telemetry = witness.start()
    with telemetry.tracer.start_as_current_span("before") as span:
        span.set_attribute("pid", os.getpid())
    trace.get_tracer_provider().force_flush()  # The exporter has a connection when the child starts.
    carrier = {}
    with telemetry.tracer.start_as_current_span("parent"):
        inject_context(carrier)
        if method == "os.fork":
            pid = os.fork()
            if pid == 0:
                child(carrier, own=False)
                os._exit(0)
            _, status = os.waitpid(pid, 0)
        else:
            process = multiprocessing.get_context(method).Process(target=child, args=(carrier, method != "fork"))
            process.start()
            process.join()
            status = process.exitcode
    telemetry.shutdown()
    sys.exit(status != 0)


if __name__ == "__main__":
    main(os.environ["METHOD"])
