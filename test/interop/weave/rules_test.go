// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package weave

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

// TestRules replays the rules of the fake against Weave's code, so that the two cannot drift.
func TestRules(t *testing.T) {
	weave := StartIngest(t)
	unseen := 0
	for i, r := range weavetest.Rules {
		t.Run(r.Name, func(t *testing.T) {
			project := fmt.Sprintf("rule%d", i)
			path := cmp.Or(r.Path, weavetest.CallsPath)
			status, answer := weave.Post(path, r.BodyFor("entity", project))
			list := "/calls"
			if path == weavetest.AgentsPath {
				list = "/spans"
			}
			rows, readable := weave.List(list, "entity/"+project)
			if r.Unseen != "" {
				unseen++
				require.Equal(t, http.StatusOK, status, "%s", answer)
				return
			}
			require.Equal(t, r.Status, status, "%s", answer)
			require.Equal(t, r.Reject, rejected(answer), "%s", answer)
			require.Equal(t, r.Lost, 2-len(rows), "%s, readable: %t", answer, readable)
			if len(r.Shows) == 0 {
				return
			}
			require.Len(t, rows, 2)
			span := rows[0]
			if span["id"] == weavetest.RuleNeighbour {
				span = rows[1]
			}
			for key, want := range r.Shows {
				if key != "useless" { // A verdict of the fake, not a field of Weave's.
					require.Equal(t, plain(t, want), plain(t, span.Shown(key)), key)
				}
			}
		})
	}
	t.Logf("%d rules, of which %d cannot be seen in Weave's published code", len(weavetest.Rules), unseen)
}

// rejected is the number of rejected spans that an answer of either endpoint tells.
func rejected(answer map[string]any) int {
	if partial, ok := answer["partial_success"].(map[string]any); ok {
		answer = partial
	}
	n, _ := strconv.Atoi(fmt.Sprint(answer["rejected_spans"]))
	return n
}

// plain is a value as Weave's JSON gives it back: all numbers are float64, those that JSON lacks are null.
func plain(t *testing.T, v any) any {
	text, err := json.Marshal(finite(v))
	require.NoError(t, err)
	var back any
	require.NoError(t, json.Unmarshal(text, &back))
	return back
}

func finite(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = finite(e)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = finite(e)
		}
		return m
	}
	return v
}
