// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/archive"
	"github.com/lenscol/lenscol/internal/perfetto"
)

// FuzzFile draws whatever an archive can be read out of: the trace is one that Perfetto reads, in both formats.
func FuzzFile(f *testing.F) {
	consoles, err := filepath.Glob(filepath.Join("..", "..", "testdata", "captures", "0.2.0", "*", "grpc", "console.jsonl"))
	require.NoError(f, err)
	for _, path := range consoles {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		if len(text) < 4<<10 { // Of long ones every find is minimized for a minute.
			f.Add(text)
		}
	}
	f.Add([]byte(line("a", "1", "", 10, -10, "") + line("b", "2", "1", 10, 0, `,"status":"ERROR"`)))
	f.Add([]byte(`{"type":"span","name":"a","start_ns":18446744073709551615,"duration_ns":1,"events":[{"time_ns":18446744073709551615}]}` + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) { drawBoth(t, content) })
}

// FuzzNesting draws spans of few ids and times: what overlaps and circles in every way.
func FuzzNesting(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Add(bytes.Repeat([]byte{0}, 40))
	f.Add(bytes.Repeat([]byte{255, 17, 3, 128}, 10))
	f.Fuzz(func(t *testing.T, shape []byte) {
		var lines strings.Builder
		for len(shape) >= 4 && lines.Len() < 100_000 {
			id, parent := strconv.Itoa(int(shape[0]%16)), strconv.Itoa(int(shape[1]%16))
			more := ""
			if shape[0] >= 128 {
				more = `,"events":[{"name":"e","time_ns":` + strconv.Itoa(int(shape[1])) + `}]`
			}
			lines.WriteString(line("s", id, parent, int64(shape[2]), int64(int8(shape[3])), more))
			shape = shape[4:]
		}
		drawBoth(t, []byte(lines.String()))
	})
}

func drawBoth(t *testing.T, content []byte) {
	for _, asJSON := range []bool{false, true} {
		trace := perfetto.New(perfetto.Options{JSON: asJSON, SortMemory: 1 << 12})
		r, err := archive.NewReader(bytes.NewReader(content), "traces.jsonl")
		if err != nil {
			require.NoError(t, trace.Close())
			return
		}
		for {
			rec, err := r.Next()
			var damage *archive.Damage
			if err != nil && !errors.As(err, &damage) {
				break
			}
			if err == nil {
				require.NoError(t, trace.Add(rec))
			}
		}
		var out bytes.Buffer
		_, err = trace.Write(&out)
		require.NoError(t, errors.Join(trace.Close(), r.Close()))
		if errors.Is(err, perfetto.ErrNothing) {
			return
		}
		require.NoError(t, err)
		if asJSON {
			var read chromeTrace
			require.NoError(t, json.NewDecoder(&out).Decode(&read))
			require.NoError(t, chromeNests(read.TraceEvents))
			continue
		}
		mustJudge(t, out.Bytes())
	}
}
