// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"gocloud.dev/blob/driver"
)

const (
	crashAt      = "LENSCOL_TEST_UPLOAD_CRASH_AT"
	crashArchive = "LENSCOL_TEST_UPLOAD_ARCHIVE"
	crashFolder  = "LENSCOL_TEST_UPLOAD_FOLDER"
	crashDelete  = "LENSCOL_TEST_UPLOAD_DELETE"
)

var crashFiles = []string{"run/a", "run/b", "run/c"}

// crashChild is what the test binary does when it is to be killed on its second file.
func crashChild() bool {
	at := os.Getenv(crashAt)
	if at == "" {
		return false
	}
	seen := 0
	die := func(point string) {
		if point != at {
			return
		}
		if seen++; seen == 2 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	cfg := one()
	cfg.DeleteAfter = os.Getenv(crashDelete) != ""
	cfg.URL = URL("file://" + os.Getenv(crashFolder))
	set := (&counts{}).settings(os.Getenv(crashArchive), zap.NewNop())
	set.Uploaded = func(int64) { die("after the marker") }
	set.Deleted = func(string, int64) { die("after the deletion") }
	u, err := New(cfg, set)
	if err != nil {
		panic(err)
	}
	u.bucket = (&hooked{
		inner: u.bucket,
		write: func(string) error { die("before the upload"); return nil },
		chunk: func(context.Context, string) error { die("in the upload"); return nil },
		attrs: func(string, *driver.Attributes) { die("before the marker") },
	}).bucket()
	u.Scan(crashFiles)
	if err := u.Start(context.Background()); err != nil {
		panic(err)
	}
	select {}
}

// TestKilledAnywhereNothingIsLost kills the process on its second file, and starts another one.
func TestKilledAnywhereNothingIsLost(t *testing.T) {
	for _, test := range []struct {
		at       string
		delete   string
		repeated int // files that the second run uploads; the third is always one
	}{
		{"before the upload", "", 2},
		{"in the upload", "", 2},
		{"before the marker", "", 2},
		{"after the marker", "", 1},
		{"before the upload", "yes", 2},
		{"before the marker", "yes", 2},
		{"after the marker", "yes", 1},
		{"after the deletion", "yes", 1},
	} {
		t.Run(strings.TrimSpace(test.at+" "+test.delete), func(t *testing.T) {
			archive, folder := t.TempDir(), t.TempDir()
			content := func(name string) string { return strings.Repeat(name, 1000) }
			for _, name := range crashFiles {
				writeFile(t, archive, name, content(name))
			}
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), crashAt+"="+test.at, crashDelete+"="+test.delete, crashArchive+"="+archive, crashFolder+"="+folder)
			child.Stderr = os.Stderr
			var exit *exec.ExitError
			require.ErrorAs(t, child.Run(), &exit)
			require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())

			for _, name := range crashFiles { // At every moment a file is whole on at least one side.
				source, sourceErr := os.ReadFile(filepath.Join(archive, name))
				if sourceErr != nil {
					source, sourceErr = os.ReadFile(filepath.Join(folder, name))
				}
				require.NoError(t, sourceErr)
				require.Equal(t, content(name), string(source))
			}

			var left []string
			for _, name := range names(t, filepath.Join(archive, "run")) {
				left = append(left, "run/"+name)
			}
			c := runToFolder(t, archive, folder, test.delete != "", left...)
			require.Equal(t, test.repeated, c.uploaded)
			for _, name := range crashFiles {
				stored, err := os.ReadFile(filepath.Join(folder, name))
				require.NoError(t, err)
				require.Equal(t, content(name), string(stored))
			}
			if test.delete != "" {
				require.Empty(t, names(t, filepath.Join(archive, "run")))
			}
		})
	}
}
