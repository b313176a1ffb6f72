# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks, a process each, of which Lens chooses those that export. It reads cases from stdin, JSON lines:

    {"endpoint": "http://127.0.0.1:4318", "env": {"NEMO_LENS_EXPORT_STRATEGY": "sampled"}, "ranks_per_node": 4, "worlds": [1, 8]}

Each world runs twice: as run sdk-WORLD in that environment, and as run all-WORLD with every rank exporting. The world of 8 has metrics
too. ranks_per_node 0 leaves LOCAL_RANK out, as where nobody sets it.
"""

import json
import os
import sys
import traceback

from nemo.lens import NemoLensConfig, providers, setup_telemetry  # providers, so that each rank need not load it

AT_ONCE = 4


def export(case, run, rank, world):
    os.environ.update(case["env"], NEMO_LENS_RUN_ID=f"{run}-{world}", OTEL_EXPORTER_OTLP_ENDPOINT=case["endpoint"])
    os.environ["NEMO_LENS_METRICS_ENABLED"] = str(world == 8)
    if run == "all":
        os.environ["NEMO_LENS_EXPORT_STRATEGY"] = "all_ranks"
    if case["ranks_per_node"]:
        os.environ["LOCAL_RANK"] = str(rank % case["ranks_per_node"])
    telemetry = setup_telemetry(NemoLensConfig.from_env(), rank, world)
    with telemetry.tracer.start_as_current_span("step"):
        telemetry.meter.create_gauge("loss").set(rank / 2)
    telemetry.shutdown()


def wait():
    _, status = os.wait()
    if status:
        sys.exit(f"a rank ended with {status}")


running = 0
for case in map(json.loads, sys.stdin):
    for world in case["worlds"]:
        for run in "sdk", "all":
            for rank in range(world):
                if running == AT_ONCE:
                    wait()
                    running -= 1
                if os.fork() == 0:
                    try:
                        export(case, run, rank, world)
                        os._exit(0)
                    except BaseException:
                        traceback.print_exc()
                        os._exit(1)
                running += 1
for _ in range(running):
    wait()
