// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

// What Weave reads a call's fields from, the first key that is there wins: weave/trace_server/opentelemetry/constants.py.
var (
	inputKeys = []string{
		"ai.prompt", "gen_ai.prompt", "input.value", "mlflow.spanInputs", "gen_ai.input.messages", "pydantic_ai.all_messages",
		"traceloop.entity.input", "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.llm_request", "input", "inputs",
	}
	outputKeys = []string{
		"ai.response", "gen_ai.completion", "output.value", "gen_ai.output.messages", "mlflow.spanOutputs", "final_result",
		"gen_ai.content.completion", "traceloop.entity.output", "gcp.vertex.agent.tool_response", "gcp.vertex.agent.llm_response",
		"output", "outputs",
	}
	usageKeys = map[string][]string{
		"input_tokens":                {"gen_ai.usage.input_tokens"},
		"prompt_tokens":               {"gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.promptTokens"},
		"completion_tokens":           {"gen_ai.usage.completion_tokens", "llm.token_count.completion", "ai.usage.completionTokens"},
		"output_tokens":               {"gen_ai.usage.output_tokens"},
		"total_tokens":                {"llm.usage.total_tokens", "llm.token_count.total"},
		"cache_creation_input_tokens": {"gen_ai.usage.cache_creation.input_tokens"},
		"cache_read_input_tokens": {
			"gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.prompt_tokens_details.cached_tokens",
			"gen_ai.usage.input_tokens_details.cached_tokens", "prompt_tokens_details.cached_tokens",
		},
	}
	attributeKeys = map[string][]string{
		"system":           {"gen_ai.system_instructions", "gen_ai.system", "llm.system"},
		"kind":             {"weave.span.kind", "traceloop.span.kind", "openinference.span.kind"},
		"model":            {"gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.model.id"},
		"provider":         {"gen_ai.provider.name", "llm.provider", "ai.model.provider"},
		"model_parameters": {"gen_ai.request", "llm.invocation_parameters"},
		"operation_name":   {"gen_ai.operation.name"},
		"response_id":      {"gen_ai.response.id"},
		"finish_reasons":   {"gen_ai.response.finish_reasons"},
		"agent_name":       {"gen_ai.agent.name"},
		"agent_id":         {"gen_ai.agent.id"},
	}
	threadKeys = []string{"gen_ai.conversation.id", "gcp.vertex.agent.session_id", "wandb.thread_id"}
	turnKeys   = []string{"gen_ai.conversation.id", "gcp.vertex.agent.session_id", "wandb.is_turn"}
)

// agentKeys are what the agents endpoint has columns for, by their gen_ai names; weave.<rest> names each of them too.
// What lies below one of them is no custom attribute: weave/shared/agents/semconv.py.
var agentKeys = []string{
	"agent.description", "agent.id", "agent.name", "agent.version", "completion", "conversation.id", "conversation.name",
	"input.messages", "operation.name", "output.messages", "output.type", "provider.name", "request.choice.count",
	"request.frequency_penalty", "request.max_tokens", "request.model", "request.presence_penalty", "request.seed",
	"request.stop_sequences", "request.temperature", "request.top_p", "response.finish_reasons", "response.id", "response.model",
	"system", "system_instructions", "tool.call.arguments", "tool.call.id", "tool.call.result", "tool.definitions",
	"tool.description", "tool.name", "tool.type", "usage.cache_creation.input_tokens", "usage.cache_read.input_tokens",
	"usage.input_tokens", "usage.output_tokens", "usage.reasoning_tokens",
}

// otherAgentKeys have a name in one of the two families alone.
var otherAgentKeys = []string{
	"error.type", "server.address", "server.port", "gen_ai.usage.experimental.reasoning_tokens",
	"gen_ai.usage.input_tokens_details.cached_tokens", "gen_ai.usage.prompt_tokens_details.cached_tokens",
	"gen_ai.usage.reasoning.output_tokens", "prompt_tokens_details.cached_tokens", "weave.artifact_refs",
	"weave.compaction.items_after", "weave.compaction.items_before", "weave.compaction.summary", "weave.content_refs",
	"weave.error.type", "weave.eval.evaluation_name", "weave.eval.example_id", "weave.eval.kind",
	"weave.eval.predict_and_score_call_id", "weave.eval.row_digest", "weave.eval.run_id", "weave.eval.trial_index",
	"weave.object_refs", "weave.parent_call.id", "weave.parent_call.trace_id", "weave.reasoning_content",
	"weave.server.address", "weave.server.port",
}
