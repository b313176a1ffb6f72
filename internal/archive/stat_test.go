// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestStatCountsByRunAndRank(t *testing.T) {
	second := int(time.Second)
	content := spanLine("a", 100*second, 0) + spanLine("b", 130*second, 0) + spanLine("c", 400*second, 0) + spanLine("d", 200*second, 5) +
		`{"type":"metric","name":"m","kind":"gauge","start_ns":0,"time_ns":1000,"value":1,"resource":{"attributes":{"service.name":"gym"}}}` + "\n" +
		`{"type":"log","time_ns":0,"resource":{"attributes":{"service.name":"gym"}}}` + "\n{\"torn"
	res := readBytes(t, "f", []byte(content))
	s := NewStat(time.Minute)
	for _, rec := range res.records {
		s.Add(rec)
	}
	s.File(Input{Path: "f"}, res.stats, int64(len(content)))
	got, err := json.Marshal(s.Summary())
	require.NoError(t, err)
	spanBytes := float64(4*len(spanLine("a", 100*second, 0))) * float64(len(content)) / float64(len(content)) / 4
	require.JSONEq(t, fmt.Sprintf(`{
		"version": 1, "spans": 4, "points": 1, "logs": 1, "first_ns": 1000, "last_ns": 400000001000,
		"bytes": %[1]d, "content_bytes": %[1]d, "bytes_per_span": %[2]v, "other_lines": 0, "damaged": 0, "torn_bytes": 6, "gap_ns": 60000000000,
		"files": [{"path": "f", "compression": "none", "layouts": {"compact": 6}, "spans": 4, "points": 1, "logs": 1,
			"bytes": %[1]d, "content_bytes": %[1]d, "other_lines": 0, "damaged": 0, "torn_bytes": 6}],
		"runs": [
			{"run": "", "services": ["gym"], "world_size": 0, "missing": "", "spans": 0, "points": 1, "logs": 1, "first_ns": 1000, "last_ns": 1000, "ranks": [
				{"rank": null, "spans": 0, "points": 1, "logs": 1, "first_ns": 1000, "last_ns": 1000, "gaps": []}]},
			{"run": "r1", "services": [], "world_size": 8, "missing": "1-4,6-7", "spans": 4, "points": 0, "logs": 0, "first_ns": 100000000000, "last_ns": 400000001000, "ranks": [
				{"rank": 0, "spans": 3, "points": 0, "logs": 0, "first_ns": 100000000000, "last_ns": 400000001000, "gaps": [{"from_ns": 130000001000, "to_ns": 400000000000}]},
				{"rank": 5, "spans": 1, "points": 0, "logs": 0, "first_ns": 200000000000, "last_ns": 200000001000, "gaps": []}]}]
	}`, len(content), spanBytes), string(got))
}

func TestGapsDoNotDependOnTheOrder(t *testing.T) {
	var times []pcommon.Timestamp
	for i := range 1000 {
		if i%100 > 10 { // A gap of eleven in every hundred.
			times = append(times, pcommon.Timestamp(1000+i))
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		random.Shuffle(len(times), func(i, j int) { times[i], times[j] = times[j], times[i] })
		var iv intervals
		for _, at := range times {
			require.True(t, iv.add(at, 5))
		}
		gaps := iv.gaps()
		require.Len(t, gaps, 9)
		require.Equal(t, Gap{1099, 1111}, gaps[0])
	}
}

func TestGapsAreBounded(t *testing.T) {
	var iv intervals
	for i := range maxIntervals {
		require.True(t, iv.add(pcommon.Timestamp(10*i+1), 1))
	}
	require.False(t, iv.add(5, 1))
	require.Len(t, iv.gaps(), maxIntervals-1)
}

func TestMissingRanks(t *testing.T) {
	for _, tt := range []struct {
		there []int
		world int
		want  string
	}{
		{nil, 8, ""},
		{[]int{0, 1, 2, 3}, 4, ""},
		{[]int{1}, 4, "0,2-3"},
		{[]int{0, 9}, 4, "1-3"},
		{[]int{0}, 0, ""},
		{[]int{0}, 1 << 31, "1-2147483647"},
	} {
		require.Equal(t, tt.want, missing(tt.there, tt.world), "%v of %d", tt.there, tt.world)
	}
	require.Equal(t, "0-2,5,7-8", RankList([]int{0, 1, 2, 5, 7, 8}))
}
