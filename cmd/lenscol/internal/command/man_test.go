// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestManPrintsThePageOfACommand(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795957000")
	page, err := execute(t, "man", "jsonl", "stat")
	require.NoError(t, err)
	require.Contains(t, page, `.TH "LENSCOL-JSONL-STAT" "1" "Nov 2026" "lenscol 0.0.1" "lenscol"`)
	for _, part := range []string{"lenscol-jsonl-stat - Counts what files hold", `\fB--gap\fP=1m0s`, "jsonl stat lens-data --since 1d --gap 10m"} {
		require.Contains(t, page, strings.ReplaceAll(part, "-", `-`))
	}
	require.NotContains(t, page, "Auto generated")

	_, err = execute(t, "man", "jsonl", "no-such")
	require.ErrorContains(t, err, `unknown command "jsonl no-such"`)
	code, _ := exitCodeOf(err)
	require.Equal(t, exitUsage, code)
}

// A page for every command that --help lists, whole, readable by all, and none is replaced unasked.
func TestManWritesThePagesOfAllCommands(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man1")
	_, err := execute(t, "man", "--folder", folder)
	require.NoError(t, err)
	root := New(testSettings(), "abc")
	root.InitDefaultCompletionCmd() // Execute adds both.
	root.InitDefaultHelpCmd()
	want := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		want++
		path := filepath.Join(folder, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), ".SH SYNOPSIS")
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o644), info.Mode().Perm())
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(root)
	require.Greater(t, want, 20)
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, want)

	_, err = execute(t, "man", "--folder", folder)
	require.ErrorContains(t, err, "--force")
	_, err = execute(t, "man", "--folder", folder, "--force")
	require.NoError(t, err)
	_, err = execute(t, "man", "--folder", folder, "jsonl")
	require.ErrorContains(t, err, "takes no COMMAND")
}

// A roff formatter reads every page without a word.
func TestManPagesAreRoff(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	groff := err != nil
	if groff {
		if mandoc, err = exec.LookPath("groff"); err != nil {
			t.Skip("neither mandoc nor groff is there")
		}
	}
	folder := t.TempDir()
	_, err = execute(t, "man", "--folder", folder)
	require.NoError(t, err)
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	require.NoError(t, err)
	for _, page := range pages {
		args := []string{"-Tlint", "-Werror", page}
		if groff {
			args = []string{"-man", "-Tascii", "-ww", "-z", page}
		}
		out, err := exec.Command(mandoc, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", page, out)
		require.Empty(t, string(out), page)
	}
}
