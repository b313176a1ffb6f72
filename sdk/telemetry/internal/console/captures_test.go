// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// TestLinesAreThoseOfNeMoLens rebuilds what real programs sent as what Go's SDK exports, and compares with the lines that NeMo
// Lens's own exporter wrote beside it. Four things are made equal, and nothing else is: the order of attributes that Go's
// SDK sorts; an integer in a metric of floats, which Go's SDK refuses; links' trace states, which OTLP as Python sends it does
// not carry; and where a request groups spans by scope, the order of lines.
func TestLinesAreThoseOfNeMoLens(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "testdata", "captures")
	if _, err := os.Stat(root); errors.Is(err, os.ErrNotExist) {
		t.Skip("the captures stand in the repository, not in the module")
	}
	consoles, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "console.jsonl"))
	require.NoError(t, err)
	require.Len(t, consoles, 47)
	for _, file := range consoles {
		run := filepath.Dir(file)
		name, err := filepath.Rel(root, run)
		require.NoError(t, err)
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var want []string
			for line := range strings.Lines(string(text)) {
				line = linkState.ReplaceAllString(sorted(line), `"trace_state": "[]"}, "attributes"`)
				want = append(want, mixed.ReplaceAllString(line, "$1.0,"))
			}
			got := exported(t, run)
			if strings.Contains(run, "servers") {
				slices.Sort(want)
				slices.Sort(got)
			}
			require.Len(t, got, len(want))
			for i := range want {
				require.Equal(t, want[i], got[i])
			}
		})
	}
}

var (
	linkState = regexp.MustCompile(`"trace_state": "[^"]*"\}, "attributes"`)
	mixed     = regexp.MustCompile(`("name": "gpu\.mem".*"value": \d+),`)
)

// exported are the lines of the requests of a run.
func exported(t *testing.T, run string) []string {
	requests, err := filepath.Glob(filepath.Join(run, "[0-9]*"))
	require.NoError(t, err)
	var out bytes.Buffer
	console := New(&out)
	for _, request := range requests {
		switch {
		case strings.Contains(request, "-traces."):
			var traces coltracepb.ExportTraceServiceRequest
			read(t, request, &traces)
			require.NoError(t, console.Spans().ExportSpans(t.Context(), rebuiltSpans(t, &traces)))
		case strings.Contains(request, "-metrics."):
			var metrics colmetricspb.ExportMetricsServiceRequest
			read(t, request, &metrics)
			for _, rm := range metrics.ResourceMetrics {
				require.NoError(t, console.Metrics().Export(t.Context(), rebuiltMetrics(t, rm)))
			}
		default:
			var logs collogspb.ExportLogsServiceRequest
			read(t, request, &logs)
			emitLogs(t, &logs, console.Logs())
		}
	}
	return slices.Collect(strings.Lines(out.String()))
}

// read reads a request in protobuf, or in OTLP's JSON, whose ids are in hex where protobuf's are in base64.
func read(t *testing.T, file string, request proto.Message) {
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	if strings.HasSuffix(file, ".pb") {
		require.NoError(t, proto.Unmarshal(body, request))
		return
	}
	body = hexID.ReplaceAllFunc(body, func(member []byte) []byte {
		parts := hexID.FindSubmatch(member)
		id, err := hex.DecodeString(string(parts[2]))
		require.NoError(t, err)
		return append(base64.StdEncoding.AppendEncode(parts[1], id), '"')
	})
	require.NoError(t, protojson.Unmarshal(body, request))
}

var hexID = regexp.MustCompile(`("(?:traceId|spanId|parentSpanId)": ?")([0-9a-f]*)"`)

// sorted sorts the attributes of resources and points by key, which are those that begin an object.
func sorted(line string) string {
	const before = `{"attributes": {`
	var out strings.Builder
	for {
		head, rest, found := strings.Cut(line, before)
		out.WriteString(head)
		if !found {
			return out.String()
		}
		out.WriteString(before)
		members, n := members(rest)
		slices.Sort(members)
		out.WriteString(strings.Join(members, ", "))
		line = rest[n:]
	}
}

// members are those of an object, and where its closing brace is.
func members(text string) (members []string, end int) {
	start, depth, quoted := 0, 0, false
	for i := 0; ; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case depth == 0 && c == '}':
			if i > start {
				members = append(members, text[start:i])
			}
			return members, i
		case depth == 0 && c == ',':
			members = append(members, text[start:i])
			start = i + len(", ")
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
}

func TestExportersAfterShutdown(t *testing.T) {
	var out bytes.Buffer
	console := New(&out)
	spans, metrics, logs := console.Spans(), console.Metrics(), console.Logs()
	for range 2 {
		require.NoError(t, spans.Shutdown(t.Context()))
		require.NoError(t, metrics.Shutdown(t.Context()))
		require.NoError(t, logs.Shutdown(t.Context()))
	}
	span, rm, record := one(t, "late", 1, 1.5)
	require.NoError(t, spans.ExportSpans(t.Context(), span))
	require.Error(t, metrics.Export(t.Context(), rm))
	require.NoError(t, logs.Export(t.Context(), record))
	require.Empty(t, out.String())
}

func TestExportersWithoutTime(t *testing.T) {
	var out bytes.Buffer
	console := New(&out)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	span, rm, record := one(t, "late", 1, 1.5)
	require.ErrorIs(t, console.Spans().ExportSpans(ctx, span), context.Canceled)
	require.ErrorIs(t, console.Metrics().Export(ctx, rm), context.Canceled)
	require.ErrorIs(t, console.Logs().Export(ctx, record), context.Canceled)
	require.Empty(t, out.String())
}

type fullDisk struct{}

var errFull = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestErrorsOfTheWriter(t *testing.T) {
	console := New(fullDisk{})
	span, rm, record := one(t, "lost", 1, 1.5)
	require.ErrorIs(t, console.Spans().ExportSpans(t.Context(), span), errFull)
	require.ErrorIs(t, console.Metrics().Export(t.Context(), rm), errFull)
	require.ErrorIs(t, console.Logs().Export(t.Context(), record), errFull)
	require.NoError(t, console.Spans().ExportSpans(t.Context(), nil))
}
