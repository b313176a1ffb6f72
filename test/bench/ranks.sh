#!/bin/sh
# CPU seconds per million spans of lenscol with rank_gate and of a stock collector with contrib's filter, both in front of
# the nop exporter, with the last of 8 and the last of 1,000 ranks kept. One line a case:
#
#   <case> ours <s> stock <s> ratio <x>
#
# The stock collector is what `make stock` builds, once, of upstream's parts of the same release; that takes minutes. LENSCOL_BIN is the binary to measure, by default bin/lenscol. Arguments go to test/bench/ranks: -spans, -rounds.
set -eu
cd "$(dirname "$0")/../.."

LENSCOL_BIN=${LENSCOL_BIN:-bin/lenscol}
[ -x "$LENSCOL_BIN" ] || make build >&2
make stock >&2
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o build/ranks ./test/bench/ranks
exec build/ranks -ours "$LENSCOL_BIN" -stock build/stock/stock "$@"
