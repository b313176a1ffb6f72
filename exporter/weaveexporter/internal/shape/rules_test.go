// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

// Whatever is known to go wrong at Weave, shaped, does not: each input of the fake's rules is taken whole, errors are errors, and what has
// ids is there.
func TestRulesShaped(t *testing.T) {
	undecodable := 0
	for _, rule := range weavetest.Rules {
		t.Run(rule.Name, func(t *testing.T) {
			td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(rule.Body())
			if err != nil {
				undecodable++ // No receiver takes it.
				return
			}
			path := cmp.Or(rule.Path, weavetest.CallsPath)
			got := shaped(t, options(func(o *Options) {
				o.RunID = "run"
				if path == weavetest.AgentsPath {
					o.Mode = ModeAgents
				}
			}), td)
			require.Equal(t, got.Dropped.Sum(), got.Dropped[NoID])
			spans := got.Dropped[NoID]
			for i := range got.Requests {
				verdict := weavetest.Judge(path, got.Requests[i].AppendTo(nil))
				require.Empty(t, verdict.Problem())
				spans += verdict.Spans
				for _, c := range verdict.Calls {
					require.Equal(t, errorsOf(td)[c.ID], c.Status == "error")
				}
			}
			require.Equal(t, 2, spans)
		})
	}
	require.Less(t, undecodable, 8)
}

// errorsOf tells of each span whether it is an error, by id.
func errorsOf(td ptrace.Traces) map[string]bool {
	failed := map[string]bool{}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				failed[s.SpanID().String()] = s.Status().Code() == ptrace.StatusCodeError
			}
		}
	}
	return failed
}
