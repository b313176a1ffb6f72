#!/bin/bash
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
#
# run.sh COMMAND...: within an allocation of sbatch or salloc, starts a collector on each node, runs the command, which as a rule is
# srun rank.sh PROGRAM, and drains the collectors after it. It exits as the command does.
#
# A SIGTERM is handed to the job's other steps, which may take their time; the collectors run on until the command has ended. sbatch
# --signal=B:TERM@60 sends one before the time limit, scancel --batch --signal=TERM JOB on request. A plain scancel ends all at once: then what the collectors had
# acknowledged is kept, and what the ranks had not yet sent is not.
#
# Variables, with their defaults:
#   LENSCOL           lenscol          the program, on every node
#   LENSCOL_CONFIG    lenscol:sidecar  what the collectors run: configs with spaces between, later ones laid over earlier ones
#   LENSCOL_JOBS_DIR  lens-data        a folder that all nodes share; each job has one in it, named by its id, and each node one in that
#   LENSCOL_DRAIN     60               seconds that draining may take
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LENSCOL=${LENSCOL:-lenscol}
export LENSCOL_JOB_DIR=${LENSCOL_JOBS_DIR:-$PWD/lens-data}/$SLURM_JOB_ID

# sends SIGTERM to the collectors, or to the job's other steps. srun hands no SIGTERM on: it kills its step.
term() {
	squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format='%i %j' | while read -r step name; do
		[[ ${step##*.} == *[!0-9]* ]] && continue # batch, extern
		[[ $1 == collectors && $name != lenscol || $1 == others && $name == lenscol ]] && continue
		scancel --quiet --signal=TERM "$step"
	done
}

# The port files that an attempt before a requeue may have left would lead the ranks astray.
rm -rf "$LENSCOL_JOB_DIR/agents"
mkdir -p "$LENSCOL_JOB_DIR/agents" || exit
eval "$("$LENSCOL" set-slurm-resource-attrs --stage sbatch)"

# --overlap: the collector takes no core, no memory and no GPU from the ranks.
srun --overlap --job-name=lenscol --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --cpus-per-task=1 --mem=0 --gres=none \
	--kill-on-bad-exit=0 "$here/agent.sh" &
agents=$!

"$@" &
work=$!
trap 'term others' TERM
wait "$work"
status=$?
while kill -0 "$work" 2>/dev/null; do # A trap ended the wait, not the command.
	wait "$work"
	status=$?
done

term collectors
(sleep "${LENSCOL_DRAIN:-60}" && kill -KILL "$agents") >/dev/null 2>&1 &
limit=$!
wait "$agents" || echo "run.sh: a collector did not end well, see $LENSCOL_JOB_DIR/agents" >&2
kill "$limit" 2>/dev/null
exit "$status"
