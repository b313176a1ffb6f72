# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""Python's logging through Lens's bridge: levels, extra attributes, exceptions, a record in a span and one in none."""

import logging

import witness
from nemo.lens import managed_span
from nemo.lens.logging_bridge import setup_logging_bridge

telemetry = witness.start()
setup_logging_bridge()
log = logging.getLogger("megatron.training")
logging.getLogger().setLevel(logging.DEBUG)

log.debug("below the bridge's level")
log.info("training %s", "starts")
with managed_span("step", "step", telemetry.tracer):
    log.warning("grad norm is %.1f", 12.5, extra={"megatron.iteration": 7, "ranks": [0, 3]})
    try:
        raise ValueError("loss is NaN")
    except ValueError:
        log.exception("step failed\non two lines")
log.critical("giving up")
telemetry.shutdown()
