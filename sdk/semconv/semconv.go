// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package semconv is the one place where an attribute name of NeMo Lens or OpenTelemetry is spelled.
//
// A name that exists in two generations has two constants: the plain one is the new spelling, the one that ends in
// Old is what NeMo Lens up to 0.2 sends. Readers accept both, the new one first.
package semconv

// Who a resource is: rank, run, process.
const (
	DLRank         = "nv.dl.rank"       // integer, 0 ≤ rank < world size
	DLWorldSize    = "nv.dl.world_size" // integer, number of ranks
	DLLocalRank    = "nv.dl.local_rank" // integer, rank within the node
	DLRankOld      = "dl.rank"
	DLWorldSizeOld = "dl.world_size"
	DLLocalRankOld = "dl.local_rank"

	RunID      = "nemo.run.id"    // text, for people
	DLRunUUID  = "nv.dl.run.uuid" // uuid5, one an attempt
	DLJobUUID  = "nv.dl.job.uuid" // uuid5, one a job
	SlurmJobID = "slurm.job.id"   // text, `{array job}_{task}` for a task of an array

	SlurmArrayJobID  = "slurm.array.job_id"
	SlurmArrayTaskID = "slurm.array.task_id"

	ServiceName       = "service.name"
	ServiceInstanceID = "service.instance.id" // `{run}-rank{N}` for a rank of NeMo Lens
)

// Where and as what a resource runs.
const (
	ServiceVersion = "service.version"
	HostName       = "host.name"
	ProcessPID     = "process.pid" // integer
)

// What a training step is and how it went. Megatron sets NumMicrobatches on forward_backward under the same name in both generations.
const (
	TrainingStep                 = "nv.dl.training.step"                        // integer, from 1
	TrainingStepSkipped          = "nv.dl.training.iteration.skipped"           // boolean
	OptimizerUpdateSuccessful    = "nv.dl.training.optimizer.update_successful" // boolean
	TrainingStepOld              = "megatron.iteration"
	TrainingStepSkippedOld       = "megatron.skipped"
	OptimizerUpdateSuccessfulOld = "megatron.update_successful"
	NumMicrobatches              = "num_microbatches" // integer
)

// The event of an exception and its attributes (OpenTelemetry semantic conventions, exceptions on spans).
const (
	ExceptionEvent      = "exception"
	ExceptionType       = "exception.type"
	ExceptionMessage    = "exception.message"
	ExceptionStacktrace = "exception.stacktrace"
	ExceptionEscaped    = "exception.escaped" // text "True" or "False", as OpenTelemetry Python writes it
)
