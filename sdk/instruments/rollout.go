// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments // import "github.com/lenscol/lenscol/sdk/instruments"

import "go.opentelemetry.io/otel/metric"

// RL are the metrics of a reinforcement learning run.
type RL struct {
	RewardMean         *Instrument
	KLDivergence       *Instrument
	PolicyLoss         *Instrument
	ValueLoss          *Instrument
	Entropy            *Instrument
	ResponseLengthMean *Instrument // tokens
	GradNorm           *Instrument
	LearningRate       *Instrument
	TokensPerSecond    *Instrument
	GenerationDuration *Instrument // ms
	RolloutDuration    *Instrument // ms

	// Of NeMo RL, with attributes of its own.
	EfficiencySeconds    *Instrument // s; of a category, not to be added up across measurements
	EfficiencyPercent    *Instrument
	SetupDuration        *Instrument // s
	PromptTokens         *Instrument
	GenerationTokens     *Instrument
	GenerationsOK        *Instrument
	GenerationsFailed    *Instrument
	PromptLengthMean     *Instrument // tokens
	GenerationLengthMean *Instrument // tokens
	HostMemoryUsed       *Instrument // bytes
	HostMemoryTotal      *Instrument // bytes
}

func rlSpecs() []Spec {
	return []Spec{
		{Key: "reward_mean", Name: "rl.reward.mean", Description: "Mean reward across rollout batch."},
		{Key: "kl_divergence", Name: "rl.kl.divergence", Description: "KL divergence between policy and reference."},
		{Key: "policy_loss", Name: "rl.policy.loss", Description: "Policy gradient loss."},
		{Key: "value_loss", Name: "rl.value.loss", Description: "Value function loss."},
		{Key: "entropy", Name: "rl.entropy", Description: "Policy entropy."},
		{Key: "response_length_mean", Name: "rl.response.length.mean", Description: "Mean generated response length (tokens)."},
		{Key: "grad_norm", Name: "rl.grad_norm", Description: "Gradient norm of the policy update."},
		{Key: "learning_rate", Name: "rl.learning_rate", Description: "Current optimizer learning rate."},
		{Key: "tokens_per_sec", Name: "rl.throughput.tokens_per_sec", Unit: "{token}/s", Description: "Training throughput in tokens per second."},
		{Key: "generation_duration_ms", Name: "rl.generation.duration_ms", Kind: Histogram, Unit: "ms", Description: "Duration of text generation in milliseconds."},
		{Key: "rollout_duration_ms", Name: "rl.rollout.duration_ms", Kind: Histogram, Unit: "ms", Description: "Duration of rollout collection in milliseconds."},

		{Key: "efficiency_seconds", Name: "rl.efficiency.seconds", Unit: "s", Description: "Time attributed to one efficiency category."},
		{Key: "efficiency_pct", Name: "rl.efficiency.pct", Unit: "%", Description: "Productive share of a step's wall clock."},
		{Key: "setup_duration", Name: "rl.setup.duration", Unit: "s", Description: "Duration of one phase of the setup."},
		{Key: "prompt_tokens", Name: "rl.vllm.prompt_tokens", Kind: Counter, Integer: true, Unit: "{token}", Description: "Prompt tokens."},
		{Key: "generation_tokens", Name: "rl.vllm.generation_tokens", Kind: Counter, Integer: true, Unit: "{token}", Description: "Generated tokens."},
		{Key: "generations_ok", Name: "rl.vllm.generations.ok", Kind: Counter, Integer: true, Description: "Generations that succeeded."},
		{Key: "generations_failed", Name: "rl.vllm.generations.failed", Kind: Counter, Integer: true, Description: "Generations that failed."},
		{Key: "prompt_length_mean", Name: "rl.vllm.prompt_length.mean", Description: "Mean prompt length (tokens)."},
		{Key: "generation_length_mean", Name: "rl.vllm.generation_length.mean", Description: "Mean generation length (tokens)."},
		{Key: "host_memory_used", Name: "rl.host.memory.used", Integer: true, Unit: "By", Description: "Memory of the host in use."},
		{Key: "host_memory_total", Name: "rl.host.memory.total", Integer: true, Unit: "By", Description: "Memory of the host."},
	}
}

// NewRL makes the metrics of a reinforcement learning run.
func NewRL(meter metric.Meter, names Names) RL {
	g := family(meter, names, GroupRL, rlSpecs())
	return RL{
		RewardMean:           g["reward_mean"],
		KLDivergence:         g["kl_divergence"],
		PolicyLoss:           g["policy_loss"],
		ValueLoss:            g["value_loss"],
		Entropy:              g["entropy"],
		ResponseLengthMean:   g["response_length_mean"],
		GradNorm:             g["grad_norm"],
		LearningRate:         g["learning_rate"],
		TokensPerSecond:      g["tokens_per_sec"],
		GenerationDuration:   g["generation_duration_ms"],
		RolloutDuration:      g["rollout_duration_ms"],
		EfficiencySeconds:    g["efficiency_seconds"],
		EfficiencyPercent:    g["efficiency_pct"],
		SetupDuration:        g["setup_duration"],
		PromptTokens:         g["prompt_tokens"],
		GenerationTokens:     g["generation_tokens"],
		GenerationsOK:        g["generations_ok"],
		GenerationsFailed:    g["generations_failed"],
		PromptLengthMean:     g["prompt_length_mean"],
		GenerationLengthMean: g["generation_length_mean"],
		HostMemoryUsed:       g["host_memory_used"],
		HostMemoryTotal:      g["host_memory_total"],
	}
}

// Gym are the metrics of environments and their servers. Durations are in ms.
type Gym struct {
	ServerRequestDuration *Instrument
	RolloutDuration       *Instrument
	VerifyDuration        *Instrument
	VerifySuccessRate     *Instrument // 0 to 1
	ActiveServers         *Instrument

	// Of NeMo Gym, with attributes of its own.
	RolloutsCompleted      *Instrument
	QueueWait              *Instrument // for a place among those in flight
	ActiveSandboxes        *Instrument
	SandboxStartup         *Instrument
	SandboxExec            *Instrument
	SandboxCreateRetries   *Instrument
	ModelCallDuration      *Instrument
	ModelTimeToFirstByte   *Instrument
	HTTPTimeouts           *Instrument
	HTTPRetries            *Instrument
	ConnectionPoolWait     *Instrument
	ConnectionPoolConnects *Instrument
}

func gymSpecs() []Spec {
	return []Spec{
		{Key: "server_request_duration_ms", Name: "gym.server.request_duration_ms", Kind: Histogram, Unit: "ms", Description: "Gym server request duration in milliseconds."},
		{Key: "rollout_duration_ms", Name: "gym.rollout.duration_ms", Kind: Histogram, Unit: "ms", Description: "Rollout collection duration in milliseconds."},
		{Key: "verify_duration_ms", Name: "gym.verify.duration_ms", Kind: Histogram, Unit: "ms", Description: "Verification endpoint duration in milliseconds."},
		{Key: "verify_success_rate", Name: "gym.verify.success_rate", Description: "Fraction of successful verifications."},
		{Key: "active_servers", Name: "gym.servers.active", Integer: true, Description: "Number of active Gym servers."},

		{Key: "rollout_completed", Name: "gym.rollout.completed_total", Kind: Counter, Integer: true, Description: "Rollouts completed, by outcome."},
		{Key: "queue_wait_duration_ms", Name: "gym.concurrency.queue_wait_duration_ms", Kind: Histogram, Unit: "ms", Description: "Time spent waiting for a place among those in flight."},
		{Key: "sandbox_active", Name: "gym.sandbox.active", Kind: UpDownCounter, Integer: true, Description: "Sandboxes that this process holds."},
		{Key: "sandbox_startup_duration_ms", Name: "gym.sandbox.startup_duration_ms", Kind: Histogram, Unit: "ms", Description: "Time to provision one sandbox."},
		{Key: "sandbox_exec_duration_ms", Name: "gym.sandbox.exec_duration_ms", Kind: Histogram, Unit: "ms", Description: "Time to run one command in a sandbox."},
		{Key: "sandbox_create_retry", Name: "gym.sandbox.create_retry_total", Kind: Counter, Integer: true, Description: "Attempts to create a sandbox that were repeated."},
		{Key: "model_call_duration_ms", Name: "gym.model.call_duration_ms", Kind: Histogram, Unit: "ms", Description: "Duration of one call to a model server."},
		{Key: "model_time_to_first_byte_ms", Name: "gym.model.time_to_first_byte_ms", Kind: Histogram, Unit: "ms", Description: "Time to the first byte of a model server's answer."},
		{Key: "http_timeout", Name: "gym.http.timeout_total", Kind: Counter, Integer: true, Description: "Outbound HTTP calls that timed out."},
		{Key: "http_retry", Name: "gym.http.retry_total", Kind: Counter, Integer: true, Description: "Outbound HTTP calls that were repeated, by reason."},
		{Key: "connection_pool_queue_duration_ms", Name: "gym.http.connection_pool.queue_duration_ms", Kind: Histogram, Unit: "ms", Description: "Time spent waiting for a connection."},
		{Key: "connection_pool_connect", Name: "gym.http.connection_pool.connect_total", Kind: Counter, Integer: true, Description: "Connections made."},
	}
}

// NewGym makes the metrics of environments and their servers.
func NewGym(meter metric.Meter, names Names) Gym {
	g := family(meter, names, GroupGym, gymSpecs())
	return Gym{
		ServerRequestDuration:  g["server_request_duration_ms"],
		RolloutDuration:        g["rollout_duration_ms"],
		VerifyDuration:         g["verify_duration_ms"],
		VerifySuccessRate:      g["verify_success_rate"],
		ActiveServers:          g["active_servers"],
		RolloutsCompleted:      g["rollout_completed"],
		QueueWait:              g["queue_wait_duration_ms"],
		ActiveSandboxes:        g["sandbox_active"],
		SandboxStartup:         g["sandbox_startup_duration_ms"],
		SandboxExec:            g["sandbox_exec_duration_ms"],
		SandboxCreateRetries:   g["sandbox_create_retry"],
		ModelCallDuration:      g["model_call_duration_ms"],
		ModelTimeToFirstByte:   g["model_time_to_first_byte_ms"],
		HTTPTimeouts:           g["http_timeout"],
		HTTPRetries:            g["http_retry"],
		ConnectionPoolWait:     g["connection_pool_queue_duration_ms"],
		ConnectionPoolConnects: g["connection_pool_connect"],
	}
}
