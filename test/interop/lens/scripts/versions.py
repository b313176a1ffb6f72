# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""What is installed, in one line."""

import importlib.metadata
import platform

names = ("nemo-lens", "opentelemetry-sdk", "grpcio", "fastapi", "aiohttp")
print(", ".join([f"Python {platform.python_version()}"] + [f"{name} {importlib.metadata.version(name)}" for name in names]))
