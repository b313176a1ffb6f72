// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

func sortAll(t *testing.T, s *Sorter, recs []Record) []Record {
	t.Helper()
	for _, rec := range recs {
		require.NoError(t, s.Add(rec))
	}
	var got []Record
	require.NoError(t, s.Each(func(rec Record) error {
		got = append(got, rec)
		return nil
	}))
	return got
}

func TestSortHoldsNoMoreThanItsMemory(t *testing.T) {
	const records, memory = 20_000, 100 << 10
	scopes := []*jsonlreader.Scope{
		newScope(pcommon.NewInstrumentationScope(), "", newResource(pcommon.NewResource(), "a")),
		newScope(pcommon.NewInstrumentationScope(), "", newResource(pcommon.NewResource(), "b")),
	}
	random := rand.New(rand.NewPCG(1, 2))
	var recs []Record
	for i := range records {
		span := ptrace.NewSpan()
		span.SetName(fmt.Sprint(i))
		span.SetKind(ptrace.SpanKindInternal)
		span.SetStartTimestamp(pcommon.Timestamp(random.Uint64N(1000)))
		recs = append(recs, Record{Record: jsonlreader.Record{Signal: pipeline.SignalTraces, Span: span, Scope: scopes[i%2]}, Bytes: 100})
	}
	want := slices.Clone(recs)
	slices.SortStableFunc(want, func(a, b Record) int { return int(a.Time()) - int(b.Time()) })
	wantText := wires(t, want)

	folder := t.TempDir()
	s := NewSorter(memory, folder)
	for _, rec := range recs[:records/2] {
		require.NoError(t, s.Add(rec))
	}
	require.Greater(t, len(s.levels), 1, "runs are merged, so that no number of them needs more memory")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left, "a killed sort leaves nothing")
	got := sortAll(t, s, recs[records/2:])
	require.LessOrEqual(t, s.most, int64(memory))
	require.Equal(t, wantText, wires(t, got))
}

func TestSortOfAllCapturesKeepsThem(t *testing.T) {
	want := captured(t, "")
	slices.SortStableFunc(want, func(a, b Record) int { return int(int64(a.Time()) - int64(b.Time())) })
	wantText := wires(t, want)
	for name, memory := range map[string]int64{"in memory": 1 << 30, "in files": 20_000} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, wantText, wires(t, sortAll(t, NewSorter(memory, t.TempDir()), captured(t, ""))))
		})
	}
}

func TestSortSaysWhereItCannotWrite(t *testing.T) {
	s := NewSorter(1, "/nowhere/at/all")
	recs := readBytes(t, "f", []byte(spanLine("a", 1, 0)+spanLine("b", 2, 0))).records
	require.NoError(t, s.Add(recs[0]))
	require.ErrorContains(t, s.Add(recs[1]), "sort: open /nowhere/at/all/")
}
