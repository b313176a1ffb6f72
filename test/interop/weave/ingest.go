// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package weave holds what we know of W&B Weave against Weave's own ingest code, which server.py runs.
package weave // import "github.com/lenscol/lenscol/test/interop/weave"

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed server.py
var script string

// Ingest is a process of server.py.
type Ingest struct {
	URL string // without a slash at its end

	tb testing.TB
}

// StartIngest starts server.py with LENSCOL_WEAVE_PYTHON, a Python that has Weave's trace server; it ends with the test.
func StartIngest(tb testing.TB) *Ingest {
	tb.Helper()
	python := os.Getenv("LENSCOL_WEAVE_PYTHON")
	if python == "" {
		tb.Skip("LENSCOL_WEAVE_PYTHON is not set to a Python with weave[trace_server]: make test-weave installs it")
	}
	cmd := exec.Command(python, "-c", script)
	stdin, err := cmd.StdinPipe()
	require.NoError(tb, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	cmd.Stderr = os.Stderr
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = stdin.Close() // It serves until then.
		require.NoError(tb, cmd.Wait())
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(tb, err, "server.py did not start")
	return &Ingest{"http://127.0.0.1:" + strings.TrimSpace(port), tb}
}

// Post sends a request's protobuf body and returns the answer.
func (i *Ingest) Post(path string, body []byte) (status int, answer map[string]any) {
	i.tb.Helper()
	resp, err := http.Post(i.URL+path, "application/x-protobuf", bytes.NewReader(body))
	require.NoError(i.tb, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(i.tb, err)
	require.NoError(i.tb, json.Unmarshal(text, &answer), "%s", text)
	return resp.StatusCode, answer
}

// List decodes what a GET returns. It tells false where Weave cannot write the list.
func (i *Ingest) List(path, project string) (rows []Row, ok bool) {
	i.tb.Helper()
	resp, err := http.Get(i.URL + path + "?project=" + url.QueryEscape(project))
	require.NoError(i.tb, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(i.tb, err)
	if resp.StatusCode == http.StatusInternalServerError {
		return nil, false
	}
	require.Equal(i.tb, http.StatusOK, resp.StatusCode, "%s", text)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	require.NoError(i.tb, decoder.Decode(&rows), "%.2000s", text)
	return rows, true
}

// Row is a call, or a row of the Agents view.
type Row map[string]any

// Shown is what a user sees of a call, by the keys of [weavetest.Shown].
func (r Row) Shown(key string) any {
	switch key {
	case "op_name": // .../op/NAME:DIGEST
		_, name, _ := strings.Cut(r["op_name"].(string), "/op/")
		name, err := url.PathUnescape(name[:strings.LastIndexByte(name, ':')])
		if err != nil {
			return err
		}
		return name
	case "run": // entity/project/RUN
		if run, ok := r["wb_run_id"].(string); ok {
			return run[strings.LastIndexByte(run, '/')+1:]
		}
		return nil
	case "step", "step_end":
		return r["wb_run_"+key]
	case "thread", "turn":
		return r[key+"_id"]
	case "parent":
		return r["parent_id"]
	case "input":
		return r["inputs"]
	case "status":
		return r["summary"].(map[string]any)["weave"].(map[string]any)["status"]
	case "exception":
		if r[key] == "" {
			return nil
		}
		return r[key]
	case "display_name", "output":
		return r[key]
	}
	var at any = r["attributes"]
	for part := range strings.SplitSeq(strings.TrimPrefix(key, "attributes."), ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}
