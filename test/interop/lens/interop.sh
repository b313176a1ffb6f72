#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# interop.sh: gets NeMo Lens and what the tests here and in ../job hold it against, each once, and runs them. What this machine cannot have is left out;
# the reason stands above.
set -eu
cd "$(dirname "$0")"

# get prints what the command prints that gets it; nothing where its exit code is 3: it cannot be had.
get() {
	what=$1
	shift
	status=0
	"$@" || status=$?
	[ "$status" = 0 ] || [ "$status" = 3 ] || exit "$status"
	[ "$status" = 0 ] || echo "interop: SKIPPED: $what" >&2
}

LENSCOL_LENS_PYTHON=$(get 'everything' ../../python313.sh lens 'nemo-lens[sdk,fastapi,aiohttp]==0.1.0' opentelemetry-sdk==1.45.1 \
	opentelemetry-exporter-otlp-json-http==0.66b1 fastapi==0.165.0 aiohttp==3.14.5 uvicorn==0.54.0)
[ -n "$LENSCOL_LENS_PYTHON" ] || exit 0
"$LENSCOL_LENS_PYTHON" -m pip index versions nemo-lens 2>/dev/null | sed -n 's/^Available versions:/NeMo Lens on PyPI:/p'
LENSCOL_WEAVE_PYTHON=$(get 'what is seen in Weave' ../../python313.sh weave 'weave[trace_server]==0.53.12')
LENSCOL_JAEGER_BIN=$(get 'what is seen in Jaeger' ../../jaeger.sh)
LENSCOL_TORCH=$(get 'torch.distributed' ./torch.sh "$LENSCOL_LENS_PYTHON")
prometheus=$(get 'the whole small job' ../../e2e/prometheus/prometheus.sh)
browser=$(get 'the page in a browser' ../../browser/browser.sh)
export LENSCOL_LENS_PYTHON LENSCOL_WEAVE_PYTHON LENSCOL_JAEGER_BIN LENSCOL_TORCH
# shellcheck disable=SC2086 # NAME=VALUE each
[ -z "$prometheus$browser" ] || export $prometheus $browser
env | grep -E '^LENSCOL_(LENS|WEAVE|JAEGER|TORCH|PROMETHEUS|CHROMIUM).*=.' | sed 's/^/interop: found /'
exec go test -tags slow -count=1 -timeout 20m -v . ../job
