// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package lens

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// lost is what Lens prints and OTLP does not carry, as docs/format.md lists it. Nothing else may differ.
var lost = []struct{ why, printed, written string }{
	{"the trace state of links is not sent", `"trace_state": "['{key=vendor, value=a:b}']"}, "attributes"`, `"trace_state": "[]"}, "attributes"`},
	{"sum, min and max of histograms are doubles in OTLP", `"sum": 128, `, `"sum": 128.0, `},
	{"", `"min": 128, "max": 128, `, `"min": 128.0, "max": 128.0, `},
	{"", `"sum": 7, `, `"sum": 7.0, `},
	{"", `"min": 7, "max": 7, `, `"min": 7.0, "max": 7.0, `},
}

// TestConsole holds the console layout against what Lens prints of the same telemetry, byte for byte.
func TestConsole(t *testing.T) {
	t.Parallel()
	c := testbed.Start(t, testbed.Options{Config: `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
exporters:
  jsonl: {layout: console}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [jsonl]}
    metrics: {receivers: [otlp], exporters: [jsonl]}
    logs: {receivers: [otlp], exporters: [jsonl]}
  telemetry: {metrics: {level: none}}
`})
	p := run(t, c, []string{"NEMO_LENS_EXPORTER=console"}, "console.py")
	c.Stop()
	printed := objects(t, p.read(p.stdout))
	for signal, key := range map[string]string{"traces": "name", "metrics": "resource_metrics", "logs": "body"} {
		text, err := os.ReadFile(filepath.Join(c.Dir, "lens-data", signal+".jsonl"))
		require.NoError(t, err)
		var want []string
		for _, object := range printed {
			if strings.HasPrefix(object, `{"`+key+`"`) {
				want = append(want, object)
			}
		}
		require.NotEmpty(t, want)
		all := strings.Join(want, "")
		for _, l := range lost {
			all = strings.ReplaceAll(all, l.printed, l.written)
		}
		require.Equal(t, slices.Collect(strings.Lines(all)), slices.Collect(strings.Lines(string(text))), signal)
	}
	for _, l := range lost {
		require.Contains(t, strings.Join(printed, ""), l.printed)
	}

	// What Lens printed can be read, and written again as it was; but for metrics, of which two collections may become one object.
	file := filepath.Join(t.TempDir(), "lens_rank0.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(p.read(p.stdout)), 0o600))
	again, err := exec.Command(testbed.Binary(t), "jsonl", "cat", "--to", "console", file).Output()
	require.NoError(t, err)
	isMetrics := func(object string) bool { return strings.HasPrefix(object, `{"resource_metrics"`) }
	require.Equal(t, slices.DeleteFunc(printed, isMetrics), slices.DeleteFunc(slices.Collect(strings.Lines(string(again))), isMetrics))
}

// objects are the JSON objects of a text, a line each: what Python's json.dumps writes without the indent with which 0.1 prints. A text of JSON
// has no line ends in its strings.
func objects(t *testing.T, text string) (lines []string) {
	t.Helper()
	afterComma, others := regexp.MustCompile(`,\n *`), regexp.MustCompile(`\n *`)
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var object json.RawMessage
		err := decoder.Decode(&object)
		if err == io.EOF {
			return lines
		}
		require.NoError(t, err)
		lines = append(lines, others.ReplaceAllString(afterComma.ReplaceAllString(string(object), ", "), "")+"\n")
	}
}
