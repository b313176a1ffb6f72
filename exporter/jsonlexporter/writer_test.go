// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadatatest"
	"github.com/lenscol/lenscol/internal/testbed"
)

// testWriter starts a writer of folder/traces.jsonl.
func testWriter(t *testing.T, folder string, change func(*writerSettings)) *writer {
	t.Helper()
	set := testWriterSettings(t, folder, "traces.jsonl", componenttest.NewNopTelemetrySettings())
	if change != nil {
		change(&set)
	}
	w, err := startWriter(set, &compact{members: allIdentity()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.close(context.Background())) })
	return w
}

func testWriterSettings(t testing.TB, folder, path string, telemetry component.TelemetrySettings) writerSettings {
	t.Helper()
	root, err := openRoot(folder, true, 0o750)
	require.NoError(t, err)
	template, err := parsePath(filepath.Join(folder, path), CompressionNone)
	require.NoError(t, err)
	x, err := acquireIndex(root, template)
	require.NoError(t, err)
	builder, err := metadata.NewTelemetryBuilder(telemetry)
	require.NoError(t, err)
	t.Cleanup(func() {
		x.release()
		require.NoError(t, root.close())
	})
	return writerSettings{
		root: root, path: path, index: x, sync: SyncNone, fileMode: 0o640, logger: zap.NewNop(), telemetry: builder, now: time.Now,
		status: func(error) {}, rotated: func(string) {}, pruned: func([]string) {}, grown: func(int64) {},
	}
}

func send(ctx context.Context, w *writer, td ptrace.Traces) error {
	c := newChunk()
	addTraces(c, w.layout, td)
	w.submit(c)
	return w.await(ctx, c)
}

func fileCount(t *testing.T, folder string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	require.NoError(t, err)
	return len(files)
}

// TestNoRecordCrossesAFile sends requests of random size around the rotation size from several senders.
func TestNoRecordCrossesAFile(t *testing.T) {
	for _, limit := range []Bytes{200, 1000, 5000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			folder := t.TempDir()
			w := testWriter(t, folder, func(s *writerSettings) { s.rotation.MaxBytes = limit })
			var wg sync.WaitGroup
			for s := range 4 {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(uint64(s), uint64(limit)))
					for first := s * 1000; first < s*1000+60; {
						n := 1 + random.IntN(20)
						require.NoError(t, send(t.Context(), w, numbered(int64(first%7), first, n)))
						first += n
					}
				})
			}
			wg.Wait()
			names := readFiles(t, folder)
			for s := range 4 {
				require.Subset(t, names, spanNames(s*1000, 60))
			}
			compacted := slices.Compact(slices.Sorted(slices.Values(names)))
			require.Len(t, compacted, len(names), "a record was written twice")
			files, err := filepath.Glob(filepath.Join(folder, "traces-*.jsonl"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			for _, f := range files {
				info, err := os.Stat(f)
				require.NoError(t, err)
				require.True(t, info.Size() <= int64(limit) || len(recordsOf(t, f)) == 1, "%s has %d bytes", f, info.Size())
				require.NotZero(t, info.Size())
			}
		})
	}
}

func recordsOf(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return checkFile(t, file, text)
}

func TestOversizeRecordGetsAFileOfItsOwn(t *testing.T) {
	folder := t.TempDir()
	w := testWriter(t, folder, func(s *writerSettings) { s.rotation.MaxBytes = 2000 })
	td := numbered(0, 0, 3)
	big := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1)
	big.Attributes().PutStr("big", strings.Repeat("x", 10_000))
	require.NoError(t, send(t.Context(), w, numbered(0, 10, 1)))
	require.NoError(t, send(t.Context(), w, td))
	require.NoError(t, send(t.Context(), w, numbered(0, 20, 1)))
	files, err := filepath.Glob(filepath.Join(folder, "traces-*.jsonl"))
	require.NoError(t, err)
	slices.Sort(files)
	require.Len(t, files, 2)
	require.Equal(t, []string{"span-000010", "span-000000"}, recordsOf(t, files[0]))
	require.Equal(t, []string{"span-000001"}, recordsOf(t, files[1]))
	require.Equal(t, []string{"span-000002", "span-000020"}, recordsOf(t, filepath.Join(folder, "traces.jsonl")))
}

func TestNothingIsPrunedUnlessAsked(t *testing.T) {
	for _, tt := range []struct{ keep, want int }{{0, 11}, {3, 4}} {
		t.Run(fmt.Sprint(tt.keep), func(t *testing.T) {
			folder := t.TempDir()
			foreign := filepath.Join(folder, "traces-2026.jsonl")
			require.NoError(t, os.WriteFile(foreign, nil, 0o600))
			w := testWriter(t, folder, func(s *writerSettings) {
				s.rotation = RotationConfig{MaxBytes: 10, MaxBackups: tt.keep}
			})
			for i := range 11 {
				require.NoError(t, send(t.Context(), w, numbered(0, i, 1)))
			}
			require.Equal(t, tt.want+1, fileCount(t, folder))
			require.FileExists(t, foreign)
			require.Equal(t, spanNames(11-tt.want, tt.want), readFiles(t, folder), "the newest are kept")
		})
	}
}

// TestPruningGoesOnAfterARestart has the names of the run before recognised.
func TestPruningGoesOnAfterARestart(t *testing.T) {
	folder := t.TempDir()
	for i := range 6 {
		w := testWriter(t, folder, func(s *writerSettings) { s.rotation = RotationConfig{MaxBytes: 10, MaxBackups: 2} })
		require.NoError(t, send(t.Context(), w, numbered(0, i, 1)))
		require.NoError(t, w.close(t.Context()))
	}
	require.Equal(t, spanNames(3, 3), readFiles(t, folder))
}

func TestBackupNames(t *testing.T) {
	folder := t.TempDir()
	root, err := os.OpenRoot(folder)
	require.NoError(t, err)
	defer root.Close()
	at := time.Date(2026, 11, 29, 16, 24, 28, 123456789, time.FixedZone("", 3600))
	const taken = "traces-20261129T152428.123456790Z.jsonl.zst"
	require.NoError(t, os.WriteFile(filepath.Join(folder, taken), nil, 0o600))
	name := func(now time.Time) string {
		path, _ := backupName(root, "traces.jsonl.zst", taken, now)
		return path
	}
	require.Equal(t, "traces-20261129T152428.123456791Z.jsonl.zst", name(at), "the clock stands before the newest file")
	require.Equal(t, "traces-20261129T152428.123456791Z.jsonl.zst", name(at.Add(-time.Hour)), "the clock was set back")
	require.Equal(t, "traces-20261130T152428.123456789Z.jsonl.zst", name(at.Add(24*time.Hour)))
	path, _ := backupName(root, "traces.jsonl.zst", "", at.Add(1))
	require.Equal(t, "traces-20261129T152428.123456791Z.jsonl.zst", path, "no file that is there is replaced")

	for _, tt := range []struct {
		path, active string
	}{
		{"traces-20261129T152428.123456789Z.jsonl", "traces.jsonl"},
		{"run-7/rank-3-20261129T152428.123456789Z.jsonl.zst", "run-7/rank-3.jsonl.zst"},
		{"a-20261129T152428.123456789Z", "a"},
		{"traces-20261129T152428Z.jsonl", ""},
		{"traces-20261329T152428.123456789Z.jsonl", ""},
		{"traces-20261129T152428.123456789Z.jsonl.bak", ""},
		{"20261129T152428.123456789Z.jsonl", ""},
		{"traces.jsonl", ""},
	} {
		active, _, ok := splitBackup(tt.path)
		require.Equal(t, tt.active != "", ok, tt.path)
		require.Equal(t, tt.active, active)
	}
}

func TestRotationByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		w := testWriter(t, folder, func(s *writerSettings) {
			s.rotation.MaxAge = time.Hour
			s.now = func() time.Time { return time.Now().AddDate(100, 0, 0) } // after every birth time of this machine
		})
		require.NoError(t, send(t.Context(), w, numbered(0, 0, 1)))
		time.Sleep(2 * time.Hour) // of the bubble's clock: nothing else comes
		synctest.Wait()
		require.NoFileExists(t, filepath.Join(folder, "traces.jsonl"), "an idle file is rotated too; the next one begins with the next record")
		require.Equal(t, spanNames(0, 1), readFiles(t, folder))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, 1, fileCount(t, folder))
	})
}

// TestClockOfTheFileSystem has a file system whose clock is another one, as that of a file server, or of a host whose clock was just set:
// the age of a new file is by ours, else each write would end the file of the one before.
func TestClockOfTheFileSystem(t *testing.T) {
	folder := t.TempDir()
	begin := time.Now().AddDate(100, 0, 0).Truncate(24 * time.Hour)
	now := atomic.Pointer[time.Time]{}
	now.Store(&begin)
	w := testWriter(t, folder, func(s *writerSettings) {
		s.rotation = RotationConfig{Schedule: ScheduleDaily, MaxAge: 25 * time.Hour}
		s.now = func() time.Time { return *now.Load() }
	})
	for i := range 3 {
		require.NoError(t, send(t.Context(), w, numbered(0, i, 1)))
	}
	require.Equal(t, 1, fileCount(t, folder))
	tomorrow := begin.Add(24 * time.Hour)
	now.Store(&tomorrow)
	require.NoError(t, send(t.Context(), w, numbered(0, 3, 1)))
	require.Equal(t, 2, fileCount(t, folder))
	require.Equal(t, spanNames(0, 4), readFiles(t, folder))
}

// TestFlushInterval: an idle file writes at once; what follows waits, together, until the interval has passed.
func TestFlushInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		w := testWriter(t, folder, func(s *writerSettings) { s.flushInterval = time.Second })
		begin := time.Now()
		require.NoError(t, send(t.Context(), w, numbered(0, 0, 1)))
		require.Zero(t, time.Since(begin))
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				require.NoError(t, send(t.Context(), w, numbered(0, 1+i, 1)))
				require.Equal(t, time.Second, time.Since(begin))
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		begin = time.Now()
		require.NoError(t, send(t.Context(), w, numbered(0, 4, 1)))
		require.Zero(t, time.Since(begin))
		require.ElementsMatch(t, spanNames(0, 5), readFiles(t, folder))
	})
}

// TestFullGroupDoesNotWait: what is large enough is written before the interval has passed.
func TestFullGroupDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		w := testWriter(t, folder, func(s *writerSettings) { s.flushInterval = time.Hour })
		require.NoError(t, send(t.Context(), w, numbered(0, 0, 1)))
		begin := time.Now()
		require.NoError(t, send(t.Context(), w, numbered(0, 1, 10_000)))
		require.Zero(t, time.Since(begin))
		require.Equal(t, spanNames(0, 10_001), readFiles(t, folder))
	})
}

// TestGroupCommit lets requests gather behind one that waits, and looks at the group that the writer takes.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		var writes atomic.Int64
		w := testWriter(t, folder, func(s *writerSettings) {
			s.flushInterval = time.Second
			s.now = func() time.Time { return time.Now() }
		})
		require.NoError(t, send(t.Context(), w, numbered(0, 0, 1)))
		for i := range 100 {
			go func() {
				require.NoError(t, send(t.Context(), w, numbered(0, 1+i, 1)))
				writes.Add(1)
			}()
		}
		synctest.Wait()
		w.mu.Lock()
		require.Len(t, w.pending, 100, "all of them are in the next group")
		w.mu.Unlock()
		require.Zero(t, writes.Load())
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 100, writes.Load())
		require.ElementsMatch(t, spanNames(0, 101), readFiles(t, folder))
	})
}

func TestCancelledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		w := testWriter(t, folder, func(s *writerSettings) { s.flushInterval = time.Second })
		require.NoError(t, send(t.Context(), w, numbered(0, 0, 1)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, send(ctx, w, numbered(0, 1, 1)), context.DeadlineExceeded)
		require.NoError(t, send(t.Context(), w, numbered(0, 2, 1)))
		require.Equal(t, []string{"span-000000", "span-000002"}, readFiles(t, folder), "what the writer has not begun with is taken back")
	})
}

func TestCloseWritesWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		w := testWriter(t, folder, func(s *writerSettings) { s.flushInterval = time.Hour })
		require.NoError(t, send(t.Context(), w, numbered(0, 0, 1)))
		answer := make(chan error, 1)
		go func() { answer <- send(t.Context(), w, numbered(0, 1, 1)) }()
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, w.close(t.Context()))
		require.NoError(t, w.close(t.Context()), "twice is once")
		require.NoError(t, <-answer)
		require.Zero(t, time.Since(begin), "it does not wait for the interval")
		require.ErrorIs(t, send(t.Context(), w, numbered(0, 2, 1)), errClosed)
		require.Equal(t, spanNames(0, 2), readFiles(t, folder))
	})
}

func TestSyncModes(t *testing.T) {
	for _, mode := range []SyncMode{SyncNone, SyncInterval, SyncAlways} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				folder := t.TempDir()
				w := testWriter(t, folder, func(s *writerSettings) { s.sync, s.syncInterval = mode, time.Second })
				require.NoError(t, send(t.Context(), w, numbered(0, 0, 1)))
				require.NoError(t, send(t.Context(), w, numbered(0, 1, 1)))
				time.Sleep(2 * time.Second)
				require.NoError(t, w.close(t.Context()))
				least := map[SyncMode]int{SyncNone: 0, SyncInterval: 1, SyncAlways: 2}[mode]
				require.GreaterOrEqual(t, w.file.syncs, least)
				require.LessOrEqual(t, w.file.syncs, 2*least)
				require.False(t, w.file.unsynced)
				require.Equal(t, spanNames(0, 2), readFiles(t, folder))
			})
		})
	}
}

// TestFileChangedFromOutside does what logrotate and people do to a file that is being written.
func TestFileChangedFromOutside(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(t *testing.T, path string)
		refused  bool // the request whose lines went nowhere is refused, and comes again
		replaced int64
		want     []string
	}{
		{"removed", func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, true, 1, spanNames(5, 10)},
		{"folder removed", func(t *testing.T, path string) { require.NoError(t, os.RemoveAll(filepath.Dir(path))) }, true, 1, spanNames(5, 10)},
		{"truncated", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) }, true, 1, spanNames(5, 10)},
		{"renamed", func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, strings.TrimSuffix(path, ".jsonl")+"-1.jsonl"))
		}, false, 0, spanNames(0, 15)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.Mkdir(folder, 0o750))
			tel := componenttest.NewTelemetry()
			defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
			set := testWriterSettings(t, folder, "traces.jsonl", tel.NewTelemetrySettings())
			w := testWriter(t, folder, func(s *writerSettings) { *s = set })
			require.NoError(t, send(t.Context(), w, numbered(0, 0, 5)))
			tt.change(t, filepath.Join(folder, "traces.jsonl"))
			err := send(t.Context(), w, numbered(0, 5, 5))
			if tt.refused {
				require.ErrorIs(t, err, errReplaced)
				err = send(t.Context(), w, numbered(0, 5, 5))
			}
			require.NoError(t, err)
			require.NoError(t, send(t.Context(), w, numbered(0, 10, 5)))
			require.ElementsMatch(t, tt.want, readFiles(t, folder))
			if tt.replaced > 0 {
				metadatatest.AssertEqualExporterJsonlFilesReplaced(t, tel, []metricdata.DataPoint[int64]{{Value: tt.replaced}}, metricdatatest.IgnoreTimestamp())
			}
		})
	}
}

// TestFileReplacedByALinkOut has the file moved to another disk by its owner, with a link to it in its place: a copy, and what is
// open has no name any more. The link is not followed, and nothing is acknowledged that went nowhere.
func TestFileReplacedByALinkOut(t *testing.T) {
	folder, outside := t.TempDir(), filepath.Join(t.TempDir(), "traces.jsonl")
	path := filepath.Join(folder, "traces.jsonl")
	w := testWriter(t, folder, nil)
	require.NoError(t, send(t.Context(), w, numbered(0, 0, 5)))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(outside, text, 0o600))
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(outside, path))
	require.ErrorIs(t, send(t.Context(), w, numbered(0, 5, 5)), errReplaced)
	require.ErrorContains(t, send(t.Context(), w, numbered(0, 5, 5)), "escapes")
	require.NoError(t, os.Remove(path))
	require.NoError(t, send(t.Context(), w, numbered(0, 5, 5)))
	require.Equal(t, spanNames(5, 5), readFiles(t, folder))
}

// TestStaleDescriptor has the descriptor of the file fail for good, as those of a network file system do whose server came back
// another one: the file is opened anew.
func TestStaleDescriptor(t *testing.T) {
	folder := t.TempDir()
	w := testWriter(t, folder, nil)
	require.NoError(t, send(t.Context(), w, numbered(0, 0, 5)))
	require.NoError(t, w.file.f.Close())
	require.ErrorIs(t, send(t.Context(), w, numbered(0, 5, 5)), os.ErrClosed)
	require.NoError(t, send(t.Context(), w, numbered(0, 5, 5)))
	require.Equal(t, spanNames(0, 10), readFiles(t, folder))
}

// TestFolderThatComesBack covers create_directory: false, where the folder is somebody else's to make.
func TestFolderThatComesBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(folder, 0o750))
	w := testWriter(t, folder, func(s *writerSettings) { s.root.create = false })
	require.NoError(t, send(t.Context(), w, numbered(0, 0, 5)))
	require.NoError(t, os.RemoveAll(folder))
	require.ErrorIs(t, send(t.Context(), w, numbered(0, 5, 5)), errReplaced)
	require.ErrorIs(t, send(t.Context(), w, numbered(0, 5, 5)), os.ErrNotExist)
	require.NoDirExists(t, folder)
	require.NoError(t, os.Mkdir(folder, 0o750))
	require.NoError(t, send(t.Context(), w, numbered(0, 5, 5)))
	require.Equal(t, spanNames(5, 5), readFiles(t, folder))
}

// TestStartOnAFullDisk begins, and waits for room as it does where the disk becomes full later.
func TestStartOnAFullDisk(t *testing.T) {
	folder := testbed.Tmpfs(t, "64k")
	filler := filepath.Join(folder, "filler")
	require.Error(t, os.WriteFile(filler, make([]byte, 128<<10), 0o600))
	w := testWriter(t, folder, nil)
	require.True(t, isDiskFull(send(t.Context(), w, numbered(0, 0, 1))))
	require.NoError(t, os.Remove(filler))
	require.NoError(t, send(t.Context(), w, numbered(0, 0, 1)))
	require.Equal(t, spanNames(0, 1), readFiles(t, folder))
}

// TestRotationThatFails writes on: a file that is too large is better than a lost record.
func TestRotationThatFails(t *testing.T) {
	folder := t.TempDir()
	w := testWriter(t, folder, func(s *writerSettings) { s.rotation.MaxBytes = 10 })
	require.NoError(t, send(t.Context(), w, numbered(0, 0, 1)))
	w.settings.index.backup["traces.jsonl"] = []string{"traces-20261129T162428.123456789Z.jsonl"}
	w.settings.path = filepath.Join("missing", "traces.jsonl") // where the rotated file would go
	for i := range 2 {
		require.NoError(t, send(t.Context(), w, numbered(0, 1+i, 1)))
	}
	w.settings.path = "traces.jsonl"
	require.Equal(t, spanNames(0, 3), readFiles(t, folder))
	require.Equal(t, 1, fileCount(t, folder))
}

func TestTornTail(t *testing.T) {
	whole := `{"type":"resource","id":1}` + "\n" + `{"type":"scope","id":1,"resource":1}` + "\n" + `{"type":"span","name":"old","scope":1}` + "\n"
	for _, tt := range []struct {
		name string
		tear func(string) string
		torn int64
	}{
		{"nothing torn", func(s string) string { return s }, 0},
		{"empty", func(string) string { return "" }, 0},
		{"one byte", func(s string) string { return s + "{" }, 1},
		{"without its newline", func(s string) string { return s + `{"type":"span","name":"torn"}` }, 29},
		{"longer than a block", func(s string) string { return s + `{"` + strings.Repeat("x", 200<<10) }, 200<<10 + 2},
		{"zeros of a power cut", func(s string) string { return s + strings.Repeat("\x00", 4096) }, 4096},
		{"nothing whole", func(string) string { return `{"type":"res` }, 12},
		{"nothing but the zeros of a power cut", func(string) string { return strings.Repeat("\x00", 100_000) }, 100_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "traces.jsonl")
			text := tt.tear(whole)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			tel := componenttest.NewTelemetry()
			defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
			set := testWriterSettings(t, folder, "traces.jsonl", tel.NewTelemetrySettings())
			w := testWriter(t, folder, func(s *writerSettings) { *s = set })
			require.NoError(t, send(t.Context(), w, numbered(0, 1, 1)))
			if tt.torn > 0 {
				metadatatest.AssertEqualExporterJsonlTornBytes(t, tel, []metricdata.DataPoint[int64]{{Value: tt.torn}}, metricdatatest.IgnoreTimestamp())
			}
			want := spanNames(1, 1)
			if strings.HasPrefix(text, whole) {
				want = append([]string{"old"}, want...)
			}
			require.Equal(t, want, readFiles(t, folder))
		})
	}
}

// TestFailedWriteIsCutBack makes a write fail half way by the limit on the size of files.
func TestFailedWriteIsCutBack(t *testing.T) {
	folder := testbed.Tmpfs(t, "64k")
	var failing []error
	w := testWriter(t, folder, func(s *writerSettings) { s.status = func(err error) { failing = append(failing, err) } })
	sent := 0
	for {
		if err := send(t.Context(), w, numbered(0, sent, 100)); err != nil {
			break
		}
		sent += 100
	}
	require.Equal(t, spanNames(0, sent), readFiles(t, folder))
	require.NoError(t, send(t.Context(), w, numbered(0, sent, 1)), "a smaller request still has room")
	require.Equal(t, spanNames(0, sent+1), readFiles(t, folder))
	require.Len(t, failing, 2)
	require.Error(t, failing[0])
	require.NoError(t, failing[1])
}

// TestLockIsReleased covers a lock file that an unclean stop left behind.
func TestLockIsReleased(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "traces.jsonl.lock"), []byte("999999\n"), 0o600))
	w := testWriter(t, folder, nil)
	text, err := os.ReadFile(filepath.Join(folder, "traces.jsonl.lock"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%d\n", os.Getpid()), string(text))
	require.NoError(t, w.close(t.Context()))
	testWriter(t, folder, nil)
}

func BenchmarkCommit(b *testing.B) {
	for _, senders := range []int{1, 8} {
		b.Run(fmt.Sprintf("senders=%d", senders), func(b *testing.B) {
			set := testWriterSettings(b, b.TempDir(), "traces.jsonl", componenttest.NewNopTelemetrySettings())
			set.rotation = RotationConfig{MaxBytes: 256 << 20, MaxBackups: 1}
			w, err := startWriter(set, &compact{members: allIdentity()})
			require.NoError(b, err)
			td := benchTraces()
			b.SetParallelism(senders)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := send(context.Background(), w, td); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(float64(b.N)*512), "ns/span")
			require.NoError(b, w.close(context.Background()))
		})
	}
}
