// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package questions tests that the queries in docs/jsonl.md answer what they say, on an archive of the demo.
package questions // import "github.com/lenscol/lenscol/test/questions"

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// answers are what must stand in the output of each block, whatever its form: the slowest step of rank 2 with its time, the span
// before the crash with its time, and the last loss.
var answers = []string{`\b4\b.*224\.911486`, `megatron\.train\.iteration\.optimizer.*55[.]?499736`, `3\.49988`}

// TestQueries runs the sh and python blocks of the page. Python is LENSCOL_PYTHON, which must have duckdb and pandas.
func TestQueries(t *testing.T) {
	python := os.Getenv("LENSCOL_PYTHON")
	if python == "" {
		t.Skip("LENSCOL_PYTHON is not set to a Python with duckdb and pandas: make test-archive installs them")
	}
	page, err := os.ReadFile("../../docs/jsonl.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```(sh|python)\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 3)

	collector := testbed.Start(t, testbed.Options{})
	demo := exec.Command(testbed.Binary(t), "demo", "--endpoint", "http://"+collector.HTTP)
	said, err := demo.CombinedOutput()
	require.NoError(t, err, "%s", said)
	collector.Stop()
	for _, b := range blocks {
		command := exec.Command("sh", "-ec", b[2])
		if b[1] == "python" {
			command = exec.Command(python, "-c", b[2])
		}
		command.Dir = collector.Dir
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s\n%s", b[2], said)
		for _, answer := range answers {
			require.Regexp(t, answer, string(said), b[2])
		}
	}
	require.FileExists(t, filepath.Join(collector.Dir, "lens-data", "traces.jsonl"))
}
