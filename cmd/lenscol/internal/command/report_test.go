// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/report"
	"github.com/lenscol/lenscol/internal/simrun"
)

// simulatedArchive is a folder with the default simulated run.
func simulatedArchive(t *testing.T) string {
	run, err := simrun.New(simrun.Default())
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, run.Write(&file, jsonlexporter.LayoutCompact))
	return archiveFolder(t, map[string]string{"traces.jsonl": file.String()})
}

// The page shows what the command prints.
func TestReportPrintsWhatThePageShows(t *testing.T) {
	folder := simulatedArchive(t)
	stdout, err := execute(t, "report", folder)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "report.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "$ lenscol report lens-data\n"+stdout+"```\n")
	require.Contains(t, string(page), report.Formula)

	stdout, err = execute(t, "report", folder, "--json")
	require.NoError(t, err)
	var got report.Summary
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, 1, got.Version)
	require.Equal(t, 5, got.Runs[0].Slowest[0].Rank)
	for _, line := range strings.Split(stdout, `"`) { // Keys, and what is not one does not matter.
		if strings.HasSuffix(line, "_ns") {
			require.Contains(t, string(page), "`"+line+"`")
		}
	}
}

func TestReportWritesAPage(t *testing.T) {
	folder := simulatedArchive(t)
	path := filepath.Join(t.TempDir(), "report.html")
	_, stderr, err := executeApart(t, "report", folder, "--html", path)
	require.NoError(t, err)
	require.Equal(t, "written to "+path+"\n", stderr)
	html, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(html), "<title>Run sim")

	_, err = execute(t, "report", folder, "--html", path)
	require.ErrorContains(t, err, "--force")
	_, _, err = executeApart(t, "report", folder, "--html", path, "--force")
	require.NoError(t, err)
}

func TestReportSaysWhatIsNotThere(t *testing.T) {
	folder := simulatedArchive(t)
	_, err := execute(t, "report", folder, "--run", "other")
	require.ErrorContains(t, err, "--run other: there are no spans of such a run")
	_, err = execute(t, "report", folder, "--run", "s*", "--since", "2026-11-29T12:02:00Z", "--until", "2026-11-29T12:02:30Z")
	require.NoError(t, err)
	_, err = execute(t, "report", folder, "--since", "2026-11-29T13:00:00Z")
	require.ErrorContains(t, err, "no spans to report on")
	_, err = execute(t, "report", archiveFolder(t, map[string]string{"x.jsonl": "\n"}))
	require.ErrorContains(t, err, "no spans to report on")
	broken := archiveFolder(t, map[string]string{"x.jsonl": archiveLine("megatron.train", 1e18, 0) + "\x00\x00\n"})
	stdout, _, err := executeApart(t, "report", broken)
	require.ErrorContains(t, err, "1 damaged place", "what could be read was")
	require.Regexp(t, `run +r1\n`, stdout)
}

// executeApart runs a command that says something on stderr too.
func executeApart(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := New(testSettings(), "abc")
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}
