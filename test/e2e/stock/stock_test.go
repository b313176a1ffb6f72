// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package stock has a collector of upstream's parts alone, as `make stock` builds it, send to the built binary, receive from it and read its
// files, and the other way round: `make e2e E2E=stock`.
package stock

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var signals = []string{"traces", "metrics", "logs"}

// way is one that OTLP can take between two collectors, with the ports of its own at both of them.
type way struct {
	Name, Exporter, Protocol, Settings string
	Middle, End                        string // ports
}

func ways(t *testing.T) (all []way) {
	for _, compression := range []string{"none", "gzip", "zstd"} {
		for _, w := range []way{
			{Name: "grpc", Exporter: "otlp_grpc", Protocol: "grpc"},
			{Name: "protobuf", Exporter: "otlp_http", Protocol: "http", Settings: "encoding: proto, "},
			{Name: "json", Exporter: "otlp_http", Protocol: "http", Settings: "encoding: json, "},
		} {
			w.Name += "-" + compression
			w.Settings += "tls: {insecure: true}, compression: " + compression
			w.Middle, w.End = testbed.FreePort(t), testbed.FreePort(t)
			all = append(all, w)
		}
	}
	return all
}

// The first sends what comes to it on each way to the middle, which archives it and sends it on, on the same way, to the end.
var configs = template.Must(template.New("").Funcs(template.FuncMap{"signals": func() []string { return signals }}).Parse(`
{{- define "otlp" }}
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:${env:LENSCOL_GRPC_PORT}"}
      http: {endpoint: "127.0.0.1:${env:LENSCOL_HTTP_PORT}"}
{{- end }}

{{- define "first" }}
{{- template "otlp" }}
exporters:
{{- range . }}
  {{ .Exporter }}/{{ .Name }}: {endpoint: "http://127.0.0.1:{{ .Middle }}", {{ .Settings }}}
{{- end }}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
{{- range $signal := signals }}
    {{ $signal }}:
      receivers: [otlp]
      exporters: [{{ range $i, $w := $ }}{{ if $i }}, {{ end }}{{ .Exporter }}/{{ .Name }}{{ end }}]
{{- end }}
{{- end }}

{{- define "middle" }}
receivers:
{{- range . }}
  otlp/{{ .Name }}: {protocols: { {{- .Protocol }}: {endpoint: "127.0.0.1:{{ .Middle }}"}}}
{{- end }}
exporters:
{{- range . }}
  {{ .Exporter }}/{{ .Name }}: {endpoint: "http://127.0.0.1:{{ .End }}", {{ .Settings }}}
  jsonl/{{ .Name }}: {path: "{{ .Name }}/{signal}.jsonl"}
{{- end }}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
{{- range $way := . }}
{{- range $signal := signals }}
    {{ $signal }}/{{ $way.Name }}: {receivers: [otlp/{{ $way.Name }}], exporters: [jsonl/{{ $way.Name }}, {{ $way.Exporter }}/{{ $way.Name }}]}
{{- end }}
{{- end }}
{{- end }}

{{- define "end" }}
receivers:
{{- range . }}
  otlp/{{ .Name }}: {protocols: { {{- .Protocol }}: {endpoint: "127.0.0.1:{{ .End }}"}}}
{{- end }}
exporters:
{{- range . }}
  file/{{ .Name }}: {path: "{{ .Name }}.jsonl"}
{{- end }}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
{{- range $way := . }}
{{- range $signal := signals }}
    {{ $signal }}/{{ $way.Name }}: {receivers: [otlp/{{ $way.Name }}], exporters: [file/{{ $way.Name }}]}
{{- end }}
{{- end }}
{{- end }}

{{- define "writer" }}
{{- template "otlp" }}
exporters:
  jsonl: {path: "files/{signal}.jsonl", layout: otlp_json, rotation: {max_bytes: 16KiB}, compression: {{ . }}, flush_interval: 10ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
{{- range signals }}
    {{ . }}: {receivers: [otlp], exporters: [jsonl]}
{{- end }}
{{- end }}

{{- define "formats" }}
{{- template "otlp" }}
exporters:
{{- range $name, $settings := . }}
{{- range $signal := signals }}
  file/{{ $name }}-{{ $signal }}: {path: "{{ $name }}/{{ $signal }}", create_directory: true, {{ $settings }}}
{{- end }}
{{- end }}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
{{- range $signal := signals }}
    {{ $signal }}:
      receivers: [otlp]
      exporters: [{{ range $name, $settings := $ }}file/{{ $name }}-{{ $signal }}, {{ end }}]
{{- end }}
{{- end }}

{{- define "reader" }}
{{- template "otlp" }}
  otlp_json_file:
    include: ["{{ .Files }}"]
    start_at: beginning
    include_file_name: false
    compression: "{{ .Compression }}"
exporters:
  {{ .Exporter }}: {path: "{{ .Path }}"}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
{{- range $signal := signals }}
    {{ $signal }}: {receivers: [otlp, otlp_json_file], exporters: [{{ $.Exporter }}]}
{{- end }}
{{- end }}
`))

func config(t *testing.T, name string, data any) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, configs.ExecuteTemplate(&b, name, data))
	return b.String()
}

// From stock to lenscol and on to stock, over gRPC and HTTP, as protobuf and as JSON, plain and compressed, everything is the same.
func TestOTLP(t *testing.T) {
	t.Parallel()
	all := ways(t)
	var middles, ends []string
	for _, w := range all {
		middles, ends = append(middles, "127.0.0.1:"+w.Middle), append(ends, "127.0.0.1:"+w.End)
	}
	end := testbed.Start(t, testbed.Options{Binary: binary(t), Config: config(t, "end", all), Listens: ends})
	middle := testbed.Start(t, testbed.Options{Config: config(t, "middle", all), Listens: middles})
	first := testbed.Start(t, testbed.Options{Binary: binary(t), Config: config(t, "first", all)})
	want := sendAll(t, first)
	first.Stop() // What waits in it goes on its way.
	middle.Stop()
	end.Stop()

	for _, w := range all {
		t.Run(w.Name, func(t *testing.T) {
			got, err := readArchive(filepath.Join(middle.Dir, w.Name))
			require.NoError(t, err, "from stock to lenscol")
			requireSame(t, want, got)
			got, err = readOTLP(filepath.Join(end.Dir, w.Name+".jsonl"))
			require.NoError(t, err, "from lenscol to stock")
			requireSame(t, want, got)
		})
	}
	t.Logf("%d spans, %d points and %d records by %d ways", len(want["traces"]), len(want["metrics"]), len(want["logs"]), len(all))
}

// From lenscol's files of layout otlp_json, which have rotated and are compressed, stock's receiver of such files has everything, as
// docs/format.md configures it.
func TestStockReadsFiles(t *testing.T) {
	for _, compression := range []string{"none", "gzip"} { // It reads no zstd.
		t.Run(compression, func(t *testing.T) {
			t.Parallel()
			writer := testbed.Start(t, testbed.Options{Config: config(t, "writer", compression)})
			want := sendAll(t, writer, &commonpb.KeyValue{Key: "process.command_args", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{
				StringValue: strings.Repeat("--long-option=of-a-training-job ", 100)}}}) // Files begin with the same bytes.
			writer.Stop()
			files, err := filepath.Glob(filepath.Join(writer.Dir, "files", "traces*.jsonl*"))
			require.NoError(t, err)
			require.Greater(t, len(files), 4, "files that have rotated: %q", files)

			reader := testbed.Start(t, testbed.Options{Binary: binary(t), Config: config(t, "reader", map[string]string{
				"Files": filepath.Join(writer.Dir, "files", "*.jsonl*"), "Compression": strings.TrimPrefix(compression, "none"), "Exporter": "file", "Path": "out.jsonl"})})
			requireAllRead(t, want, reader, func() (map[string][]oracle.Item, error) { return readOTLP(filepath.Join(reader.Dir, "out.jsonl")) })
		})
	}
}

// What stock's file exporter has written, in each of its formats, lenscol's commands read, and its receiver of such files where that can.
func TestLenscolReadsFiles(t *testing.T) {
	t.Parallel()
	formats := map[string]string{
		"json": "format: json", "json-zstd": "format: json, compression: zstd", "proto": "format: proto", "proto-zstd": "format: proto, compression: zstd",
	}
	writer := testbed.Start(t, testbed.Options{Binary: binary(t), Config: config(t, "formats", formats)})
	want := sendAll(t, writer)
	writer.Stop()
	for name := range formats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string][]oracle.Item{}
			for _, signal := range signals {
				var stderr bytes.Buffer
				cmd := exec.CommandContext(t.Context(), testbed.Binary(t), "jsonl", "cat", filepath.Join(writer.Dir, name, signal))
				cmd.Stderr = &stderr
				lines, err := cmd.Output()
				require.NoError(t, err, "%s", &stderr)
				got[signal], err = (&oracle.Reader{Inline: true}).Feed(lines)
				require.NoError(t, err)
			}
			requireSame(t, want, got)
		})
	}
	t.Run("receiver", func(t *testing.T) {
		t.Parallel()
		reader := testbed.Start(t, testbed.Options{Config: config(t, "reader", map[string]string{
			"Files": filepath.Join(writer.Dir, "json", "*"), "Exporter": "jsonl", "Path": "lens-data/{signal}.jsonl"})})
		requireAllRead(t, want, reader, func() (map[string][]oracle.Item, error) { return readArchive(filepath.Join(reader.Dir, "lens-data")) })
	})
}

// requireAllRead waits until a reader has written as much as there is, ends it, and holds what it has written against that.
func requireAllRead(t *testing.T, want map[string][]oracle.Item, reader *testbed.Collector, written func() (map[string][]oracle.Item, error)) {
	t.Helper()
	var got map[string][]oracle.Item
	var err error // Its last line may be torn as yet.
	for deadline := time.Now().Add(time.Minute); err != nil || count(got) < count(want); time.Sleep(50 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "of %d items, %d were read: %v", count(want), count(got), err)
		got, err = written()
	}
	reader.Stop()
	got, err = written()
	require.NoError(t, err)
	requireSame(t, want, got)
}

func readArchive(dir string) (items map[string][]oracle.Item, err error) {
	items = map[string][]oracle.Item{}
	for _, signal := range signals {
		if items[signal], err = oracle.ReadFile(filepath.Join(dir, signal+".jsonl")); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func requireSame(t *testing.T, want, got map[string][]oracle.Item) {
	t.Helper()
	for _, signal := range signals {
		require.NoError(t, oracle.SameInAnyOrder(want[signal], got[signal]), signal)
	}
}

func count(items map[string][]oracle.Item) (n int) {
	for _, of := range items {
		n += len(of)
	}
	return n
}

func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("LENSCOL_STOCK_BIN")
	require.NotEmpty(t, path, "LENSCOL_STOCK_BIN names no collector: run make e2e E2E=stock, or set it to what make stock builds")
	return path
}

// sendAll sends all captured requests, and those that have every field, with these attributes before the others of each resource, and
// returns their items, by signal.
func sendAll(t *testing.T, collector *testbed.Collector, attributes ...*commonpb.KeyValue) map[string][]oracle.Item {
	t.Helper()
	client := collector.Client()
	defer client.Close()
	items := map[string][]oracle.Item{}
	describe := func(r *resourcepb.Resource) {
		if r != nil {
			r.Attributes = append(slices.Clone(attributes), r.Attributes...)
		}
	}
	send := func(r oracle.Request) {
		for _, rs := range r.Traces.GetResourceSpans() {
			describe(rs.Resource)
		}
		for _, rm := range r.Metrics.GetResourceMetrics() {
			describe(rm.Resource)
		}
		for _, rl := range r.Logs.GetResourceLogs() {
			describe(rl.Resource)
		}
		for signal, message := range map[string]proto.Message{"traces": r.Traces, "metrics": r.Metrics, "logs": r.Logs} {
			body, err := proto.Marshal(message)
			require.NoError(t, err)
			if len(body) == 0 {
				continue
			}
			require.NoError(t, client.GRPC(t.Context(), signal, body, false))
			items[signal] = append(items[signal], r.Expect()...)
		}
	}
	for _, capture := range testbed.Captures(t) {
		request, err := oracle.From(capture.Signal, capture.JSON, capture.Body)
		require.NoError(t, err)
		send(request)
	}
	for _, request := range oracle.EveryField() {
		send(request)
	}
	return items
}

// readOTLP reads a file of OTLP/JSON, a request a line.
func readOTLP(path string) (map[string][]oracle.Item, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	items := map[string][]oracle.Item{}
	for line := range strings.Lines(string(text)) {
		signal := ""
		for key, s := range map[string]string{`{"resourceSpans"`: "traces", `{"resourceMetrics"`: "metrics", `{"resourceLogs"`: "logs"} {
			if strings.HasPrefix(line, key) {
				signal = s
			}
		}
		request, err := oracle.FromJSON(signal, []byte(line))
		if err != nil {
			return nil, fmt.Errorf("%w in %.300s", err, line)
		}
		items[signal] = append(items[signal], request.Expect()...)
	}
	return items, nil
}
