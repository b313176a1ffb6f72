// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package folder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/ranktest"
)

func TestMain(m *testing.M) {
	ranktest.Main(m, func(spec ranktest.Spec) (lens.Transport, func(), error) {
		transport, err := New(Config{Member: spec.Member, Path: spec.Where})
		return transport, func() {}, err
	})
}

func TestFourProcesses(t *testing.T) {
	ranktest.Run(t, func(t *testing.T) string { return t.TempDir() })
}

const job = "job 7"

// rankOf is a rank of a job of n at a path.
func rankOf(t testing.TB, rank, n int, path string) *Transport {
	transport, err := New(Config{Member: broadcast.Member{Job: job, Rank: rank, WorldSize: n}, Path: path})
	require.NoError(t, err)
	return transport
}

func world(t *testing.T, n int, path string) (out []lens.Transport) {
	for rank := range n {
		out = append(out, rankOf(t, rank, n, path))
	}
	return out
}

func TestManyRanksLeaveNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "by the first")
	ranks := world(t, 100, path)
	for n := range 3 {
		ranktest.Together(t, n+1, n, ranks...) // each time from another rank
	}
	left, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOneRankTouchesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "never made")
	ranktest.Together(t, 1, 0, rankOf(t, 0, 1, path))
	require.NoDirExists(t, path)
}

// What an earlier run of the same job left behind, whole or torn, answers nobody and serves nobody.
func TestStaleFiles(t *testing.T) {
	path := t.TempDir()
	ranks := world(t, 3, path)
	folder := ranks[0].(*Transport).folder
	require.NoError(t, os.MkdirAll(folder, 0o700))
	for _, name := range []string{
		"0-0-1-0123456789abcdef.want", "0-0-1-0123456789abcdef.have", // asked and answered, not taken
		"0-0-2-0123456789abcdef.want", // asked only
		"0-0-2-00000000000000ff.have", // gave up
		"0-0-1-00000000000000ee.tmp",  // killed while it was written
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(`{"traceparent":"`+ranktest.Traceparent(66)+`"}`), 0o600))
	}
	ranktest.Together(t, 1, 0, ranks...)
	require.NoDirExists(t, folder, "the next run finds nothing")
}

// A stale ticket of a rank does not stand for the rank: the source waits for the one that comes.
func TestStaleTicketIsNobody(t *testing.T) {
	path := t.TempDir()
	source := rankOf(t, 0, 2, path)
	require.NoError(t, os.MkdirAll(source.folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(source.folder, "0-0-1-0123456789abcdef.want"), nil, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	var failed error
	done.Go(func() { _, failed = lens.Broadcast(ctx, source, 0) })
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(source.folder, "0-0-1-0123456789abcdef.have"))
		return err == nil
	}, time.Minute, time.Millisecond)
	cancel()
	done.Wait()
	require.ErrorContains(t, failed, "1 of 2 ranks did not come for it (1)")
	require.ErrorContains(t, failed, source.folder)
}

func TestWhoGivesUpLeavesNoAnswer(t *testing.T) {
	path := t.TempDir()
	source, rank := rankOf(t, 0, 3, path), rankOf(t, 1, 3, path)
	brief, end := context.WithCancel(t.Context())
	end()
	_, err := lens.Broadcast(brief, rank, 0)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "the source did not answer")
	require.NoDirExists(t, rank.folder)

	s := roundOf(source, 0, "{}")
	root, err := open(source.folder)
	require.NoError(t, err)
	defer root.Close()
	late, gone := newTicket(0, 0, 1), newTicket(0, 0, 2)
	require.NoError(t, create(root, late.want(), nil))
	require.NoError(t, create(root, gone.want(), nil))
	require.NoError(t, s.look(root))
	require.NoError(t, root.Remove(gone.want()))
	require.NoError(t, s.clean(root))
	var left []string
	require.NoError(t, names(root, func(name string) error { left = append(left, name); return nil }))
	require.ElementsMatch(t, []string{late.want(), late.have()}, left, "who still waits finds an answer")
}

func TestLinksAreNotFollowed(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(`{"traceparent":"secret"}`), 0o600))
	for _, c := range []struct {
		name string
		make func(at string) error
		want string
	}{
		{"a link out", func(at string) error { return os.Symlink(secret, at) }, "is no plain file"},
		{"a link within", func(at string) error {
			inner := filepath.Join(filepath.Dir(at), "inner")
			return errors.Join(os.WriteFile(inner, []byte("{}"), 0o600), os.Symlink("inner", at))
		}, "is no plain file"},
		{"a pipe", func(at string) error { return syscall.Mkfifo(at, 0o600) }, "is no plain file"},
		{"a folder", func(at string) error { return os.Mkdir(at, 0o700) }, "is no plain file"},
		{"a large file", func(at string) error { return os.WriteFile(at, make([]byte, lens.MaxBroadcast+1), 0o600) }, "has more than 262144 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rank := rankOf(t, 1, 2, t.TempDir())
			mine := newTicket(0, 0, 1)
			require.NoError(t, os.MkdirAll(rank.folder, 0o700))
			require.NoError(t, c.make(filepath.Join(rank.folder, mine.have())))
			_, err := rank.ask(t.Context(), mine)
			require.ErrorContains(t, err, c.want)
		})
	}
	t.Run("in place of the job's folder", func(t *testing.T) {
		rank := rankOf(t, 1, 2, t.TempDir())
		elsewhere := t.TempDir()
		require.NoError(t, os.Symlink(elsewhere, rank.folder))
		_, err := lens.Broadcast(t.Context(), rank, 0)
		require.ErrorContains(t, err, "a link is where the folder should be")
		left, err := os.ReadDir(elsewhere)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("in place of what the source writes", func(t *testing.T) {
		source := rankOf(t, 0, 2, t.TempDir())
		root, err := open(source.folder)
		require.NoError(t, err)
		defer root.Close()
		asked := newTicket(0, 0, 1)
		require.NoError(t, create(root, asked.want(), nil))
		require.NoError(t, root.Symlink(secret, asked.have()))
		require.NoError(t, root.Symlink(secret, asked.temporary()))
		require.NoError(t, roundOf(source, 0, "{}").look(root))
		kept, err := os.ReadFile(secret)
		require.NoError(t, err)
		require.Equal(t, `{"traceparent":"secret"}`, string(kept))
		got, err := read(root, asked.have())
		require.NoError(t, err)
		require.Equal(t, "{}", string(got))
	})
}

func TestFoldersThatCannotBe(t *testing.T) {
	path := t.TempDir()
	file := filepath.Join(path, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, rank := range world(t, 2, file) {
		_, err := lens.Broadcast(t.Context(), rank, 0) // fails at once: the context does not end
		require.ErrorIs(t, err, syscall.ENOTDIR)
	}
	if os.Getuid() != 0 {
		require.NoError(t, os.Chmod(path, 0o500))
		for _, rank := range world(t, 2, path) {
			_, err := lens.Broadcast(t.Context(), rank, 0)
			require.ErrorIs(t, err, os.ErrPermission)
		}
	}
}

func TestTooManyTickets(t *testing.T) {
	source := rankOf(t, 0, 2, t.TempDir())
	root, err := open(source.folder)
	require.NoError(t, err)
	defer root.Close()
	for range 1024 + 16*2 + 1 {
		require.NoError(t, create(root, newTicket(0, 0, 1).want(), nil))
	}
	_, err = lens.Broadcast(t.Context(), source, 0)
	require.ErrorContains(t, err, "more than 1056 tickets are there, of earlier runs: remove the folder")
}

// roundOf is a broadcast of a source.
func roundOf(t *Transport, round uint64, data string) *source {
	return newSource(t.config.Member, round, []byte(data))
}

func TestModes(t *testing.T) {
	rank := rankOf(t, 1, 2, filepath.Join(t.TempDir(), "new"))
	root, err := rank.leave(ticket{0, 0, 1, "0123456789abcdef"})
	require.NoError(t, err)
	defer root.Close()
	for path, want := range map[string]os.FileMode{rank.config.Path: 0o700, rank.folder: 0o700, filepath.Join(rank.folder, "0-0-1-0123456789abcdef.want"): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), path)
	}
	require.Equal(t, "9baabbff386ff3aa5450a1bdb3a43f10", filepath.Base(rank.folder))
}

func TestConfigIsRefused(t *testing.T) {
	_, err := New(Config{Member: broadcast.Member{Job: job, WorldSize: 1}, Path: "shared"})
	require.ErrorContains(t, err, `path "shared": must be absolute`)
	_, err = New(Config{Path: "/shared"})
	require.ErrorContains(t, err, "job is empty")
	_, err = lens.Broadcast(t.Context(), rankOf(t, 1, 2, "/shared"), 2)
	require.ErrorContains(t, err, "source 2: must be a rank, 0 to 1")
	_, err = rankOf(t, 0, 2, "/shared").Broadcast(t.Context(), 0, make([]byte, lens.MaxBroadcast+1))
	require.ErrorContains(t, err, "must be at most 262144")
}

func TestParseName(t *testing.T) {
	for _, c := range []struct {
		name   string
		want   ticket
		suffix string
		ok     bool
	}{
		{"0-0-1-0123456789abcdef.want", ticket{0, 0, 1, "0123456789abcdef"}, "want", true},
		{"18446744073709551615-7-999999999-ffffffffffffffff.have", ticket{1<<64 - 1, 7, 999999999, "ffffffffffffffff"}, "have", true},
		{"18446744073709551616-0-1-0123456789abcdef.want", ticket{}, "", false},
		{"00-0-1-0123456789abcdef.want", ticket{}, "", false},
		{"0-0-1-0123456789ABCDEF.want", ticket{}, "", false},
		{"0-0-1-0123456789abcdef.want.have", ticket{}, "", false},
		{"0-0-1-0123456789abcdef", ticket{}, "", false},
		{"0--1-1-0123456789abcdef.want", ticket{}, "", false},
		{".nfs0000000001", ticket{}, "", false},
	} {
		got, suffix, ok := parseName(c.name)
		require.Equal(t, c.ok, ok, c.name)
		if ok {
			require.Equal(t, c.want, got)
			require.Equal(t, c.suffix, suffix)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, seed := range []string{"0-0-1-0123456789abcdef.want", "3-1-2-ffffffffffffffff.tmp", "../x", "-", "1-1-1-.have"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, suffix, ok := parseName(name)
		if !ok {
			return
		}
		require.Equal(t, name, map[string]string{"want": got.want(), "have": got.have(), "tmp": got.temporary()}[suffix])
		require.False(t, strings.ContainsAny(name, "/\\"))
	})
}
