// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package semconv is the one place where an attribute name of NeMo Lens or OpenTelemetry is spelled.
//
// A name that exists in two generations has two constants: the plain one is the new spelling, the one that ends in
// Old is what NeMo Lens up to 0.2 sends. Readers accept both, the new one first. [Attributes], [Spans] and [Metrics] are the
// tables of what was renamed, [Registry] lists the names of NeMo Lens's own registry.
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

	DLRole          = "nv.dl.role"          // trainer or ckpt_worker
	DLProviderName  = "nv.dl.provider.name" // the framework: mcore, nemo-rl
	DLCampaignStage = "nv.dl.campaign.stage"
	NemoUserID      = "nemo.user.id"
	DLJobUUIDOld    = "nemo.lens.job_uuid"
	DLRunUUIDOld    = "nemo.lens.run_uuid"
)

// What lenscol alone writes: a sender's value that gave way to another.
const (
	RunIDOriginal             = "nemo.run.id.original"
	DLRunUUIDOriginal         = "nv.dl.run.uuid.original"
	DLJobUUIDOriginal         = "nv.dl.job.uuid.original"
	ServiceInstanceIDOriginal = "service.instance.id.original"
)

// How a command of lenscol exec ended. The exit code is OpenTelemetry's, the others are lenscol's.
const (
	ProcessExitCode   = "process.exit.code"          // integer, 128 and its number for a signal
	ProcessExitSignal = "process.exit.signal"        // SIGKILL and so on
	ProcessCPUUser    = "process.cpu.user.seconds"   // with the children it waited for
	ProcessCPUSystem  = "process.cpu.system.seconds" // with the children it waited for
	ProcessMaxRSS     = "process.memory.max_rss"     // integer, bytes
)

// Where and as what a resource runs.
const (
	ServiceVersion        = "service.version"
	HostName              = "host.name"
	HostGPUCount          = "host.gpu.count" // integer
	ProcessPID            = "process.pid"    // integer
	DeploymentEnvironment = "deployment.environment"
	ClusterName           = "cluster.name"

	DLLaunchContainerImage = "nv.dl.launch.container.image"
	DLLaunchNodesActive    = "nv.dl.launch.nnodes.active"
	DLLaunchNodesSpare     = "nv.dl.launch.nnodes.spare"

	SoftwareTorch             = "nv.dl.software.torch"
	SoftwareCUDA              = "nv.dl.software.cuda"
	SoftwareNCCL              = "nv.dl.software.nccl"
	SoftwareTransformerEngine = "nv.dl.software.transformer_engine"
	MCoreVersion              = "nv.mcore.version"
)

// A process's GPU, as NVML names it.
const (
	GPUIndex             = "nv.gpu.index" // integer
	GPUModel             = "nv.gpu.model"
	GPUUUID              = "nv.gpu.uuid"
	GPUSerial            = "nv.gpu.serial"
	GPUPCIBusID          = "nv.gpu.pci_bus_id"
	GPUComputeCapability = "nv.gpu.compute_capability" // text, "9.0"
	GPUMemoryTotal       = "nv.gpu.memory_total"       // integer, bytes
	GPUDriverVersion     = "nv.gpu.driver_version"
	GPUIndexOld          = "dl.gpu.index"
	GPUModelOld          = "dl.gpu.name"
	GPUUUIDOld           = "dl.gpu.uuid"
	GPUSerialOld         = "dl.gpu.serial"
	GPUPCIBusIDOld       = "dl.gpu.pci_bus_id"
)

// The SLURM job of a resource, beside SlurmJobID, SlurmArrayJobID and SlurmArrayTaskID above. NeMo Lens up to 0.2 sends
// the counts as text, newer ones as integers.
const (
	SlurmJobIDRaw            = "slurm.job.id.raw" // text, without array and task
	SlurmJobName             = "slurm.job.name"
	SlurmJobUser             = "slurm.job.user"
	SlurmJobAccount          = "slurm.job.account"
	SlurmJobQOS              = "slurm.job.qos"
	SlurmJobReservation      = "slurm.job.reservation"
	SlurmArrayCount          = "slurm.array.count" // integer, tasks of the array
	SlurmSLUID               = "slurm.sluid"
	SlurmArraySLUID          = "slurm.array.sluid"
	SlurmClusterName         = "slurm.cluster.name"
	SlurmPartition           = "slurm.partition"
	SlurmNNodes              = "slurm.nnodes"
	SlurmNTasks              = "slurm.ntasks"
	SlurmRestartCount        = "slurm.restart_count" // integer, how often the job was requeued
	SlurmSegment             = "slurm.segment"
	SlurmTopologyAddr        = "slurm.topology.addr"
	SlurmTopologyAddrPattern = "slurm.topology.addr_pattern"
	SlurmHeadNodeName        = "slurm.head_node.name"

	SlurmClusterOld                  = "slurm.cluster"
	SlurmNodelistOld                 = "slurm.nodelist"                   // retired
	SlurmTorchelasticRestartCountOld = "slurm.torchelastic.restart_count" // retired
)

// What the reckoner of SLURM's accounting says of a span.
const (
	LensEmitter          = "nemo.lens.emitter" // on its resource: slurm_reckoner
	Purpose              = "purpose"           // list of texts: goodput
	SlurmAttempt         = "slurm.attempt"     // integer from 1
	SlurmSource          = "slurm.source"      // sacct
	SlurmConfidence      = "slurm.confidence"  // factual or synthesized
	SlurmState           = "slurm.state"
	SlurmReason          = "slurm.reason"
	SlurmRestarts        = "slurm.restarts"          // integer
	SlurmRowType         = "slurm.row_type"          // allocation, batch, extern, step; attempt, phase and so on for what no row says
	SlurmExitCode        = "slurm.exit_code"         // code:signal
	SlurmDerivedExitCode = "slurm.derived_exit_code" // code:signal, the highest of the steps
	SlurmStepName        = "slurm.step.name"
	SlurmStepRole        = "slurm.step.role" // workload or infra
)

// The Kubernetes pod of a resource.
const (
	K8sNamespaceName = "k8s.namespace.name"
	K8sPodName       = "k8s.pod.name"
	K8sPodUID        = "k8s.pod.uid"
	K8sNodeName      = "k8s.node.name"
	K8sContainerName = "k8s.container.name"
	K8sJobName       = "k8s.job.name"
)

// The W&B target of a resource. The run id is what W&B itself calls the run, not nemo.run.id; Lens does not send it.
const (
	WandbEntity  = "wandb.entity"
	WandbProject = "wandb.project"
	WandbRunID   = "wandb.run.id"
)

// How the model is split and trained.
const (
	TensorParallelSize   = "nv.dl.topology.size.tp"
	PipelineParallelSize = "nv.dl.topology.size.pp"
	DataParallelSize     = "nv.dl.topology.size.dp"
	GlobalBatchSize      = "nv.dl.training.config.global_batch_size"
	MicroBatchSize       = "nv.dl.training.config.micro_batch_size"
	SequenceLength       = "nv.dl.training.config.sequence_length"
	Optimizer            = "nv.dl.training.config.optimizer"
	Recompute            = "nv.dl.training.config.recompute_granularity"
	TrainIters           = "nv.dl.training.target.train_iters"
	TrainSamples         = "nv.dl.training.target.train_samples"
	TrainTokens          = "nv.dl.training.target.train_tokens"
	ModelType            = "nv.mcore.model.config.model_type"

	TensorParallelSizeOld   = "dl.tensor_parallel.size"
	PipelineParallelSizeOld = "dl.pipeline_parallel.size"
	DataParallelSizeOld     = "dl.data_parallel.size"
	TensorParallelRankOld   = "dl.tensor_parallel.rank"
	PipelineParallelRankOld = "dl.pipeline_parallel.rank"
	DataParallelRankOld     = "dl.data_parallel.rank"
	GlobalBatchSizeOld      = "dl.batch_size"
	MicroBatchSizeOld       = "megatron.micro_batch_size"
	SequenceLengthOld       = "dl.sequence_length"
	TrainItersOld           = "megatron.train_iters"
	ModelTypeOld            = "megatron.model_type"
)

// Marks of NeMo Lens on spans: one that was still open at shutdown, and one whose end lay before its start.
const (
	SpanTruncated       = "nemo.span.truncated"        // true; the event has the same name
	SpanTruncatedReason = "nemo.span.truncated.reason" // on the event

	InvertedSkew         = "inverted.skew"                // text "true"
	InvertedStartSeconds = "inverted.start_epoch_seconds" // text, the start as it came
	InvertedEndSeconds   = "inverted.end_epoch_seconds"   // text, the end as it came
	InvertedDeltaSeconds = "inverted.delta_seconds"       // text, how far the end lay before the start
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

// A request to a model (OpenTelemetry semantic conventions, GenAI; NeMo Lens, inference).
const (
	GenAIOperationName = "gen_ai.operation.name" // text_completion, chat
	GenAIProviderName  = "gen_ai.provider.name"
	GenAIRequestModel  = "gen_ai.request.model"
	GenAITokenType     = "gen_ai.token.type" // input or output
)

// A rollout of NeMo Gym.
const (
	GymRolloutID      = "nemo.gym.rollout.id"
	GymRolloutOutcome = "nemo.gym.rollout.outcome" // scored or dropped
)

// The fault tolerance launcher of the resiliency extension.
const (
	NVRxGroupRank    = "nv.nvrx.ftl.group.rank" // integer
	NVRxCycleOutcome = "nv.nvrx.cycle.outcome"  // completed, failed or terminated
)
