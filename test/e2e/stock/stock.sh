#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# stock.sh builds the collector of upstream's parts alone.
set -eu
repo=$(cd "$(dirname "$0")/../../.." && pwd)
make --no-print-directory -C "$repo" stock >&2
echo "LENSCOL_STOCK_BIN=$repo/build/stock/stock"
