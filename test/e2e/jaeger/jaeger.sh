#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# jaeger.sh gets a Jaeger.
set -eu
binary=$("$(dirname "$0")/../../jaeger.sh")
echo "LENSCOL_JAEGER_BIN=$binary"
