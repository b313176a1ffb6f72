// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package weave

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

// TestJudge sends what the exporter would have to repair, as it is, and holds the fake's verdict against Weave's: whether the
// request is taken, how many spans are rejected, and what is listed afterwards.
func TestJudge(t *testing.T) {
	weave := StartIngest(t)
	answers := map[int]int{}
	for i := range 1500 {
		g := newGenerator(uint64(i), 0.12)
		project := fmt.Sprintf("judge%d", i)
		body := marshal(g.resource("entity", project, 2))
		verdict := weavetest.Judge(weavetest.CallsPath, body)
		status, answer := weave.Post(weavetest.CallsPath, body)
		require.Equal(t, status == http.StatusOK, verdict.Status == http.StatusOK, "seed %d: Weave %d %v, the fake %d %s", i, status, answer, verdict.Status, verdict.Reason)
		answers[status]++
		if status != http.StatusOK {
			continue
		}
		require.Equal(t, rejected(answer), verdict.Rejected, "seed %d: %v, %s", i, answer, verdict.Reason)
		rows, readable := weave.List("/calls", "entity/"+project)
		require.Equal(t, len(rows), verdict.Spans-verdict.Lost(), "seed %d, readable: %t", i, readable)
		for _, c := range verdict.Calls {
			if readable {
				requireSame(t, rows, c, i)
			}
		}
	}
	t.Logf("answers by status: %v", answers)
	require.Greater(t, answers[http.StatusOK], 300)
	require.Greater(t, answers[http.StatusBadRequest], 100)
	require.Greater(t, answers[http.StatusInternalServerError], 50)
}

// requireSame holds what the fake shows of a call against Weave's row.
func requireSame(t *testing.T, rows []Row, c weavetest.Call, seed int) {
	t.Helper()
	for _, r := range rows {
		if r["id"] != c.ID {
			continue
		}
		for key, want := range map[string]any{
			"op_name": c.OpName, "display_name": c.Display, "run": c.RunID, "thread": c.Thread, "turn": c.Turn, "status": c.Status,
			"parent": c.ParentID, "exception": c.Exception,
		} {
			got := r.Shown(key)
			if got == nil {
				got = ""
			}
			require.Equal(t, want, got, "seed %d: %s of span %s", seed, key, c.ID)
		}
		delete(r["attributes"].(map[string]any), "otel_span") // Weave's in-memory server shows the dump there.
		require.Equal(t, plain(t, c.Attributes), plain(t, r["attributes"]), "seed %d: attributes of span %s", seed, c.ID)
		return
	}
	require.Fail(t, "a call is missing", "seed %d: %s", seed, c.ID)
}
