# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""A rank that has all its telemetry before the collector listens."""

import witness

telemetry = witness.start()
for step in range(3):
    with telemetry.tracer.start_as_current_span("step"):
        telemetry.meter.create_counter("steps").add(1)
telemetry.shutdown()
