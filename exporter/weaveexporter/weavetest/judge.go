// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Verdict is what becomes of one request.
type Verdict struct {
	Status   int    // of HTTP
	Reason   string // of a refusal, or of a partial success
	Spans    int    // in the request
	Rejected int    // spans rejected in a partial success
	Unrouted int    // spans dropped in silence, for want of entity and project
	Merged   int    // spans that overwrote another span of the request
	Calls    []Call // what is stored, after merging; empty at the agents endpoint
	Agents   []AgentSpan
}

// OK tells whether every span of the request is stored, whole and under ids of its own.
func (v Verdict) OK() bool { return false }

// Judge says what becomes of a request to [CallsPath] or [AgentsPath], from its protobuf body alone.
func Judge(path string, body []byte) Verdict { return Verdict{} }

// JudgeTraces judges what the exporter would send: the OTLP protobuf form of td.
func JudgeTraces(path string, td ptrace.Traces) Verdict { return Verdict{} }

// Call is a row of the Traces view.
type Call struct {
	Project  string // entity/project
	ID       string // span id, hex
	TraceID  string // hex
	ParentID string // hex; empty: a root
	OpName   string // the span's name, cleaned and shortened
	Display  string // display name; empty: OpName is shown
	Start    time.Time
	End      time.Time

	Status    string // success or error
	Exception string // status message of an error

	RunID   string // bare id of the W&B run; empty: not linked
	Step    *int64 // of the run
	StepEnd *int64
	Thread  string
	Turn    string // id of the turn; empty: none

	Attributes map[string]any // nested, as they are stored
	Inputs     map[string]any
	Output     any
	Usage      map[string]any
	Dump       map[string]any // the whole span; a user reads it but cannot filter on it

	Blanked []string // columns whose content was replaced because the row was too large
	Useless bool     // an id of zeros or of the wrong length: no other span can tell it from another
}

// Filter returns the value that a filter on attributes.<key> sees, key with its dots.
func (c Call) Filter(key string) (any, bool) { return nil, false }

// AgentSpan is a row of the Agents view.
type AgentSpan struct {
	Project  string // entity/project
	ID       string // span id, hex
	TraceID  string
	ParentID string
	Name     string
	Status   string // UNSET, OK or ERROR
	RunID    string // bare, of the wb_run_id header

	Operation    string
	Agent        string
	Conversation string
	InputTokens  int64
	OutputTokens int64
	Custom       map[string]any // the attributes without a column, flattened
}
