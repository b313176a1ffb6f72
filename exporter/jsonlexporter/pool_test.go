// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadatatest"
	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/sdk/semconv"
)

func partitionedConfig(folder string) *Config {
	cfg := testConfig(folder)
	cfg.Path = filepath.Join(folder, "{run}", "rank-{rank}.jsonl")
	return cfg
}

// ofRuns is a request of one resource, of one span, for each run.
func ofRuns(first int, runs ...string) ptrace.Traces {
	td := ptrace.NewTraces()
	for i, run := range runs {
		one := numbered(int64(i), first+i, 1)
		one.ResourceSpans().At(0).Resource().Attributes().PutStr(semconv.RunID, run)
		one.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}
	return td
}

// readTree reads all files below folder.
func readTree(t *testing.T, folder string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() {
			names = append(names, readFiles(t, path)...)
		}
		return nil
	}))
	return names
}

func treeFiles(t *testing.T, folder string) (files []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if !d.IsDir() {
			files = append(files, path)
		}
		return nil
	}))
	return files
}

func TestPartitions(t *testing.T) {
	folder := t.TempDir()
	e := startTraces(t, partitionedConfig(folder), componenttest.NewNopHost())
	require.NoError(t, e.ConsumeTraces(t.Context(), ofRuns(0, "a", "b", "", "../../etc")))
	require.NoError(t, e.ConsumeTraces(t.Context(), ofRuns(10, "a")))
	require.Equal(t, []string{"span-000000", "span-000010"}, readFiles(t, filepath.Join(folder, "a")))
	require.Equal(t, []string{"span-000001"}, readFiles(t, filepath.Join(folder, "b")))
	require.Equal(t, []string{"span-000002"}, readFiles(t, filepath.Join(folder, "unknown")))
	require.FileExists(t, filepath.Join(folder, "b", "rank-1.jsonl"))
	require.Len(t, readTree(t, folder), 5)
	outside, err := filepath.Glob(filepath.Join(filepath.Dir(folder), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{folder}, outside)
}

// TestPartitionsStayBelowTheRoot has links in the archive that lead out of it.
func TestPartitionsStayBelowTheRoot(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(folder, "link")))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "run"), 0o750))
	require.NoError(t, os.Symlink(filepath.Join(outside, "stolen"), filepath.Join(folder, "run", "rank-0.jsonl")))
	cfg := partitionedConfig(folder)
	cfg.RetryConfig.Enabled = false
	e := startTraces(t, cfg, componenttest.NewNopHost())
	require.Error(t, e.ConsumeTraces(t.Context(), ofRuns(0, "link")))
	require.Error(t, e.ConsumeTraces(t.Context(), ofRuns(0, "run")))
	require.NoError(t, e.ConsumeTraces(t.Context(), ofRuns(0, "other")))
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestEvictionLosesNothing has 64 senders write 200 partitions through 2 open files.
func TestEvictionLosesNothing(t *testing.T) {
	for _, c := range append([]Compression{CompressionNone}, compressions...) {
		t.Run(string(c), func(t *testing.T) {
			folder := t.TempDir()
			cfg := partitionedConfig(folder)
			cfg.MaxOpenFiles = 2
			cfg.Compression = c
			cfg.FlushInterval = new(time.Duration)
			e := startTraces(t, cfg, componenttest.NewNopHost())
			var wg sync.WaitGroup
			const senders, requests = 64, 10
			for s := range senders {
				wg.Go(func() {
					for i := range requests {
						k := s*requests + i
						td := ofRuns(k*3, fmt.Sprint(k%200), fmt.Sprint((k+77)%200), fmt.Sprint((k+131)%200))
						require.NoError(t, e.ConsumeTraces(context.Background(), td))
					}
				})
			}
			wg.Wait()
			if c != CompressionNone {
				require.NoError(t, unpackTree(t, folder, c))
			}
			names := readTree(t, folder)
			slices.Sort(names)
			require.Equal(t, spanNames(0, senders*requests*3), names)
		})
	}
}

// unpackTree puts the decompressed text of each file beside it.
func unpackTree(t *testing.T, folder string, c Compression) error {
	t.Helper()
	for _, path := range treeFiles(t, folder) {
		if plain, ok := strings.CutSuffix(path, c.extension()); ok {
			data, err := os.ReadFile(filepath.Join(folder, path))
			require.NoError(t, err)
			text, err := unpack(t, c, data)
			if err != nil {
				return err
			}
			require.NoError(t, os.WriteFile(filepath.Join(folder, plain), text, 0o600))
		}
	}
	return nil
}

// TestMaxPartitions: what a hostile sender names beyond the bound goes to one file, also after a restart.
func TestMaxPartitions(t *testing.T) {
	folder := t.TempDir()
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	cfg := testConfig(folder)
	cfg.Path = filepath.Join(folder, "{run}.jsonl")
	cfg.MaxPartitions = 3
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	start := func() exporter.Traces {
		e, err := NewFactory().CreateTraces(t.Context(), set, cfg)
		require.NoError(t, err)
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		return e
	}
	e := start()
	for i := range 10 {
		require.NoError(t, e.ConsumeTraces(t.Context(), ofRuns(i, fmt.Sprintf("run-%d", i))))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	want := []string{"overflow.jsonl", "run-0.jsonl", "run-1.jsonl", "run-2.jsonl"}
	require.Equal(t, want, treeFiles(t, folder))
	metadatatest.AssertEqualExporterJsonlPartitionsOverflow(t, tel, []metricdata.DataPoint[int64]{{Value: 7}}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())

	e = start()
	require.NoError(t, e.ConsumeTraces(t.Context(), ofRuns(10, "run-1", "run-11")))
	require.NoError(t, e.Shutdown(t.Context()))
	require.Equal(t, want, treeFiles(t, folder))
	require.Len(t, readTree(t, folder), 12)
}

// TestPartialFailure sends a request again for what failed alone.
func TestPartialFailure(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "bad"), 0o750))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "bad", "rank-1.jsonl"), 0o750)) // a folder where a file should be
	cfg := partitionedConfig(folder)
	e, err := newJSONLExporter(exportertest.NewNopSettings(metadata.Type), cfg, "traces")
	require.NoError(t, err)
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, e.shutdown(context.Background())) }()
	err = e.pushTraces(t.Context(), ofRuns(0, "good", "bad", "fine"))
	var rest consumererror.Traces
	require.True(t, errors.As(err, &rest))
	require.Equal(t, 1, rest.Data().SpanCount())
	require.Equal(t, "span-000001", rest.Data().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name())
	require.False(t, consumererror.IsPermanent(err))
	require.ErrorContains(t, err, filepath.Join(folder, "bad", "rank-1.jsonl"))
}

// TestMaxTotalBytes: the bound holds over partitions, signals, a restart and a second exporter with the same root; the
// oldest files go first, and none that is not ours.
func TestMaxTotalBytes(t *testing.T) {
	folder := t.TempDir()
	foreign := []string{filepath.Join(folder, "notes.jsonl.txt"), filepath.Join(folder, "x", "y", "traces.jsonl")}
	require.NoError(t, os.MkdirAll(filepath.Dir(foreign[1]), 0o750))
	for _, f := range foreign {
		require.NoError(t, os.WriteFile(f, []byte(strings.Repeat("x", 50_000)), 0o600))
	}
	const most = 40_000
	config := func(name string) *Config {
		cfg := testConfig(folder)
		cfg.Path = filepath.Join(folder, "{run}", name+"-{signal}.jsonl")
		cfg.Retention.MaxTotalBytes = most
		return cfg
	}
	total := func() (n int64) {
		for _, f := range treeFiles(t, folder) {
			if strings.HasPrefix(f, "run-") {
				info, err := os.Stat(filepath.Join(folder, f))
				if err == nil {
					n += info.Size()
				}
			}
		}
		return n
	}
	next := 0
	for range 3 {
		one, two := startTracesUntil(t, config("one")), startTracesUntil(t, config("two"))
		for range 40 {
			for _, e := range []exporter.Traces{one, two} {
				require.NoError(t, e.ConsumeTraces(t.Context(), ofRuns(next, fmt.Sprintf("run-%d", next%5), fmt.Sprintf("run-%d", (next+1)%5))))
				next += 2
			}
		}
		require.Eventually(t, func() bool { return total() <= most }, 10*time.Second, time.Millisecond)
		require.NoError(t, one.Shutdown(t.Context()))
		require.NoError(t, two.Shutdown(t.Context()))
	}
	for _, f := range foreign {
		require.FileExists(t, f)
	}
	require.Greater(t, total(), int64(most/4), "no more is removed than has to be")
	names := readTree(t, filepath.Join(folder, "run-"+fmt.Sprint((next-2)%5)))
	require.Contains(t, names, fmt.Sprintf("span-%06d", next-2), "the newest are kept")
}

func startTracesUntil(t *testing.T, cfg *Config) exporter.Traces {
	t.Helper()
	e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	return e
}

// TestRetentionByAge removes files by their last write, those of partitions that are not open included.
func TestRetentionByAge(t *testing.T) {
	folder := t.TempDir()
	old := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"old.jsonl", "old-20200101T000000.000000000Z.jsonl", "new.jsonl", "old.txt"} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte("{}\n"), 0o600))
		if strings.HasPrefix(name, "old") {
			require.NoError(t, os.Chtimes(path, old, old))
		}
	}
	cfg := testConfig(folder)
	cfg.Path = filepath.Join(folder, "{run}.jsonl")
	cfg.Retention.MaxAge = 24 * time.Hour
	e, err := newJSONLExporter(exportertest.NewNopSettings(metadata.Type), cfg, "traces")
	require.NoError(t, err)
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, e.shutdown(context.Background())) }()
	e.pool.Load().prune()
	require.Equal(t, []string{"new.jsonl", "old.txt"}, treeFiles(t, folder))

	// A file that was opened and closed again without a write is as old as it was.
	p := e.pool.Load()
	w, err := p.acquire(t.Context(), "new.jsonl", true)
	require.NoError(t, err)
	p.giveBack(w)
	p.mu.Lock()
	require.True(t, p.evict())
	p.mu.Unlock()
	p.prune()
	require.Equal(t, []string{"new.jsonl", "old.txt"}, treeFiles(t, folder))
}

// TestSchedule ends a file when the hour or day ends, whether its partition is open or not.
func TestSchedule(t *testing.T) {
	r := RotationConfig{Schedule: ScheduleDaily}
	evening := time.Date(2026, 11, 29, 23, 59, 59, 0, time.UTC)
	require.False(t, r.due(evening.Add(-23*time.Hour), evening))
	require.True(t, r.due(evening, evening.Add(time.Second)))
	require.Equal(t, time.Second, r.untilDue(evening.Add(-time.Hour), evening))
	r.Schedule = ScheduleHourly
	require.True(t, r.due(evening, evening.Add(time.Second)))
	require.False(t, r.due(evening.Add(-59*time.Minute), evening))

	folder := t.TempDir()
	cfg := testConfig(folder)
	cfg.Path = filepath.Join(folder, "{run}.jsonl")
	cfg.Rotation.Schedule = ScheduleDaily
	cfg.MaxOpenFiles = 1
	e, err := newJSONLExporter(exportertest.NewNopSettings(metadata.Type), cfg, "traces")
	require.NoError(t, err)
	var late atomic.Int64
	e.now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, e.shutdown(context.Background())) }()
	require.NoError(t, e.pushTraces(t.Context(), ofRuns(0, "idle")))
	require.NoError(t, e.pushTraces(t.Context(), ofRuns(1, "open")))
	p := e.pool.Load()
	late.Store(int64(24 * time.Hour))
	require.NoError(t, e.pushTraces(t.Context(), ofRuns(2, "open")))
	p.rotateIdle()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(folder, "idle.jsonl"))
		return errors.Is(err, fs.ErrNotExist)
	}, 10*time.Second, time.Millisecond, "its writer has ended it")
	require.Len(t, readFiles(t, folder), 3)
	require.GreaterOrEqual(t, fileCount(t, folder), 3, "what was written before and after midnight stands in two files")
}

func TestMetrics(t *testing.T) {
	folder := t.TempDir()
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	cfg := testConfig(folder)
	cfg.Sync, cfg.SyncInterval = SyncInterval, time.Millisecond
	cfg.Rotation = RotationConfig{MaxBytes: 10, MaxBackups: 1}
	e, err := NewFactory().CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	written := int64(0)
	for i := range 3 {
		td := numbered(0, i, 2)
		attrs := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes()
		attrs.PutStr("bad", "\xff")
		deep := attrs.PutEmpty("deep")
		for range 65 {
			deep = deep.SetEmptySlice().AppendEmpty()
		}
		require.NoError(t, e.ConsumeTraces(t.Context(), td))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	for _, f := range treeFiles(t, folder) {
		info, err := os.Stat(filepath.Join(folder, f))
		require.NoError(t, err)
		written += info.Size()
	}
	one := []metricdatatest.Option{metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()}
	point := func(n int64) []metricdata.DataPoint[int64] { return []metricdata.DataPoint[int64]{{Value: n}} }
	metadatatest.AssertEqualExporterJsonlWrittenRecords(t, tel, []metricdata.DataPoint[int64]{
		{Value: 6, Attributes: attribute.NewSet(attribute.String("signal", "traces"))},
	}, one...)
	metadatatest.AssertEqualExporterJsonlTextRepaired(t, tel, point(3), one...)
	metadatatest.AssertEqualExporterJsonlValuesCut(t, tel, point(3), one...)
	metadatatest.AssertEqualExporterJsonlRotations(t, tel, point(5), one...)
	metadatatest.AssertEqualExporterJsonlFilesPruned(t, tel, point(4), one...)
	metadatatest.AssertEqualExporterJsonlOpenFiles(t, tel, point(1), one...)
	bytesWritten, err := tel.GetMetric("otelcol_exporter_jsonl_written_bytes")
	require.NoError(t, err)
	require.Greater(t, bytesWritten.Data.(metricdata.Sum[int64]).DataPoints[0].Value, written, "what was pruned was written too")
	flushes, err := tel.GetMetric("otelcol_exporter_jsonl_flush_duration")
	require.NoError(t, err)
	require.EqualValues(t, 6, flushes.Data.(metricdata.Histogram[float64]).DataPoints[0].Count)
}

// TestFailingFiles is the gauge of a full disk.
func TestFailingFiles(t *testing.T) {
	folder := testbed.Tmpfs(t, "1m")
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	cfg := testConfig(folder)
	cfg.MinFreeBytes = 512 << 10
	cfg.RetryConfig.Enabled = false
	e, err := NewFactory().CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, e.Shutdown(context.Background())) }()
	ballast := filepath.Join(folder, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 600<<10), 0o600))
	require.Error(t, e.ConsumeTraces(t.Context(), numbered(0, 0, 1)))
	metadatatest.AssertEqualExporterJsonlFailingFiles(t, tel, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualExporterJsonlDiskFullFiles(t, tel, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, os.Remove(ballast))
	require.NoError(t, e.ConsumeTraces(t.Context(), numbered(0, 0, 1)))
	metadatatest.AssertEqualExporterJsonlDiskFullFiles(t, tel, []metricdata.DataPoint[int64]{{Value: 0}}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualExporterJsonlFailingFiles(t, tel, []metricdata.DataPoint[int64]{{Value: 0}}, metricdatatest.IgnoreTimestamp())
}

// TestRetentionSparesWhatIsWritten has another exporter, with another root, write to a file that this one takes for idle.
func TestRetentionSparesWhatIsWritten(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "run1", "rank-0.jsonl")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte("{}\n"), 0o600))
	old := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
	cfg := partitionedConfig(folder)
	cfg.Retention.MaxAge = time.Hour
	pruning, err := newJSONLExporter(exportertest.NewNopSettings(metadata.Type), cfg, "traces")
	require.NoError(t, err)
	require.NoError(t, pruning.start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, pruning.shutdown(context.Background())) }()

	other := testConfig(folder)
	other.Path = path
	writing := startTracesUntil(t, other)
	require.NoError(t, writing.ConsumeTraces(t.Context(), numbered(0, 0, 1)))
	pruning.pool.Load().prune()
	require.FileExists(t, path, "it is being written")
	require.NoError(t, writing.Shutdown(t.Context()))
	p := pruning.pool.Load()
	require.NoError(t, p.index.scan(p.root.get(), p.template))
	p.prune()
	require.FileExists(t, path, "it was written just now")
}

// TestRetentionByAgeIsTheExportersOwn leaves a neighbour's files in the same folder alone.
func TestRetentionByAgeIsTheExportersOwn(t *testing.T) {
	folder := t.TempDir()
	old := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"keep-a.jsonl", "go-a.jsonl"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("{}\n"), 0o600))
		require.NoError(t, os.Chtimes(filepath.Join(folder, name), old, old))
	}
	pools := map[string]*pool{}
	for _, name := range []string{"keep", "go"} {
		cfg := testConfig(folder)
		cfg.Path = filepath.Join(folder, name+"-{run}.jsonl")
		if name == "go" {
			cfg.Retention.MaxAge = time.Hour
		}
		e, err := newJSONLExporter(exportertest.NewNopSettings(metadata.Type), cfg, "traces")
		require.NoError(t, err)
		require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, e.shutdown(context.Background())) }()
		pools[name] = e.pool.Load()
	}
	pools["keep"].prune()
	pools["go"].prune()
	require.Equal(t, []string{"keep-a.jsonl"}, treeFiles(t, folder))
}

// TestNamesOfOursCannotBeSpelled has runs that are named like locks and rotated files.
func TestNamesOfOursCannotBeSpelled(t *testing.T) {
	for name, path := range map[string]string{"plain": "{run}", "with an extension": "{run}.jsonl"} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			cfg := testConfig(folder)
			cfg.Path = filepath.Join(folder, path)
			cfg.Rotation.MaxBackups = 1
			runs := []string{"a.lock", "a", "a-20200101T000000.000000000Z", "a-20200102T000000.000000000Z"}
			for round := range 2 {
				e := startTracesUntil(t, cfg)
				for i, run := range runs {
					require.NoError(t, e.ConsumeTraces(t.Context(), ofRuns(round*10+i, run)))
				}
				require.NoError(t, e.Shutdown(t.Context()))
			}
			var names []string
			for _, f := range treeFiles(t, folder) {
				names = append(names, recordsOf(t, filepath.Join(folder, f))...)
			}
			require.ElementsMatch(t, slices.Concat(spanNames(0, 4), spanNames(10, 4)), names)
		})
	}
}

// TestWaiting: who waits for an open file goes on when one that made room fails, and gives up with its context.
func TestWaiting(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "bad", "rank-0.jsonl"), 0o750)) // It does not open.
	cfg := partitionedConfig(folder)
	cfg.MaxOpenFiles = 1
	e, err := newJSONLExporter(exportertest.NewNopSettings(metadata.Type), cfg, "traces")
	require.NoError(t, err)
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, e.shutdown(context.Background())) }()
	p := e.pool.Load()
	held, err := p.acquire(t.Context(), filepath.Join("held", "rank-0.jsonl"), true)
	require.NoError(t, err)
	_, err = p.acquire(t.Context(), filepath.Join("good", "rank-0.jsonl"), false)
	require.ErrorIs(t, err, errBusy)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.acquire(cancelled, filepath.Join("good", "rank-0.jsonl"), true)
	require.ErrorIs(t, err, context.Canceled)

	answers := make(chan error, 2)
	for _, run := range []string{"bad", "good"} {
		go func() { answers <- e.pushTraces(context.Background(), ofRuns(0, run)) }()
	}
	p.giveBack(held)
	first, second := <-answers, <-answers
	require.True(t, (first == nil) != (second == nil), "one fails, and the other is written: %v, %v", first, second)
}

// TestFewOpenFiles: the files of a path that does not depend on what is written are always open.
func TestFewOpenFiles(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.MaxOpenFiles = 1
	for _, signal := range []string{"traces", "metrics", "logs"} {
		e, err := newJSONLExporter(exportertest.NewNopSettings(metadata.Type), cfg, signal)
		require.NoError(t, err)
		require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
		defer func() { require.NoError(t, e.shutdown(context.Background())) }()
	}
}

// TestUpload sends ended files to a store, what an earlier run left over first, and keeps the index right when they are
// deleted here.
func TestUpload(t *testing.T) {
	folder, store := t.TempDir(), t.TempDir()
	cfg := testConfig(folder)
	cfg.Path = filepath.Join(folder, "{run}", "traces.jsonl")
	cfg.Rotation.MaxBytes = 10
	e := startTracesUntil(t, cfg)
	for i := range 3 {
		require.NoError(t, e.ConsumeTraces(t.Context(), ofRuns(i, "a")))
	}
	require.NoError(t, e.Shutdown(t.Context()))
	require.Empty(t, treeFiles(t, store))

	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"upload": map[string]any{"url": "file://" + store, "delete_after": true},
	}).Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	je, err := newJSONLExporter(exportertest.NewNopSettings(metadata.Type), cfg, "traces")
	require.NoError(t, err)
	require.NoError(t, je.start(t.Context(), componenttest.NewNopHost()))
	for i := range 3 {
		require.NoError(t, je.pushTraces(t.Context(), ofRuns(3+i, "b")))
	}
	require.Eventually(t, func() bool { return len(treeFiles(t, store)) == 4 }, 10*time.Second, time.Millisecond)
	index := je.pool.Load().index
	require.Eventually(t, func() bool {
		index.mu.Lock()
		defer index.mu.Unlock()
		return len(index.backup) == 0
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, je.shutdown(t.Context()))
	require.Len(t, readTree(t, store), 4, "what was ended is in the store")
	require.Len(t, readTree(t, folder), 2, "what is active is here")
}

// TestPartitionedStartFails on a folder that nothing can be written to, before any data is accepted.
func TestPartitionedStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	cfg := partitionedConfig(file)
	e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	require.ErrorContains(t, e.Start(t.Context(), componenttest.NewNopHost()), file)
	require.NoError(t, e.Shutdown(t.Context()))
}

// BenchmarkManyFiles writes to an archive of 1,000 partitions with 100 files each: a write, an open and a rotation cost what
// they cost in an empty one, since no folder is read.
func BenchmarkManyFiles(b *testing.B) {
	for _, files := range []int{0, 100} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			folder := b.TempDir()
			for p := range 1000 {
				run := filepath.Join(folder, fmt.Sprintf("run-%d", p))
				require.NoError(b, os.Mkdir(run, 0o750))
				for f := range files {
					name := fmt.Sprintf("rank-0-%s.jsonl", time.Date(2026, 1, 1, 0, 0, f, 0, time.UTC).Format(backupTime))
					require.NoError(b, os.WriteFile(filepath.Join(run, name), []byte("{}\n"), 0o600))
				}
			}
			cfg := partitionedConfig(folder)
			cfg.MaxOpenFiles = 10
			cfg.Rotation.MaxBytes = 1000
			e, err := newJSONLExporter(exportertest.NewNopSettings(metadata.Type), cfg, "traces")
			require.NoError(b, err)
			require.NoError(b, e.start(context.Background(), component.Host(componenttest.NewNopHost())))
			requests := make([]ptrace.Traces, 1000)
			for i := range requests {
				requests[i] = ofRuns(i, fmt.Sprintf("run-%d", i))
			}
			i := 0
			for b.Loop() {
				if err := e.pushTraces(context.Background(), requests[i%1000]); err != nil {
					b.Fatal(err)
				}
				i++
			}
			require.NoError(b, e.shutdown(context.Background()))
		})
	}
}
