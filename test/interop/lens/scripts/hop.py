# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""Two services as in NeMo Gym, whose releases on PyPI have no telemetry up to 0.4: a FastAPI server with Lens's helper, which prints its
port, and an aiohttp client with the other, which is given the server's URL. Lens 0.1 has no helper for httpx."""

import asyncio
import contextlib
import socket
import sys

import aiohttp
import fastapi
import uvicorn

import witness
from nemo.lens import managed_span
from nemo.lens.contrib.aiohttp import instrument_aiohttp_client
from nemo.lens.contrib.fastapi import instrument_fastapi
from nemo.lens.instruments.gym import record_gym_metrics


def server(telemetry):
    @contextlib.asynccontextmanager
    async def lifespan(_):
        yield
        telemetry.shutdown()

    app = fastapi.FastAPI(lifespan=lifespan)

    @app.post("/run/{task}")
    async def run(task: str):
        with managed_span("evaluate", "gym.verify", telemetry.tracer, task=task):
            record_gym_metrics(telemetry.meter, verify_duration_ms=3.0, verify_success_rate=0.75)
            if task == "broken":
                raise RuntimeError("sandbox is gone")
        return {"reward": 1}

    instrument_fastapi(app)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False)).run([listener])


async def client(telemetry, url):
    instrument_aiohttp_client()
    with managed_span("job", "gym.rollout", telemetry.tracer):
        async with aiohttp.ClientSession(url) as session:
            for task in "sums", "broken":
                async with session.post(f"/run/{task}?seed=1") as response:
                    await response.read()


telemetry = witness.start()
if len(sys.argv) > 1:
    asyncio.run(client(telemetry, sys.argv[1]))
    telemetry.shutdown()
else:
    server(telemetry)
