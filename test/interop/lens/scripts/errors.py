# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""Errors through each way that Lens makes spans."""

import witness
from nemo.lens import managed_span, span_cm, trace_fn

telemetry = witness.start()


@trace_fn("optimizer", "trace_fn")
def fails():
    raise ZeroDivisionError("loss scale is 0")


def attempt(what):
    try:
        what()
    except BaseException:
        pass


def nested():
    with managed_span("job", "outer", telemetry.tracer):
        with managed_span("step", "inner", telemetry.tracer, **{"megatron.iteration": 7}):
            raise ValueError("NaN in\ngradients ∇")


def not_recorded():
    with span_cm("not recorded", telemetry.tracer, record_exception=False):
        raise KeyError("silent")


def interrupted():
    with managed_span("step", "interrupted", telemetry.tracer):
        raise KeyboardInterrupt


def caught():
    with managed_span("step", "caught", telemetry.tracer) as span:
        try:
            raise OSError(28, "No space left on device")
        except OSError as e:
            span.record_exception(e, {"retry": 1})


for what in fails, nested, not_recorded, interrupted, caught:
    attempt(what)
telemetry.shutdown()
