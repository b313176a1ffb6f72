// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import "time"

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

	Blanked    []string // columns whose content was replaced because the row was too large
	Useless    bool     // an id of zeros, or none: no other span can tell it from another
	Unreadable bool     // no list with it can be made: it nests too deep, or holds a reference where Weave converts none, or half a surrogate pair
}

// Filter returns the value that a filter on attributes.<key> sees, key with its dots.
func (c Call) Filter(key string) (any, bool) {
	v := lookup(c.Attributes, key)
	return v, v != nil
}

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
