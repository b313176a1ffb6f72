// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

// topServer answers as lens_health does while an exporter's target is down. Without runs no run has come.
func topServer(t *testing.T, runs bool) string {
	t.Helper()
	mux := http.NewServeMux()
	serve := func(path, name string, code int) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			data, err := os.ReadFile(filepath.Join("testdata", "top", name))
			if err == nil && name == "runs.json" && !runs {
				data = []byte(`{"schema":1,"time":"2026-08-22T10:00:00Z","runs":[]}`)
			}
			w.WriteHeader(code)
			_, _ = w.Write(data)
		})
	}
	serve("/api/runs", "runs.json", http.StatusOK)
	serve("/api/pipelines", "pipelines.json", http.StatusOK)
	serve("/health", "health.json", http.StatusServiceUnavailable)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func top(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	cmd := newTopCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.Execute()
	return out.String(), err
}

func TestTopOnce(t *testing.T) {
	for golden, args := range map[string][]string{
		"once.txt":  nil,
		"other.txt": {"--run", "evil\x1b[2J\nrun"},
	} {
		out, err := top(t, append(args, "--once", "--endpoint", topServer(t, true))...)
		require.NoError(t, err)
		path := filepath.Join("testdata", "top", golden)
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(out), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), out)
		require.NotContains(t, out, "\x1b", "a name must not move the cursor")
	}
}

func TestTopIsAsTheDocsShow(t *testing.T) {
	docs, err := os.ReadFile("../../../../docs/cli.md")
	require.NoError(t, err)
	out, err := top(t, "--once", "--endpoint", topServer(t, true))
	require.NoError(t, err)
	require.Contains(t, string(docs), "$ lenscol top --once\n"+out)
}

func TestTopWithoutRuns(t *testing.T) {
	out, err := top(t, "--once", "--endpoint", topServer(t, false))
	require.NoError(t, err)
	require.Contains(t, out, "Telemetry comes, and no run is seen in it: run_id_enricher and rank_gate see runs.")
	require.Contains(t, out, "otlp_http/far")

	t.Setenv("LENSCOL_HTTP_PORT", "24318")
	require.Contains(t, (&picture{}).text(-1, mostWorst), "No run has sent anything yet. Point a job at this collector:\n  export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:24318 ")
}

func TestTopJSON(t *testing.T) {
	out, err := top(t, "--json", "--run", "48213", "--endpoint", topServer(t, true))
	require.NoError(t, err)
	var got struct {
		Runs []struct {
			ID          string
			SilentRanks []struct{ Rank int } `json:"silent_ranks"`
		}
		Pipelines struct {
			Pipelines []struct{ Exporters []struct{ Sent int } }
		}
		Health struct{ Status string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got.Runs, 1)
	require.Equal(t, "48213", got.Runs[0].ID)
	require.Equal(t, 41, got.Runs[0].SilentRanks[0].Rank)
	require.Equal(t, 500, got.Pipelines.Pipelines[0].Exporters[1].Sent)
	require.Equal(t, "unhealthy", got.Health.Status)
}

func TestTopErrors(t *testing.T) {
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer locked.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"schema":7}`) }))
	defer other.Close()
	for name, test := range map[string]struct {
		args []string
		want string
		code int
	}{
		"no such run":    {[]string{"--once", "--run", "12", "--endpoint", topServer(t, true)}, `there is no run "12", only ["48213"`, exitNo},
		"no token":       {[]string{"--once", "--endpoint", locked.URL}, "LENSCOL_HEALTH_TOKEN", exitUsage},
		"another schema": {[]string{"--once", "--endpoint", other.URL}, "answers with the schemas 7, 7 and 7", exitUsage},
		"nobody listens": {[]string{"--json", "--endpoint", "unix:" + filepath.Join(t.TempDir(), "none")}, "no such file", exitUsage},
		"interval":       {[]string{"--interval", "1ms"}, "--interval 1ms must be 500ms or more", exitUsage},
		"no terminal":    {[]string{"--endpoint", locked.URL}, "with --once it prints a text", exitUsage},
		"no address":     {[]string{"--endpoint", "a b"}, "is not where lens_health can be reached", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := top(t, test.args...)
			require.ErrorContains(t, err, test.want)
			code, _ := exitCodeOf(err)
			require.Equal(t, test.code, code)
		})
	}
}

// newScreen is a screen that has asked once, 100 columns wide.
func newScreen(t *testing.T, height int) *topScreen {
	t.Helper()
	client, err := newHealthClient(topServer(t, true), "")
	require.NoError(t, err)
	screen := &topScreen{every: time.Hour, take: func() (*picture, error) { return takePicture(t.Context(), client) }, width: 100, height: height}
	screen.Update(screen.Init()())
	require.NoError(t, screen.err)
	return screen
}

func shown(s *topScreen) string { return ansi.Strip(s.View().Content) }

func press(s *topScreen, key rune) tea.Cmd {
	_, cmd := s.Update(tea.KeyPressMsg{Code: key, Text: string(key)})
	return cmd
}

func TestTopScreenTurnsToOtherRuns(t *testing.T) {
	screen := newScreen(t, 40)
	require.Contains(t, shown(screen), "run 48213 (1 of 2)")
	press(screen, 'k')
	require.Contains(t, shown(screen), "run 48213 (1 of 2)")
	press(screen, 'j')
	require.Contains(t, shown(screen), "(2 of 2)")
	press(screen, 'j')
	require.Contains(t, shown(screen), "(2 of 2)")
	press(screen, 'k')
	require.Contains(t, shown(screen), "run 48213 (1 of 2)")
	screen.run = "gone"
	require.Contains(t, shown(screen), `There is no run "gone".`)
}

func TestTopScreenFits(t *testing.T) {
	for _, height := range []int{2, 5, 12, 40} {
		screen := newScreen(t, height)
		lines := strings.Split(screen.View().Content, "\n")
		require.LessOrEqual(t, len(lines), height)
		require.Contains(t, lines[len(lines)-1], "q: quit")
		for _, line := range lines {
			require.LessOrEqual(t, ansi.StringWidth(line), 100)
		}
	}
}

func TestTopScreenShowsFewerRanksRatherThanNoExporters(t *testing.T) {
	screen := newScreen(t, 40)
	run := &screen.last.Runs.Runs[0]
	for len(run.Slowest) < mostWorst {
		run.Slowest = append(run.Slowest, run.Slowest[0])
	}
	require.Equal(t, mostWorst+2, strings.Count(shown(screen), "\nrank "))
	screen.height = 22
	require.Equal(t, 6, strings.Count(shown(screen), "\nrank "))
	require.Contains(t, shown(screen), "otlp_http/far")
}

func TestTopScreenKeepsThePictureWhenNobodyAnswers(t *testing.T) {
	screen := newScreen(t, 40)
	_, cmd := screen.Update(pictureTaken{err: errors.New("connection refused")})
	require.NotNil(t, cmd, "it asks again")
	require.Contains(t, shown(screen), "No answer, trying on: connection refused")
	require.Contains(t, shown(screen), "run 48213")
	screen.Update(pictureTaken{picture: screen.last})
	require.NotContains(t, shown(screen), "No answer")
}

func TestTopScreenEnds(t *testing.T) {
	for name, end := range map[string]func(*tea.Program, io.Writer){
		"q":             func(_ *tea.Program, keys io.Writer) { _, _ = io.WriteString(keys, "q") },
		"token refused": func(p *tea.Program, _ io.Writer) { p.Send(pictureTaken{err: errRefused}) },
	} {
		t.Run(name, func(t *testing.T) {
			screen := newScreen(t, 40)
			screen.every = time.Millisecond // The program does not wait for what it has asked for, but goleak does.
			input, keys := io.Pipe()
			defer keys.Close()
			program := tea.NewProgram(screen, tea.WithInput(input), tea.WithOutput(io.Discard), tea.WithWindowSize(100, 40), tea.WithoutSignals())
			go end(program, keys)
			_, err := program.Run()
			require.NoError(t, err)
			require.Equal(t, name != "q", screen.fatal != nil)
		})
	}
}
