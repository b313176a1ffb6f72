// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// FuzzReader: whatever the bytes, the reader ends without a panic, every error is a LineError further down the file, no line is
// lost without a count, and batches hold what single records hold.
func FuzzReader(f *testing.F) {
	seeds, err := os.ReadFile("testdata/every_kind.jsonl")
	require.NoError(f, err)
	f.Add(seeds)
	for line := range bytes.Lines(seeds) {
		f.Add(bytes.Clone(line))
	}
	for _, s := range []string{
		"", "\n", "{", "{}\n", "[1]\n", "\x00\n\xff\n", `{"type":"span"}{"type":"span"}` + "\n",
		`{"type":"log","body":{"@map":{"@map":{"@pairs":[["a",{"@bytes":"AA=="}]]}},"b":1}}` + "\n",
		`{"type":"log","body":"\ud800\ud800\n"}` + "\n", `{"type":"span","start_ns":1,"duration_ns":-9223372036854775808}` + "\n",
		`{"type":"log","body":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}\n",
		strings.Join(archive, "\n"),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		opts := []jsonlreader.Option{jsonlreader.WithMaxLineBytes(1 << 12), jsonlreader.WithMaxBatchRecords(3)}
		lines := int64(bytes.Count(data, []byte("\n")))

		var whole [][]byte
		r := jsonlreader.New(bytes.NewReader(data), "f", opts...)
		var last, bad int64
		for {
			b, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				last, bad = requireLineError(t, err, last), bad+1
				continue
			}
			require.Positive(t, b.Records)
			require.Greater(t, b.FirstLine, last)
			last = b.LastLine
			whole = append(whole, records(t, b)...)
		}
		stats := r.Stats()
		require.Equal(t, bad, stats.BadLines)
		require.Equal(t, int64(len(whole)), stats.Spans+stats.Points+stats.Logs)
		require.LessOrEqual(t, stats.Spans+stats.Points+stats.Logs+stats.BadLines+stats.UnknownLines, stats.Lines)
		if r.Torn() == 0 {
			require.Equal(t, lines, stats.Lines)
		}

		var single [][]byte
		one := readAll(t, string(data), append(opts, jsonlreader.WithMaxBatchRecords(1))...)
		for _, b := range one.batches {
			single = append(single, records(t, b)...)
		}
		require.Equal(t, single, whole)
		require.Equal(t, stats, one.stats)
	})
}

func requireLineError(t *testing.T, err error, after int64) int64 {
	var bad *jsonlreader.LineError
	require.True(t, errors.As(err, &bad), "%v", err)
	require.Greater(t, bad.Line, after)
	require.NotEmpty(t, err.Error())
	return bad.Line
}
