// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

import "strings"

// Rename is a name that has two spellings.
type Rename struct {
	Old, New string
	OneWay   bool // the old name is no longer sent by anyone, or not only it became the new one: there is no way back
}

// Attributes are the attribute keys that NeMo Lens and its users renamed between 0.2 and 0.3. The first line of a new name is the
// one that leads back to the old spelling.
func Attributes() []Rename { return append([]Rename(nil), attributes...) }

// Spans are the span names that were renamed. An Old that ends in a dot stands for every name below it.
func Spans() []Rename { return append([]Rename(nil), spans...) }

// Metrics are the metric names that were renamed without a change of what they measure.
func Metrics() []Rename { return append([]Rename(nil), metrics...) }

var attributes = []Rename{
	{Old: DLRankOld, New: DLRank},
	{Old: DLWorldSizeOld, New: DLWorldSize},
	{Old: DLLocalRankOld, New: DLLocalRank},
	{Old: DLJobUUIDOld, New: DLJobUUID},
	{Old: DLRunUUIDOld, New: DLRunUUID},
	{Old: TensorParallelSizeOld, New: TensorParallelSize},
	{Old: PipelineParallelSizeOld, New: PipelineParallelSize},
	{Old: DataParallelSizeOld, New: DataParallelSize},
	{Old: GlobalBatchSizeOld, New: GlobalBatchSize},
	{Old: SequenceLengthOld, New: SequenceLength},
	{Old: MicroBatchSizeOld, New: MicroBatchSize},
	{Old: "nv.dl.training.config.microbatch_size", New: MicroBatchSize, OneWay: true},
	{Old: TrainItersOld, New: TrainIters},
	{Old: "nv.dl.training.target.train_iterations", New: TrainIters, OneWay: true},
	{Old: ModelTypeOld, New: ModelType},
	{Old: GPUIndexOld, New: GPUIndex},
	{Old: GPUModelOld, New: GPUModel},
	{Old: GPUUUIDOld, New: GPUUUID},
	{Old: GPUSerialOld, New: GPUSerial},
	{Old: GPUPCIBusIDOld, New: GPUPCIBusID},
	{Old: SlurmClusterOld, New: SlurmClusterName, OneWay: true}, // Lens 0.1 and 0.2 send the new one already
	{Old: TrainingStepOld, New: TrainingStep},
	{Old: TrainingStepSkippedOld, New: TrainingStepSkipped},
	{Old: OptimizerUpdateSuccessfulOld, New: OptimizerUpdateSuccessful},
	{Old: "megatron.layer_number", New: "nv.mcore.layer.number"},
	{Old: "megatron.sniff_test.tag", New: "nv.dl.resiliency.gpu_sniff.tag"},
	{Old: "nvrx.cycle", New: "nv.nvrx.cycle.index"},
	{Old: "nvrx.infra_rank", New: "nv.nvrx.ftl.infra.rank"},
	{Old: "nvrx.membership", New: "nv.nvrx.ftl.membership"},
	{Old: "nvrx.node", New: "nv.nvrx.ftl.node"},
	{Old: "nvrx.rank", New: "nv.nvrx.ftl.group.rank"},
	{Old: "nvrx.call_idx", New: "nv.nvrx.ckpt.call_idx"},
	{Old: "nvrx.cycle_outcome", New: "nv.nvrx.cycle.outcome"},
}

var spans = []Rename{
	{Old: "megatron.train", New: "nv.dl.training.iter_block"},
	{Old: "nv.dl.training.loop_pass", New: "nv.dl.training.iter_block", OneWay: true},
	{Old: "megatron.train.iteration", New: "nv.dl.training.iteration"},
	{Old: "megatron.train_step", New: "nv.dl.training.iteration", OneWay: true},
	{Old: "megatron.train.iteration.forward_backward", New: "nv.dl.training.iteration.forward_backward"},
	{Old: "megatron.train.iteration.optimizer", New: "nv.dl.training.iteration.optimizer_step"},
	{Old: "megatron.train.params_norm", New: "nv.mlm.train.params_norm"},
	{Old: "megatron.train.log", New: "nv.mlm.train.log"},
	{Old: "megatron.train.iteration_report", New: "nv.mlm.train.iteration_report"},
	{Old: "megatron.train.forward_pre_hook", New: "nv.mlm.train.forward_pre_hook"},
	{Old: "megatron.startup", New: "nv.dl.training.startup"},
	{Old: "megatron.startup.", New: "nv.dl.training.startup."},
	{Old: "megatron.evaluate", New: "nv.dl.training.evaluate"},
	{Old: "megatron.evaluate.", New: "nv.dl.training.evaluate."},
	{Old: "megatron.checkpoint.report_memory", New: "nv.mlm.checkpoint.report_memory"},
	{Old: "megatron.checkpoint.timers_log", New: "nv.mlm.checkpoint.timers_log"},
	{Old: "megatron.checkpoint.ft_heartbeat", New: "nv.mlm.checkpoint.ft_heartbeat"},
	{Old: "megatron.checkpoint.exit_finalize", New: "nv.mlm.checkpoint.exit_finalize"},
	{Old: "megatron.checkpoint.", New: "nv.dl.training.checkpoint."},
	{Old: "megatron.microbatch.", New: "nv.mcore.microbatch."},
	{Old: "megatron.p2p.", New: "nv.mcore.p2p."},
	{Old: "megatron.grad_sync.", New: "nv.mcore.grad_sync."},
	{Old: "megatron.layer.", New: "nv.mcore.layer."},
	{Old: "nvrx.restart.", New: "nv.nvrx.ftl."},
	{Old: "nv.nvrx.checkpoint.", New: "nv.nvrx.ckpt.", OneWay: true},
	{Old: "nvrx.checkpoint.save.", New: "nv.nvrx.ckpt.save."},
}

var metrics = []Rename{
	{Old: "rl.kl_divergence", New: "rl.kl.divergence"},
	{Old: "rl.policy_loss", New: "rl.policy.loss"},
	{Old: "rl.value_loss", New: "rl.value.loss"},
	{Old: "rl.response_length.mean", New: "rl.response.length.mean"},
}

// The spans of NeMo RL carry the algorithm in the middle: rl.<algorithm>.<old>.
var rlSpans = []Rename{
	{Old: "collect_rollouts", New: "generation"},
	{Old: "compute_rewards", New: "reward_calculation"},
	{Old: "compute_logprobs", New: "policy_and_reference_logprobs"},
	{Old: "compute_advantages", New: "advantage_calculation"},
	{Old: "policy_update", New: "policy_training"},
	{Old: "save_checkpoint", New: "checkpointing"},
}

func init() {
	for _, algorithm := range []string{"grpo", "ppo", "sft", "dpo", "rm", "distillation", "sc"} {
		for _, r := range rlSpans {
			prefix := "rl." + algorithm + "."
			spans = append(spans, Rename{Old: prefix + r.Old, New: prefix + r.New})
		}
	}
}

// Renamer brings names of one kind to one generation.
type Renamer struct {
	exact    map[string]string
	prefixes []Rename // from Old to New
}

// ToNew makes a Renamer from old spellings to new ones.
func ToNew(table []Rename) Renamer { return newRenamer(table, false) }

// ToOld makes a Renamer from new spellings to old ones.
func ToOld(table []Rename) Renamer { return newRenamer(table, true) }

func newRenamer(table []Rename, back bool) Renamer {
	r := Renamer{exact: make(map[string]string, len(table))}
	for _, line := range table {
		if back {
			if line.OneWay {
				continue
			}
			line.Old, line.New = line.New, line.Old
		}
		if strings.HasSuffix(line.Old, ".") {
			r.prefixes = append(r.prefixes, line)
		} else if _, there := r.exact[line.Old]; !there {
			r.exact[line.Old] = line.New
		}
	}
	return r
}

// Rename returns the other spelling of name, and whether there is one.
func (r Renamer) Rename(name string) (string, bool) {
	if other, ok := r.exact[name]; ok {
		return other, true
	}
	for _, p := range r.prefixes {
		if rest, ok := strings.CutPrefix(name, p.Old); ok && rest != "" {
			return p.New + rest, true
		}
	}
	return "", false
}
