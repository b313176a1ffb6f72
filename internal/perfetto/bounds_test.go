// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// TestSorter puts items in order with memory for a few, so that files are made of files, and with enough.
func TestSorter(t *testing.T) {
	for _, memory := range []int{1, 200, 1 << 20} {
		t.Run(fmt.Sprint(memory), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			s := sorter{memory: memory, folder: t.TempDir()}
			type pair struct {
				at   int64
				item string
			}
			var want, got []pair
			for i := range 4200 {
				p := pair{int64(random.IntN(100)) - 50, fmt.Sprintf("%d%s", i, make([]byte, random.IntN(100)))}
				want = append(want, p)
				require.NoError(t, s.add(p.at, []byte(p.item)))
			}
			if memory == 1 {
				require.GreaterOrEqual(t, len(s.levels), 3, "files of files of files")
			}
			slices.SortStableFunc(want, func(a, b pair) int { return cmp.Compare(a.at, b.at) })
			require.NoError(t, s.each(func(at int64, item []byte) error {
				got = append(got, pair{at, string(item)})
				return nil
			}))
			require.Equal(t, want, got)
			left, err := os.ReadDir(s.folder)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestATemporaryFileThatWasChangedIsAnError(t *testing.T) {
	s := sorter{memory: 1, folder: t.TempDir()}
	defer s.close()
	for i := range 10 {
		require.NoError(t, s.add(int64(i), []byte("item")))
	}
	require.NoError(t, s.levels[0][3].Truncate(12))
	require.ErrorContains(t, s.each(func(int64, []byte) error { return nil }), "sort: ")
	trace := New(Options{})
	_, err := trace.decode(1, []byte{9})
	require.ErrorIs(t, err, errItem)
	_, err = trace.decode(1, []byte{0, 7, 0})
	require.ErrorIs(t, err, errItem)
}

func TestLinksAndSeriesAreBounded(t *testing.T) {
	f := flows{targets: map[uint64]target{}}
	link := ptrace.NewSpanLink()
	for i := range maxTargets + 10 {
		var id pcommon.SpanID
		binary.BigEndian.PutUint64(id[:], uint64(i))
		link.SetSpanID(id)
		f.add(link)
	}
	require.Len(t, f.targets, maxTargets)
	require.EqualValues(t, 10, f.crowded)
}

func TestSourcesAreBounded(t *testing.T) {
	s := newSources()
	for pid := range maxSources + 10 {
		scope := &jsonlreader.Scope{InstrumentationScope: pcommon.NewInstrumentationScope(), Resource: &jsonlreader.Resource{Resource: pcommon.NewResource()}}
		scope.SetName(fmt.Sprint(pid))
		scope.Resource.Attributes().PutInt("dl.rank", 1)
		scope.Resource.Attributes().PutInt("process.pid", int64(pid))
		source, _ := s.of(scope)
		require.Equal(t, min(pid, maxSources), source)
	}
	require.Len(t, s.processes, 2)
	require.Len(t, s.scopes, maxScopes)
	s.settle(Clocks{})
	require.Equal(t, []string{"rank 0001", "others"}, []string{s.processes[0].name, s.processes[1].name})
}
