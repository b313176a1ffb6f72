// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// testConfig writes below folder, to as little free space as there is.
func testConfig(folder string) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.Path = filepath.Join(folder, "{signal}.jsonl")
	cfg.MinFreeBytes = 0
	return cfg
}

func startTraces(t *testing.T, cfg *Config, host component.Host) exporter.Traces {
	t.Helper()
	e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e
}

// numbered is a request of n spans of one rank, whose names count from first.
func numbered(rank int64, first, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutInt("dl.rank", rank)
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("test")
	for i := range n {
		ss.Spans().AppendEmpty().SetName(fmt.Sprintf("span-%06d", first+i))
	}
	return td
}

// readFiles parses every line of the files below folder, checks what must hold for each file by itself, and returns the
// names of all records in the order of the files' names.
func readFiles(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	require.NoError(t, err)
	slices.Sort(files)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		names = append(names, checkFile(t, f, text)...)
	}
	return names
}

func checkFile(t *testing.T, file string, text []byte) (names []string) {
	t.Helper()
	require.True(t, len(text) == 0 || text[len(text)-1] == '\n', "%s does not end in a newline", file)
	resources, scopes := map[float64]bool{}, map[float64]bool{}
	for n, line := range bytes.SplitAfter(text, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		var v map[string]any
		require.NoErrorf(t, json.Unmarshal(line, &v), "%s line %d: %q", file, n+1, line)
		switch v["type"] {
		case "resource":
			resources[v["id"].(float64)] = true
		case "scope":
			require.Truef(t, resources[v["resource"].(float64)], "%s line %d: resource is not defined above", file, n+1)
			scopes[v["id"].(float64)] = true
		default:
			if id, ok := v["scope"].(float64); ok {
				require.Truef(t, scopes[id], "%s line %d: scope is not defined above", file, n+1)
			}
			name, _ := v["name"].(string)
			names = append(names, name)
		}
	}
	return names
}

func spanNames(first, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("span-%06d", first+i))
	}
	return names
}

// statusHost keeps the status events of a component.
type statusHost struct {
	component.Host
	mu     sync.Mutex
	events []componentstatus.Status
}

func (h *statusHost) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e.Status())
}

func (h *statusHost) statuses() []componentstatus.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

func TestAcknowledgedMeansWritten(t *testing.T) {
	folder := t.TempDir()
	e := startTraces(t, testConfig(folder), componenttest.NewNopHost())
	require.NoError(t, e.ConsumeTraces(t.Context(), numbered(0, 0, 3)))
	require.Equal(t, spanNames(0, 3), readFiles(t, folder))
	require.NoError(t, e.ConsumeTraces(t.Context(), numbered(0, 3, 2)))
	require.Equal(t, spanNames(0, 5), readFiles(t, folder))
}

func TestResourceIsWrittenOnceAFile(t *testing.T) {
	folder := t.TempDir()
	e := startTraces(t, testConfig(folder), componenttest.NewNopHost())
	for i := range 5 {
		require.NoError(t, e.ConsumeTraces(t.Context(), numbered(int64(i%2), i, 1)))
	}
	text, err := os.ReadFile(filepath.Join(folder, "traces.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), `"type":"resource"`))
	require.Equal(t, 2, strings.Count(string(text), `"type":"scope"`))
}

func TestInlineResource(t *testing.T) {
	folder := t.TempDir()
	cfg := testConfig(folder)
	cfg.Resource = ResourceInline
	cfg.Identity = []string{"rank"}
	e := startTraces(t, cfg, componenttest.NewNopHost())
	require.NoError(t, e.ConsumeTraces(t.Context(), numbered(3, 0, 1)))
	text, err := os.ReadFile(filepath.Join(folder, "traces.jsonl"))
	require.NoError(t, err)
	require.Equal(t, `{"type":"span","name":"span-000000","kind":"unspecified","start_ns":0,"rank":3,"resource":{"attributes":{"dl.rank":3}},"scope":{"name":"test"}}`+"\n", string(text))
}

func TestRestartLosesNothingAndGluesNothing(t *testing.T) {
	folder := t.TempDir()
	cfg := testConfig(folder)
	for i := range 3 {
		e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
		require.NoError(t, err)
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, e.ConsumeTraces(t.Context(), numbered(0, i, 1)))
		require.NoError(t, e.Shutdown(t.Context()))
		require.Error(t, e.ConsumeTraces(t.Context(), numbered(0, i, 1)), "consume after shutdown is an error")
	}
	require.Equal(t, spanNames(0, 3), readFiles(t, folder))
}

// TestLargeRequestIsWrittenInParts has what the lines of a request repeat make them hundreds of times the request. Its lines are never all in
// memory, and none is lost.
func TestLargeRequestIsWrittenInParts(t *testing.T) {
	const n = 60
	long := strings.Repeat("x", 1<<20)
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	m.SetDescription(long)
	points := m.SetEmptyGauge().DataPoints()
	for i := range n {
		points.AppendEmpty().SetIntValue(int64(i))
	}
	td := numbered(0, 0, n)
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("a", long)
	for _, layout := range []Layout{LayoutCompact, LayoutConsole, LayoutOTLPJSON} {
		t.Run(string(layout), func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Layout, cfg.Resource = layout, ResourceInline
			largest, handedOn := 0, 0
			c := newChunk()
			c.handOn = func() {
				part := c.takeParts()
				largest = max(largest, len(part.buf))
				handedOn += part.items
			}
			l := cfg.newLayout()
			l.addSpans(c, td.ResourceSpans().At(0))
			if layout != LayoutConsole { // There a metric is one line, and repeats nothing.
				l.addMetrics(c, md.ResourceMetrics().At(0))
			}
			require.NotZero(t, handedOn)
			require.Less(t, max(largest, len(c.buf)), mostChunk+3<<20)
		})
	}

	for _, path := range []string{"{signal}.jsonl", "{rank}-{signal}.jsonl"} {
		folder := t.TempDir()
		cfg := testConfig(folder)
		cfg.Path = filepath.Join(folder, path)
		e, err := NewFactory().CreateMetrics(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
		require.NoError(t, err)
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, e.ConsumeMetrics(t.Context(), md))
		require.NoError(t, e.Shutdown(t.Context()))
		require.Len(t, readFiles(t, folder), n)
	}
}

// TestPartOfALargeRequestThatFails fails the request, whose sender sends it again.
func TestPartOfALargeRequestThatFails(t *testing.T) {
	folder := t.TempDir()
	e := &jsonlExporter{now: time.Now}
	w := testWriter(t, folder, nil)
	require.NoError(t, w.close(t.Context()))
	c := e.newChunk(t.Context(), w)
	td := numbered(0, 0, 40)
	for i := range 40 {
		td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i).Attributes().PutStr("a", strings.Repeat("x", 1<<20))
	}
	w.layout.addSpans(c, td.ResourceSpans().At(0))
	require.ErrorIs(t, c.err, errClosed)
	require.ErrorIs(t, e.finish(t.Context(), w, e.begin(w, c)), errClosed)
}

// TestLongIdentityIsNotRepeated: the resource's line has it.
func TestLongIdentityIsNotRepeated(t *testing.T) {
	folder := t.TempDir()
	e := startTraces(t, testConfig(folder), componenttest.NewNopHost())
	td := numbered(3, 0, 100)
	attrs := td.ResourceSpans().At(0).Resource().Attributes()
	attrs.PutStr(semconv.RunID, strings.Repeat("x", 1<<20))
	attrs.PutStr(semconv.ServiceName, strings.Repeat("y", maxCopy))
	require.NoError(t, e.ConsumeTraces(t.Context(), td))
	text, err := os.ReadFile(filepath.Join(folder, "traces.jsonl"))
	require.NoError(t, err)
	require.Less(t, len(text), 2<<20)
	require.Equal(t, spanNames(0, 100), readFiles(t, folder))
	last := string(text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:])
	require.Contains(t, last, `,"rank":3,"service":"yyy`)
	require.NotContains(t, last, `"run"`)
}

func TestThreeSignalsInOneFile(t *testing.T) {
	folder := t.TempDir()
	cfg := testConfig(folder)
	cfg.Path = filepath.Join(folder, "sub", "all.jsonl")
	set := exportertest.NewNopSettings(metadata.Type)
	logs, err := NewFactory().CreateLogs(t.Context(), set, cfg)
	require.NoError(t, err)
	traces, err := NewFactory().CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	metrics, err := NewFactory().CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	for _, e := range []component.Component{metrics, logs, traces} {
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	}
	require.NoError(t, traces.ConsumeTraces(t.Context(), numbered(0, 0, 1)))
	require.NoError(t, traces.Shutdown(t.Context()), "the file stays open for the others")

	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("hello")
	require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("loss")
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(2)
	require.NoError(t, metrics.ConsumeMetrics(t.Context(), md))
	require.NoError(t, logs.Shutdown(t.Context()))
	require.NoError(t, metrics.Shutdown(t.Context()))
	require.Equal(t, []string{"span-000000", "", "loss"}, readFiles(t, filepath.Join(folder, "sub")))
}

func TestSecondWriterIsRefused(t *testing.T) {
	folder := t.TempDir()
	startTraces(t, testConfig(folder), componenttest.NewNopHost())
	other, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), testConfig(folder))
	require.NoError(t, err)
	err = other.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, fmt.Sprintf("another exporter of this process (pid %d)", os.Getpid()))
	require.ErrorContains(t, err, filepath.Join(folder, "traces.jsonl"))
}

func TestStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("not ours\n"), 0o600))
	for _, tt := range []struct {
		name, want string
		change     func(*Config)
	}{
		{"parent is a file", file, func(c *Config) { c.Path = filepath.Join(file, "{signal}.jsonl") }},
		{"folder is missing", "missing", func(c *Config) {
			c.Path = filepath.Join(filepath.Dir(file), "missing", "x.jsonl")
			c.CreateDirectory = false
		}},
		{"file of another kind", "does not begin with '{'", func(c *Config) { c.Path = file }},
		{"path is a folder", filepath.Dir(file), func(c *Config) { c.Path = filepath.Dir(file) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			tt.change(cfg)
			e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
			require.NoError(t, err)
			require.ErrorContains(t, e.Start(t.Context(), componenttest.NewNopHost()), tt.want)
			require.NoError(t, e.Shutdown(t.Context()))
		})
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "not ours\n", string(text))
}

func TestShutdownWithoutStart(t *testing.T) {
	e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), testConfig(t.TempDir()))
	require.NoError(t, err)
	require.NoError(t, e.Shutdown(t.Context()))
}

// TestConsumeDuringShutdown wants an error or a written record, never a panic, whenever the shutdown comes.
func TestConsumeDuringShutdown(t *testing.T) {
	for _, queued := range []bool{false, true} {
		t.Run(fmt.Sprintf("queue=%v", queued), func(t *testing.T) {
			for range 10 {
				folder := t.TempDir()
				cfg := testConfig(folder)
				if queued {
					cfg.QueueConfig.GetOrInsertDefault()
				}
				e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
				require.NoError(t, err)
				require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
				var wg sync.WaitGroup
				acknowledged := make([][]string, 4)
				begun := make(chan struct{}, len(acknowledged))
				for s := range acknowledged {
					wg.Go(func() {
						for i := 0; ; i++ {
							first := s*1000 + i
							if e.ConsumeTraces(context.Background(), numbered(int64(s), first, 1)) != nil {
								return
							}
							acknowledged[s] = append(acknowledged[s], spanNames(first, 1)...)
							if i == 0 {
								begun <- struct{}{}
							}
						}
					})
				}
				<-begun
				require.NoError(t, e.Shutdown(context.Background()))
				wg.Wait()
				written := readFiles(t, folder)
				there := map[string]bool{}
				for _, name := range written {
					there[name] = true
				}
				for _, name := range slices.Concat(acknowledged...) {
					require.True(t, there[name], name)
				}
			}
		})
	}
}

func TestHundredStartsAndStops(t *testing.T) {
	folder := t.TempDir()
	for i := range 100 {
		e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), testConfig(folder))
		require.NoError(t, err)
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, e.ConsumeTraces(t.Context(), numbered(0, i, 1)))
		require.NoError(t, e.Shutdown(t.Context()))
	}
	require.Equal(t, spanNames(0, 100), readFiles(t, folder))
}

// TestFullDisk fills a real file system of 16 MiB and drains it: what was acknowledged is there, no line and no frame is torn, and
// writing goes on by itself.
func TestFullDisk(t *testing.T) {
	for _, c := range append([]Compression{CompressionNone}, compressions...) {
		t.Run(string(c), func(t *testing.T) { testFullDisk(t, c) })
	}
}

func testFullDisk(t *testing.T, c Compression) {
	folder := testbed.Tmpfs(t, "16m")
	cfg := testConfig(folder)
	cfg.Compression = c
	cfg.FlushInterval = new(time.Duration)
	cfg.RetryConfig.Enabled = false // to see each answer
	host := &statusHost{Host: componenttest.NewNopHost()}
	e := startTraces(t, cfg, host)
	ballast := filepath.Join(folder, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 15<<20), 0o600))

	random := rand.New(rand.NewPCG(3, 4))
	var acknowledged []string
	sent := 0
	send := func() error {
		td := numbered(0, sent, 100)
		for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			span.Attributes().PutStr("random", fmt.Sprintf("%x%x%x%x", random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()))
		}
		err := e.ConsumeTraces(t.Context(), td)
		if err == nil {
			acknowledged = append(acknowledged, spanNames(sent, 100)...)
		}
		sent += 100
		return err
	}
	read := func() []string {
		file := filepath.Join(folder, "traces.jsonl"+c.extension())
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if c != CompressionNone {
			text, err = unpack(t, c, text)
			require.NoError(t, err)
		}
		return checkFile(t, file, text)
	}
	for round := range 3 {
		var err error
		for err == nil {
			err = send()
		}
		require.ErrorContains(t, err, "no space left on device")
		require.Equal(t, acknowledged, read(), "round %d", round)
		info, statErr := os.Stat(ballast)
		require.NoError(t, statErr)
		require.NoError(t, os.Truncate(ballast, info.Size()-256<<10))
		require.NoError(t, send(), "round %d: space is back", round)
	}
	require.Equal(t, acknowledged, read())
	require.Equal(t, []componentstatus.Status{
		componentstatus.StatusRecoverableError, componentstatus.StatusOK,
		componentstatus.StatusRecoverableError, componentstatus.StatusOK,
		componentstatus.StatusRecoverableError, componentstatus.StatusOK,
	}, host.statuses())
}

// TestRetryGoesOnWhenSpaceComesBack leaves retrying to the exporter, as the default config does.
func TestRetryGoesOnWhenSpaceComesBack(t *testing.T) {
	folder := testbed.Tmpfs(t, "16m")
	ballast := filepath.Join(folder, "ballast")
	cfg := testConfig(folder)
	cfg.MinFreeBytes = 8 << 20
	require.NoError(t, os.WriteFile(ballast, make([]byte, 12<<20), 0o600))
	host := &statusHost{Host: componenttest.NewNopHost()}
	e := startTraces(t, cfg, host)
	answer := make(chan error, 1)
	go func() { answer <- e.ConsumeTraces(context.Background(), numbered(0, 0, 10)) }()
	require.Eventually(t, func() bool { return len(host.statuses()) > 0 }, 10*time.Second, time.Millisecond)
	require.Empty(t, readFiles(t, folder), "nothing is written below min_free_bytes")
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, <-answer)
	require.Equal(t, spanNames(0, 10), readFiles(t, folder))
}

func TestErrorIsRetryable(t *testing.T) {
	folder := testbed.Tmpfs(t, "1m")
	cfg := testConfig(folder)
	cfg.MinFreeBytes = 1 << 30
	cfg.RetryConfig.Enabled = false
	e := startTraces(t, cfg, componenttest.NewNopHost())
	err := e.ConsumeTraces(t.Context(), numbered(0, 0, 1))
	require.ErrorContains(t, err, "min_free_bytes 1073741824")
	var low *lowDiskError
	require.ErrorAs(t, err, &low)
}
