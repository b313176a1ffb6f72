#!/bin/bash
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
#
# The task that run.sh starts once on a node: a collector on ports that are free. Jobs of an array, and others that share the node, have
# collectors, ports and files of their own.
set -u
node=$SLURMD_NODENAME
export LENSCOL_DATA_DIR=$LENSCOL_JOB_DIR/$node
export LENSCOL_QUEUE_DIR=${LENSCOL_QUEUE_DIR:-$LENSCOL_JOB_DIR/$node/queue}
for config in ${LENSCOL_CONFIG:-lenscol:sidecar}; do
	set -- "$@" --config "$config"
done
exec "$LENSCOL" "$@" --ports auto --port-file "$LENSCOL_JOB_DIR/agents/$node.env" >>"$LENSCOL_JOB_DIR/agents/$node.log" 2>&1
