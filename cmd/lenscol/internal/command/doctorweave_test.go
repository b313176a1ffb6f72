// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/weaveexporter"
	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

// TestDoctorWeaveGolden has the doctor look at one environment after the other; the golden file is what it prints.
func TestDoctorWeaveGolden(t *testing.T) {
	fake := weavetest.New(t, weavetest.Options{})
	untrusted := httptest.NewUnstartedServer(fake.Handler)
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	closed := httptest.NewServer(fake.Handler)
	closed.Close()

	var printed strings.Builder
	for _, tt := range []struct {
		name  string
		env   map[string]string // beside key, entity and project
		say   weavetest.Answer
		whole bool
	}{
		{name: "all is well", whole: true},
		{name: "no variable is set", env: map[string]string{"WANDB_API_KEY": "", "WANDB_ENTITY": "", "WANDB_PROJECT": ""}},
		{name: "a key that is none, and a project with its entity", env: map[string]string{"WANDB_API_KEY": "s3cr3t-s3cr3t", "WANDB_PROJECT": "acme/llm"}},
		{name: "a key of somebody else", env: map[string]string{"WANDB_API_KEY": strings.Repeat("ab", 20)}},
		{name: "a project of somebody else", say: weavetest.Answer{Status: 403, Body: `{"reason":"Forbidden"}`}},
		{name: "no Weave", say: weavetest.Answer{Status: 404, Body: "404 page not found"}},
		{name: "a Weave that is down", say: weavetest.Answer{Status: 503, Body: "upstream"}},
		{name: "an export without spans is refused", say: weavetest.Answer{Status: 400, Body: `{"reason":"no spans"}`}, whole: true},
		{name: "an obsolete host", env: map[string]string{"WF_TRACE_SERVER_URL": "https://api.wandb.ai"}},
		{name: "a host that is not there", env: map[string]string{"WF_TRACE_SERVER_URL": "https://weave.invalid"}},
		{name: "a certificate that nobody knows", env: map[string]string{"WF_TRACE_SERVER_URL": untrusted.URL}},
		{name: "a closed port, TLS", env: map[string]string{"WF_TRACE_SERVER_URL": strings.Replace(closed.URL, "http:", "https:", 1)}},
		{name: "a closed port", env: map[string]string{"WF_TRACE_SERVER_URL": closed.URL}},
	} {
		env := map[string]string{"WANDB_API_KEY": weavetest.Key, "WANDB_ENTITY": "acme", "WANDB_PROJECT": "llm", "WF_TRACE_SERVER_URL": fake.URL}
		maps.Copy(env, tt.env)
		if tt.say.Status != 0 {
			tt.say.Times = 2
			fake.Script(tt.say)
		}
		out, err := runDoctor(t, env, "--weave")
		asJSON, _ := runDoctor(t, env, "--weave", "--json")
		if tt.whole {
			require.NoError(t, err, tt.name)
		} else {
			require.ErrorIs(t, err, errWeave, tt.name)
		}
		for _, text := range []string{out, asJSON} {
			require.NotContains(t, text, weavetest.Key, tt.name)
			require.NotContains(t, text, "s3cr3t", tt.name)
		}
		requireSameChecks(t, out, asJSON)
		fmt.Fprintf(&printed, "# %s\n%s\n", tt.name, out)
	}
	got := regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(printed.String(), "127.0.0.1:PORT")
	got = regexp.MustCompile(`(lookup weave\.invalid).*`).ReplaceAllString(got, "$1 …")
	path := filepath.Join("testdata", "doctorweave.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
	require.Empty(t, fake.Calls("acme/llm"), "the doctor leaves nothing behind")
}

// requireSameChecks holds the JSON to the lines.
func requireSameChecks(t *testing.T, lines, asJSON string) {
	var got struct{ Weave []weaveexporter.Check }
	require.NoError(t, json.Unmarshal([]byte(asJSON), &got))
	require.Equal(t, strings.Count(lines, "\n"), len(got.Weave))
	for _, c := range got.Weave {
		require.Regexp(t, fmt.Sprintf(`(?m)^%s +%s +%s$`, c.Name, c.Status, regexp.QuoteMeta(c.Detail)), lines)
	}
}
