// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRules holds the fake to the rules; test/interop/weave holds them to Weave.
func TestRules(t *testing.T) {
	names := map[string]bool{}
	for _, r := range Rules {
		t.Run(r.Name, func(t *testing.T) {
			require.False(t, names[r.Name], "two rules have this name")
			names[r.Name] = true
			v := Judge(cmp.Or(r.Path, CallsPath), r.Body())
			require.Equal(t, r.Status, v.Status, v.Reason)
			require.Equal(t, r.Reject, v.Rejected, v.Reason)
			require.Equal(t, r.Lost, lost(v), v.Reason)
			if len(r.Shows) == 0 {
				return
			}
			require.Len(t, v.Calls, 2)
			for key, want := range r.Shows {
				require.Equal(t, plain(t, want), plain(t, shown(v.Calls[1], key)), key)
			}
		})
	}
}

// lost counts the spans that a user does not see; a refused request says nothing of its spans.
func lost(v Verdict) int {
	if v.Status != http.StatusOK {
		return 2
	}
	return v.Lost()
}

// shown is what a user sees of a call, nil where it is not there.
func shown(c Call, key string) any {
	absent := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	step := func(n *int64) any {
		if n == nil {
			return nil
		}
		return *n
	}
	switch key {
	case "op_name":
		return c.OpName
	case "display_name":
		return absent(c.Display)
	case "run":
		return absent(c.RunID)
	case "step":
		return step(c.Step)
	case "step_end":
		return step(c.StepEnd)
	case "thread":
		return absent(c.Thread)
	case "turn":
		return absent(c.Turn)
	case "status":
		return c.Status
	case "exception":
		return absent(c.Exception)
	case "parent":
		return absent(c.ParentID)
	case "input":
		return c.Inputs
	case "output":
		return c.Output
	case "blanked":
		return len(c.Blanked) > 0
	case "useless":
		return c.Useless
	}
	v, _ := c.Filter(strings.TrimPrefix(key, "attributes."))
	return v
}

// plain is a value as JSON gives it back: all numbers are float64.
func plain(t *testing.T, v any) any {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	var back any
	require.NoError(t, json.Unmarshal(text, &back))
	return back
}
