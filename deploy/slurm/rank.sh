#!/bin/bash
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
#
# rank.sh PROGRAM...: a task of srun below run.sh. It waits for the collector of its node and becomes the program, with OTEL_EXPORTER_OTLP_ENDPOINT
# and OTEL_RESOURCE_ATTRIBUTES set. Without a collector the program runs all the same.
#
# Variables, with their defaults:
#   LENSCOL_WAIT  1m  how long to wait for the collector
set -u
ports=$LENSCOL_JOB_DIR/agents/$SLURMD_NODENAME.env
eval "$("$LENSCOL" set-slurm-resource-attrs --stage task)"
if "$LENSCOL" wait --port-file "$ports" --timeout "${LENSCOL_WAIT:-1m}" >&2; then
	. "$ports"
	export NEMO_LENS_EXPORTER=${NEMO_LENS_EXPORTER:-otlp}
else
	echo "rank.sh: no collector on $SLURMD_NODENAME: the program runs without" >&2
fi
exec "$@"
