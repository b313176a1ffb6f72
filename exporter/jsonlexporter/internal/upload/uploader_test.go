// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"context"
	"crypto/md5"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"
)

func TestMain(m *testing.M) {
	if crashChild() {
		return
	}
	var idle []goleak.Option
	if os.Getenv(anyStoreURL) != "" { // Its server outlives the test, and the drivers' clients keep connections to it.
		idle = append(idle, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
	}
	goleak.VerifyTestMain(m, idle...)
}

// fixture is an uploader to a store in memory that can be told to misbehave. It runs in a bubble with a clock of its own.
type fixture struct {
	*Uploader
	t     *testing.T
	dir   string // the archive
	store *hooked
	counts
	logs *observer.ObservedLogs
}

func newFixture(t *testing.T, cfg Config, store *hooked) *fixture {
	if store.inner == nil {
		store.inner = memblob.OpenBucket(nil)
	}
	f := &fixture{t: t, dir: t.TempDir(), store: store}
	f.open(cfg)
	return f
}

func (f *fixture) open(cfg Config) {
	core, logs := observer.New(zapcore.DebugLevel)
	dest, err := parseStore("s3://bucket/pre")
	require.NoError(f.t, err)
	f.logs = logs
	f.Uploader = newUploader(cfg, f.settings(f.dir, zap.New(core)), f.dir, dest, f.store.bucket())
}

func (f *fixture) start() {
	require.NoError(f.t, f.Start(f.t.Context()))
	u := f.Uploader
	f.t.Cleanup(func() { require.NoError(f.t, u.Shutdown(context.Background())) })
}

func (f *fixture) end() { require.NoError(f.t, f.Shutdown(f.t.Context())) }

func (f *fixture) object(name string) string {
	content, err := f.store.inner.ReadAll(f.t.Context(), "pre/"+name)
	require.NoError(f.t, err)
	return string(content)
}

func (f *fixture) there(name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil
}

func one() Config {
	cfg := NewDefaultConfig()
	cfg.Concurrency = 1
	return cfg
}

func TestUploadedUnderPathBelowPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, one(), &hooked{})
		f.start()
		writeFile(t, f.dir, "run-7/rank-0/traces-1.jsonl", "{}\n")
		f.Add("run-7/rank-0/traces-1.jsonl")
		synctest.Wait()
		require.Equal(t, "{}\n", f.object("run-7/rank-0/traces-1.jsonl"))
		require.True(t, f.there("run-7/rank-0/traces-1.jsonl"), "kept without delete_after")
		require.Equal(t, 1, f.uploaded)
		require.EqualValues(t, 3, f.bytes)
		require.Zero(t, f.Waiting())
	})
}

func TestScannedFilesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, one(), &hooked{})
		for _, name := range []string{"new", "old-1", "old-2"} {
			writeFile(t, f.dir, name, name)
		}
		f.Add("new")
		f.Scan([]string{"old-1", "old-2", "new"})
		f.start()
		synctest.Wait()
		require.Equal(t, []string{"pre/old-1", "pre/old-2", "pre/new"}, f.store.written())
	})
}

func TestRestartUploadsOnlyWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		between func(t *testing.T, f *fixture)
		want    []string // what the second run uploads
	}{
		"nothing happened": {func(*testing.T, *fixture) {}, nil},
		"a file was closed": {func(t *testing.T, f *fixture) { writeFile(t, f.dir, "d/b", "b") },
			[]string{"pre/d/b"}},
		"renamed": {func(t *testing.T, f *fixture) {
			require.NoError(t, os.Rename(filepath.Join(f.dir, "d/a"), filepath.Join(f.dir, "d/c")))
		}, []string{"pre/d/c"}},
		"written on": {func(t *testing.T, f *fixture) { writeFile(t, f.dir, "d/a", "aa") },
			[]string{"pre/d/a"}},
		"pruned and another under its name": {func(t *testing.T, f *fixture) {
			require.NoError(t, os.Remove(filepath.Join(f.dir, "d/a")))
			writeFile(t, f.dir, "d/a", "x")
			require.NoError(t, os.Chtimes(filepath.Join(f.dir, "d/a"), time.Time{}, time.Unix(1, 0)))
		}, []string{"pre/d/a"}},
		"marker torn": {func(t *testing.T, f *fixture) {
			require.NoError(t, os.Truncate(filepath.Join(f.dir, f.markers.path("d/a")), 1))
		}, []string{"pre/d/a"}},
		"pruned": {func(t *testing.T, f *fixture) {
			require.NoError(t, os.Remove(filepath.Join(f.dir, "d/a")))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, one(), &hooked{})
				writeFile(t, f.dir, "d/a", "a")
				f.Scan(f.files())
				f.start()
				synctest.Wait()
				require.Equal(t, []string{"pre/d/a"}, f.store.written())

				f.end()
				f.store.inner, f.store.wrote = memblob.OpenBucket(nil), nil // Whatever comes now was uploaded now.
				test.between(t, f)
				f.open(one())
				f.Scan(f.files())
				f.start()
				synctest.Wait()
				require.Equal(t, test.want, f.store.written())
				f.end()
				require.ElementsMatch(t, f.files(), f.markersThere(), "a marker for each file, and for no other")
			})
		})
	}
}

// files are the archive's, as the exporter would name them.
func (f *fixture) files() []string {
	var names []string
	require.NoError(f.t, fs.WalkDir(os.DirFS(f.dir), ".", func(p string, d fs.DirEntry, err error) error {
		if d.IsDir() && p == markerFolder {
			return fs.SkipDir
		}
		if !d.IsDir() {
			names = append(names, p)
		}
		return err
	}))
	return names
}

func (f *fixture) markersThere() []string {
	var names []string
	folder := filepath.Join(f.dir, f.markers.folder)
	_ = filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(folder, strings.TrimSuffix(p, markerSuffix))
			names = append(names, rel)
		}
		return nil
	})
	return names
}

func TestAnotherStoreGetsAllFiles(t *testing.T) {
	archive, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	writeFile(t, archive, "a", "a")
	require.Equal(t, 1, runToFolder(t, archive, first, false, "a").uploaded)
	require.Equal(t, 1, runToFolder(t, archive, second, false, "a").uploaded)
	require.Zero(t, runToFolder(t, archive, first, false, "a").uploaded, "known to have it")
}

// runToFolder uploads files into a folder until none waits.
func runToFolder(t *testing.T, archive, folder string, deleteAfter bool, names ...string) *counts {
	t.Helper()
	cfg := NewDefaultConfig()
	cfg.URL = URL("file://" + folder)
	cfg.DeleteAfter = deleteAfter
	c := &counts{}
	u, err := New(cfg, c.settings(archive, zap.NewNop()))
	require.NoError(t, err)
	u.Scan(names)
	require.NoError(t, u.Start(t.Context()))
	require.Eventually(t, func() bool { return u.Waiting() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, u.Shutdown(t.Context()))
	require.Empty(t, c.failedTries())
	return c
}

func TestFolderHoldsTheFilesAndNothingElse(t *testing.T) {
	archive, folder := t.TempDir(), t.TempDir()
	writeFile(t, archive, "run/a.jsonl", "a\n")
	writeFile(t, archive, "run/b.jsonl.zst", "b\n")
	c := runToFolder(t, archive, folder, true, "run/a.jsonl", "run/b.jsonl.zst")
	require.Equal(t, 2, c.uploaded)
	require.ElementsMatch(t, []string{"run/a.jsonl", "run/b.jsonl.zst"}, c.deletedSet)
	require.Equal(t, []string{"a.jsonl", "b.jsonl.zst"}, names(t, filepath.Join(folder, "run")))
	require.Empty(t, names(t, filepath.Join(archive, "run")))
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestFileIsNeverDeletedAsItsOwnObject(t *testing.T) {
	archive, folder := t.TempDir(), t.TempDir()
	writeFile(t, archive, "a", "a")
	cfg := one()
	cfg.URL = URL("file://" + folder)
	cfg.DeleteAfter = true
	c := &counts{}
	u, err := New(cfg, c.settings(archive, zap.NewNop()))
	require.NoError(t, err)
	u.root = folder // As a mount of the one folder over the other would have it.
	writeFile(t, folder, "a", "a")
	u.Add("a")
	require.NoError(t, u.Start(t.Context()))
	require.Eventually(t, func() bool { return len(c.failedTries()) > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, u.Shutdown(t.Context()))
	require.ErrorIs(t, c.failedTries()[0], errItself)
	require.Equal(t, []string{"a"}, names(t, folder))
	require.Zero(t, c.deleted)
}

func TestDeletedOnlyWhenVerified(t *testing.T) {
	sum := func(s string) []byte { m := md5.Sum([]byte(s)); return m[:] }
	for name, test := range map[string]struct {
		attrs   func(*driver.Attributes)
		stored  string // what the store has instead; empty: what came
		readsIt bool
		fails   string
	}{
		"MD5 is equal": {attrs: func(a *driver.Attributes) { a.MD5 = sum("content") }},
		"ETag of parts is equal": {attrs: func(a *driver.Attributes) {
			a.MD5 = nil
			a.ETag = `"` + fmt.Sprintf("%x", md5.Sum(sum("content"))) + `-1"`
		}},
		"no checksum at all":               {attrs: func(a *driver.Attributes) { a.MD5 = nil; a.ETag = `"0x8DCF"` }},
		"MD5 of something else, read back": {attrs: func(a *driver.Attributes) { a.MD5 = sum("encrypted") }, readsIt: true},
		"ETag of other parts, read back":   {attrs: func(a *driver.Attributes) { a.MD5 = nil; a.ETag = `"` + strings.Repeat("ab", 16) + `-3"` }, readsIt: true},
		"size differs":                     {attrs: func(a *driver.Attributes) { a.Size-- }, fails: "the object has 6 bytes, the file 7"},
		"content differs":                  {attrs: func(*driver.Attributes) {}, stored: "CONTENT", readsIt: true, fails: "the object's content is not the file's"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hooked{inner: memblob.OpenBucket(nil)}
				read := false
				h.read = func(string) { read = true }
				h.attrs = func(key string, a *driver.Attributes) {
					test.attrs(a)
					if test.stored != "" {
						require.NoError(t, h.inner.WriteAll(t.Context(), key, []byte(test.stored), nil))
						a.MD5 = sum(test.stored)
					}
				}
				cfg := one()
				cfg.DeleteAfter = true
				f := newFixture(t, cfg, h)
				writeFile(t, f.dir, "a", "content")
				f.Add("a")
				f.start()
				synctest.Wait()
				require.Equal(t, test.readsIt, read)
				if test.fails == "" {
					require.Empty(t, f.failedTries())
					require.False(t, f.there("a"))
					require.Equal(t, 1, f.uploaded)
					require.Equal(t, []string{"a"}, f.deletedSet)
					require.Empty(t, f.markersThere())
				} else {
					require.ErrorContains(t, f.failedTries()[0], test.fails)
					require.True(t, f.there("a"))
					require.Zero(t, f.uploaded+f.deleted)
					require.Equal(t, 1, f.Waiting())
				}
				f.end()
			})
		})
	}
}

// TestLastCopyIsNotDeleted has an object removed, or replaced, after it was uploaded, by a rule of the store for example.
func TestLastCopyIsNotDeleted(t *testing.T) {
	for name, change := range map[string]func(object string) error{
		"removed":  os.Remove,
		"replaced": func(object string) error { return os.WriteFile(object, []byte("other"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			archive, folder := t.TempDir(), t.TempDir()
			object := filepath.Join(folder, "a")
			writeFile(t, archive, "a", "a")
			require.Equal(t, 1, runToFolder(t, archive, folder, false, "a").uploaded)
			require.NoError(t, change(object))
			c := runToFolder(t, archive, folder, true, "a")
			require.Equal(t, 1, c.uploaded)
			require.Equal(t, 1, c.deleted)
			content, err := os.ReadFile(object)
			require.NoError(t, err)
			require.Equal(t, "a", string(content))
		})
	}
}

func TestDeleteAfterTurnedOnDeletesWhatIsInTheStore(t *testing.T) {
	archive, folder := t.TempDir(), t.TempDir()
	writeFile(t, archive, "a", "a")
	require.Equal(t, 1, runToFolder(t, archive, folder, false, "a").uploaded)
	c := runToFolder(t, archive, folder, true, "a")
	require.Zero(t, c.uploaded, "known to be there")
	require.Equal(t, 1, c.deleted)
	require.NoFileExists(t, filepath.Join(archive, "a"))
}

func TestStoreThatIsAwayGetsEverythingLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		tries := 0
		f := newFixture(t, one(), &hooked{write: func(string) error {
			tries++
			if away.Load() {
				return errAway
			}
			return nil
		}})
		f.start()
		for i := range 100 {
			name := fmt.Sprintf("f-%03d", i)
			writeFile(t, f.dir, name, name)
			f.Add(name)
		}
		time.Sleep(time.Hour) // The bubble's.
		synctest.Wait()
		require.LessOrEqual(t, tries, 170, "a try every 22 to 30 s, however many files wait")
		require.GreaterOrEqual(t, tries, 110)
		require.Len(t, f.failedTries(), tries)
		require.ErrorContains(t, f.failedTries()[0], errAway.Error())
		require.LessOrEqual(t, f.logs.Len(), 61, "the first of a kind in a minute is logged")
		require.Equal(t, 100, f.Waiting())

		away.Store(false)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Zero(t, f.Waiting())
		require.Equal(t, 100, f.uploaded)
		require.Equal(t, 1, f.logs.FilterMessage("uploading again").Len())
	})
}

func TestOneFileThatCannotBeUploadedHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, one(), &hooked{write: func(key string) error {
			if key == "pre/bad" {
				return errAway
			}
			return nil
		}})
		f.start()
		writeFile(t, f.dir, "bad", "x")
		f.Add("bad")
		time.Sleep(time.Hour)
		for i := range 20 {
			name := fmt.Sprintf("good-%d", i)
			writeFile(t, f.dir, name, name)
			f.Add(name)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			require.Equal(t, name, f.object(name))
		}
		require.Equal(t, 1, f.Waiting())
	})
}

func TestWhatIsKnownToBeThereSaysNothingOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{}
		f := newFixture(t, one(), h)
		var old []string
		for i := range 50 {
			old = append(old, fmt.Sprintf("old-%d", i))
			writeFile(t, f.dir, old[i], "x")
		}
		f.Scan(old)
		f.start()
		synctest.Wait()
		f.end()

		h.inner, h.write = memblob.OpenBucket(nil), func(string) error { return errAway }
		f.open(one())
		writeFile(t, f.dir, "new", "x")
		f.Scan(append([]string{"new"}, old...))
		f.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 50, f.uploaded)
		require.Equal(t, 1, f.Waiting())
		require.Less(t, len(f.failedTries()), 10)
		require.Zero(t, f.logs.FilterMessage("uploading again").Len())
	})
}

func TestStalledUploadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hang atomic.Bool
		hang.Store(true)
		f := newFixture(t, one(), &hooked{chunk: func(ctx context.Context, _ string) error {
			if hang.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}})
		f.start()
		writeFile(t, f.dir, "a", "a")
		f.Add("a")
		time.Sleep(f.cfg.Timeout - time.Second)
		synctest.Wait()
		require.Empty(t, f.failedTries())
		hang.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, f.failedTries(), 1)
		require.ErrorIs(t, f.failedTries()[0], errStalled)
		require.Equal(t, "a", f.object("a"))
	})
}

func TestBrokenUploadLeavesNoObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chunks := 0
		f := newFixture(t, one(), &hooked{chunk: func(context.Context, string) error {
			if chunks++; chunks == 2 {
				return errAway
			}
			return nil
		}})
		f.start()
		writeFile(t, f.dir, "a", strings.Repeat("x", 3<<20))
		f.Add("a")
		synctest.Wait()
		require.Len(t, f.failedTries(), 1)
		require.Empty(t, f.store.written())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, f.object("a"), 3<<20)
	})
}

func TestFileThatChangesMeanwhileIsUploadedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := one()
		cfg.DeleteAfter = true
		h := &hooked{}
		f := newFixture(t, cfg, h)
		first := true
		h.attrs = func(string, *driver.Attributes) {
			if first {
				first = false
				writeFile(t, f.dir, "a", "longer")
			}
		}
		writeFile(t, f.dir, "a", "a")
		f.start()
		f.Add("a")
		synctest.Wait()
		require.ErrorIs(t, f.failedTries()[0], errChanged)
		require.True(t, f.there("a"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, "longer", f.object("a"))
		require.False(t, f.there("a"))
	})
}

func TestMissedFilesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, one(), &hooked{})
		mkdir(t, f.dir, "folder")
		require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(f.dir, "link")))
		for _, name := range []string{"gone", "folder", "link"} {
			f.Add(name)
		}
		for _, name := range []string{"../out", "/etc/hostname", ""} {
			f.Add(name)
		}
		f.start()
		synctest.Wait()
		require.Equal(t, []string{"gone", "folder", "link"}, f.missed)
		require.Len(t, f.failedTries(), 3)
		require.Zero(t, f.Waiting())
		require.Empty(t, f.store.written())
	})
}

func TestArchiveThatIsAwayForAWhileLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, one(), &hooked{})
		writeFile(t, f.dir, "a", "a")
		require.NoError(t, os.Rename(f.dir, f.dir+"-away"))
		f.Add("a")
		f.start()
		synctest.Wait()
		require.Empty(t, f.missed)
		require.NoError(t, os.Rename(f.dir+"-away", f.dir))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, "a", f.object("a"))
	})
}

func TestForgetRemovesTheMarker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, one(), &hooked{})
		writeFile(t, f.dir, "d/a", "a")
		f.Add("d/a")
		f.start()
		synctest.Wait()
		require.Equal(t, []string{"d/a"}, f.markersThere())
		require.NoError(t, f.Forget("d/a"))
		require.NoError(t, f.Forget("d/a"), "twice")
		require.Empty(t, f.markersThere())
	})
}

func TestShutdown(t *testing.T) {
	t.Run("lets an upload end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, one(), &hooked{chunk: func(context.Context, string) error {
				time.Sleep(grace / 2)
				return nil
			}})
			writeFile(t, f.dir, "a", "a")
			writeFile(t, f.dir, "b", "b")
			f.start()
			f.Add("a")
			f.Add("b")
			synctest.Wait()
			f.end()
			require.Equal(t, []string{"pre/a"}, f.store.written(), "and begins no other")
			f.Add("c") // Nothing comes of it.
			f.end()
		})
	})
	t.Run("cuts off one that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, one(), &hooked{chunk: func(ctx context.Context, _ string) error {
				<-ctx.Done()
				return ctx.Err()
			}})
			writeFile(t, f.dir, "a", "a")
			f.start()
			f.Add("a")
			synctest.Wait()
			begin := time.Now()
			f.end()
			require.Equal(t, grace, time.Since(begin))
			require.Empty(t, f.failedTries(), "it did not fail")
			require.Empty(t, f.store.written())
			require.True(t, f.there("a"))
		})
	})
	t.Run("without a start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, one(), &hooked{})
			f.end()
			require.Error(t, f.Start(t.Context()))
		})
	})
}

func TestManyFilesByManyGoroutines(t *testing.T) {
	archive, folder := t.TempDir(), t.TempDir()
	cfg := NewDefaultConfig()
	cfg.URL = URL("file://" + folder)
	cfg.Concurrency = 4
	cfg.DeleteAfter = true
	c := &counts{}
	u, err := New(cfg, c.settings(archive, zap.NewNop()))
	require.NoError(t, err)
	require.NoError(t, u.Start(t.Context()))
	const writers, files = 8, 25
	done := make(chan struct{})
	for w := range writers {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range files {
				name := fmt.Sprintf("rank-%d/f-%d", w, i)
				writeFile(t, archive, name, name)
				u.Add(name)
			}
		}()
	}
	for range writers {
		<-done
	}
	require.Eventually(t, func() bool { return u.Waiting() == 0 }, time.Minute, time.Millisecond)
	require.NoError(t, u.Shutdown(t.Context()))
	require.Equal(t, writers*files, c.uploaded)
	require.Equal(t, writers*files, c.deleted)
	for w := range writers {
		require.Len(t, names(t, filepath.Join(folder, fmt.Sprintf("rank-%d", w))), files)
	}
}

func TestPartSizeStaysBelowTheStoresLimit(t *testing.T) {
	for _, size := range []int64{0, 1, 256 << 20, 72 << 30, 1 << 40, 5 << 40} {
		p := partSize(size)
		require.GreaterOrEqual(t, p, int64(minPartSize))
		require.Zero(t, p%(1<<20))
		require.LessOrEqual(t, (size+p-1)/p, int64(10_000))
	}
}

func TestSumsOfParts(t *testing.T) {
	content := []byte("0123456789")
	for _, split := range []int{1, 3, 4, 10} {
		s := newSums(4)
		for i := 0; i < len(content); i += split {
			_, _ = s.Write(content[i:min(i+split, len(content))])
		}
		var parts []byte
		for _, p := range []string{"0123", "4567", "89"} {
			sum := md5.Sum([]byte(p))
			parts = append(parts, sum[:]...)
		}
		require.Equal(t, fmt.Sprintf("%x-3", md5.Sum(parts)), s.etag())
		require.Equal(t, s.etag(), s.etag())
		require.True(t, isPartsETag(s.etag()))
		whole := md5.Sum(content)
		require.Equal(t, whole[:], s.whole.Sum(nil))
	}
}
