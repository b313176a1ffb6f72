// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
	"github.com/lenscol/lenscol/internal/testbed"
)

// captured are the records of all captured requests of one folder below testdata/captures, "" for all.
func captured(t testing.TB, folder string) []Record {
	t.Helper()
	var all []Record
	add := func(rec jsonlreader.Record) { all = append(all, Record{Record: rec, Bytes: 500}) }
	for _, c := range testbed.Captures(t) {
		if !strings.HasPrefix(c.Name, folder) {
			continue
		}
		if c.JSON {
			require.NoError(t, decodeOTLPJSON(c.Body, add), c.Name)
			continue
		}
		require.NoError(t, decodeOTLPProto(c.Body, signalOf(c.Signal), add), c.Name)
	}
	require.NotEmpty(t, all, folder)
	return all
}

// consoleCaptures are the files that NeMo Lens's console exporter wrote, by the folder of the capture that holds the same telemetry.
func consoleCaptures(t testing.TB) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..", "testdata", "captures")
	paths, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "console.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	found := map[string]string{}
	for _, path := range paths {
		folder, err := filepath.Rel(root, filepath.Dir(path))
		require.NoError(t, err)
		found[folder] = path
	}
	return found
}

// wire is a record as protobuf, with its origin: equal bytes are equal telemetry.
func wire(t testing.TB, rec Record) string {
	t.Helper()
	var data []byte
	var err error
	switch rec.Signal {
	case pipeline.SignalTraces:
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rec.Scope.Resource.CopyTo(rs.Resource())
		rs.SetSchemaUrl(rec.Scope.Resource.SchemaURL)
		ss := rs.ScopeSpans().AppendEmpty()
		rec.Scope.CopyTo(ss.Scope())
		ss.SetSchemaUrl(rec.Scope.SchemaURL)
		rec.Span.CopyTo(ss.Spans().AppendEmpty())
		data, err = (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	case pipeline.SignalMetrics:
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rec.Scope.Resource.CopyTo(rm.Resource())
		rm.SetSchemaUrl(rec.Scope.Resource.SchemaURL)
		sm := rm.ScopeMetrics().AppendEmpty()
		rec.Scope.CopyTo(sm.Scope())
		sm.SetSchemaUrl(rec.Scope.SchemaURL)
		rec.Metric.CopyTo(sm.Metrics().AppendEmpty())
		data, err = (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
	default:
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rec.Scope.Resource.CopyTo(rl.Resource())
		rl.SetSchemaUrl(rec.Scope.Resource.SchemaURL)
		sl := rl.ScopeLogs().AppendEmpty()
		rec.Scope.CopyTo(sl.Scope())
		sl.SetSchemaUrl(rec.Scope.SchemaURL)
		rec.Log.CopyTo(sl.LogRecords().AppendEmpty())
		data, err = (&plog.JSONMarshaler{}).MarshalLogs(ld)
	}
	require.NoError(t, err)
	return string(data)
}

func wires(t testing.TB, recs []Record) []string {
	all := make([]string, len(recs))
	for i, rec := range recs {
		all[i] = wire(t, rec)
	}
	return all
}

// result is all that a file holds.
type result struct {
	records []Record
	damage  []string // without the file's name
	stats   Stats
}

func readBytes(t testing.TB, name string, content []byte) result {
	t.Helper()
	r, err := NewReader(bytes.NewReader(content), name)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	var res result
	for {
		rec, err := r.Next()
		var bad *Damage
		switch {
		case err == nil:
			res.records = append(res.records, rec)
		case errors.As(err, &bad):
			res.damage = append(res.damage, fmt.Sprintf("%d: %v", bad.Line, bad.Err))
		default:
			require.ErrorIs(t, err, io.EOF)
			res.stats = r.Stats()
			return res
		}
	}
}

func readFile(t testing.TB, path string) result {
	t.Helper()
	return readBytes(t, path, mustRead(t, path))
}

// readFolder reads all files of a folder, which hold nothing but records, and gives check what was counted of each.
func readFolder(t testing.TB, folder string, check func(Input, Stats)) (recs []Record) {
	t.Helper()
	inputs, err := Find([]string{folder})
	require.NoError(t, err)
	files := NewFiles(inputs, func(_ Input, err error) { require.NoError(t, err) })
	files.OnFile = func(in Input, s Stats) {
		require.Zero(t, s.Torn+s.Foreign+s.Damaged+s.Unknown, in.Path)
		check(in, s)
	}
	for {
		rec, _, err := files.Next()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			return recs
		}
		recs = append(recs, rec)
	}
}

// readInputs reads files that were found, and says what is wrong with them.
func readInputs(inputs []Input) (recs []Record, problems []string) {
	files := NewFiles(inputs, func(_ Input, err error) { problems = append(problems, err.Error()) })
	for {
		rec, _, err := files.Next()
		if err != nil {
			return recs, problems // io.EOF
		}
		recs = append(recs, rec)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

// write writes records in a layout.
func write(t testing.TB, layout jsonlexporter.Layout, recs []Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, layout, jsonlexporter.ResourceReference)
	require.NoError(t, err)
	for _, rec := range recs {
		require.NoError(t, w.Write(rec))
	}
	require.NoError(t, w.Flush())
	require.EqualValues(t, len(recs), w.Written())
	return out.Bytes()
}

// split cuts text into n parts at line ends, as flushes do.
func split(text []byte, n int) (parts [][]byte) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i := range n {
		part := bytes.Join(lines[i*len(lines)/n:(i+1)*len(lines)/n], nil)
		if len(part) > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

func gzipped(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&out)
		_, err := w.Write(part)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return out.Bytes()
}

func zstded(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	defer enc.Close()
	var out []byte
	for _, part := range parts {
		out = enc.EncodeAll(part, out)
	}
	return out
}

// span is a compact line with an inline resource.
func spanLine(name string, start, rank int) string {
	return fmt.Sprintf(`{"type":"span","name":%q,"start_ns":%d,"duration_ns":1000,"resource":{"attributes":{"nemo.run.id":"r1","nv.dl.rank":%d,"nv.dl.world_size":8}}}`+"\n",
		name, start, rank)
}

func names(recs []Record) (all []string) {
	for _, rec := range recs {
		switch rec.Signal {
		case pipeline.SignalTraces:
			all = append(all, rec.Span.Name())
		case pipeline.SignalMetrics:
			all = append(all, rec.Metric.Name())
		default:
			all = append(all, rec.Log.Body().AsString())
		}
	}
	return all
}
