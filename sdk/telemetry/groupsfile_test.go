// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package telemetry

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	lens "github.com/lenscol/lenscol/sdk"
)

func TestParseGroups(t *testing.T) {
	for _, c := range []struct{ name, text, spec, err string }{
		{"one", "step", "step", ""},
		{"a list", "per_step,nvrx.ckpt", "per_step,nvrx.ckpt", ""},
		{"lines, blanks, comments", "# for the hunt of Friday\n step , JOB\n\toptimizer # all\n", "step,JOB,optimizer", ""},
		{"none", "none\n", "", ""},
		{"none, among others", "none,step", "", "none must stand alone"},
		{"empty", "", "", "it names no group; none switches all off"},
		{"comments alone", "# step\n", "", "it names no group; none switches all off"},
		{"not text", "st\x00ep", "", `"st\x00ep" is no name of a group or preset`},
		{"not UTF-8", "\xff", "", `"\xff" is no name of a group or preset`},
		{"another format", "groups: [step]", "", `"groups:" is no name of a group or preset`},
		{"a long name", strings.Repeat("a", 129), "", " is no name of a group or preset"},
		{"a long file", strings.Repeat("step\n", 14000), "", "it is longer than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, err := parseGroups(c.text)
			require.Equal(t, c.spec, spec)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
				require.Less(t, len(err.Error()), 200)
			}
		})
	}
}

func FuzzParseGroups(f *testing.F) {
	for _, seed := range []string{"step", "a,b\n#c", "none", "\xff\x00", " , ,"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := parseGroups(text)
		if err != nil {
			require.Empty(t, spec)
			return
		}
		again, err := parseGroups(spec + "\n")
		if spec != "" { // none
			require.NoError(t, err)
			require.Equal(t, spec, again)
		}
	})
}

// What each look at the file does; the clock is ours.
func TestGroupsFile(t *testing.T) {
	cleanEnv(t)
	lines := logged(t)
	path := filepath.Join(t.TempDir(), "groups")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	lens.SetGroups("job")
	t.Cleanup(func() { lens.SetGroups("") })
	w := &groupsWatch{path: path, read: readGroups, done: make(chan struct{})}
	look := func(want ...string) {
		t.Helper()
		w.look()
		require.ElementsMatch(t, want, lens.EnabledGroups())
	}

	look("job")
	require.Equal(t, 1, strings.Count(lines.String(), "cannot be taken"), "no file yet")
	look("job")
	require.Equal(t, 1, strings.Count(lines.String(), "cannot be taken"), "is said once")
	write("step,job")
	look("job", "step")
	write("step,{")
	look("job", "step")
	require.Contains(t, lines.String(), path+`: \"{\" is no name`)
	write("")
	look("job", "step")
	write("step,nobody_knows_this")
	look("step")
	require.Contains(t, lines.String(), "nobody_knows_this")
	write("none")
	look()
	lens.SetGroups("optimizer") // by the program
	look("optimizer")
	write("step")
	look("step")

	require.NoError(t, os.Remove(path))
	look("step")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	look("step")
	require.Contains(t, lines.String(), "it is no regular file")
}

// A file system that hangs holds neither Setup nor Shutdown, and what it says in the end does not count.
func TestGroupsFileThatDoesNotAnswer(t *testing.T) {
	lens.SetGroups("job")
	t.Cleanup(func() { lens.SetGroups("") })
	running := goleak.IgnoreCurrent()
	asked, answer := make(chan struct{}), make(chan struct{})
	w := &groupsWatch{done: make(chan struct{}), read: func(string) (string, error) {
		close(asked)
		<-answer
		return "step", nil
	}}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	stop := w.start(over, nil)
	<-asked
	stop(over)
	close(answer)
	require.NoError(t, goleak.Find(running), "it ends")
	require.Equal(t, []string{"job"}, lens.EnabledGroups())
}

// The Config's groups hold until there is a file; then the file's, at each tick or signal, until the shutdown.
func TestWithGroupsFile(t *testing.T) {
	t.Run("ticks", func(t *testing.T) {
		cleanEnv(t)
		path := filepath.Join(t.TempDir(), "groups")
		require.NoError(t, os.WriteFile(path, []byte("optimizer"), 0o600))
		h := setUp(t, to(newSink(t), ProtocolGRPC), WithGroupsFile(path))
		require.Equal(t, []string{"optimizer"}, lens.EnabledGroups())
		require.NoError(t, os.WriteFile(path, []byte("job"), 0o600))
		require.Eventually(t, lens.Group("job").Enabled, time.Minute, 10*time.Millisecond)
		require.NoError(t, h.Shutdown(t.Context()))
		require.Empty(t, lens.EnabledGroups())
	})

	t.Run("signal", func(t *testing.T) {
		cleanEnv(t)
		path := filepath.Join(t.TempDir(), "groups")
		h := setUp(t, to(newSink(t), ProtocolGRPC), WithGroupsFile(path, syscall.SIGHUP))
		require.Equal(t, []string{"step"}, lens.EnabledGroups())
		require.NoError(t, os.WriteFile(path, []byte("job"), 0o600))
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		require.Eventually(t, lens.Group("job").Enabled, time.Minute, time.Millisecond)
		require.NoError(t, h.Shutdown(t.Context()))
	})
}
