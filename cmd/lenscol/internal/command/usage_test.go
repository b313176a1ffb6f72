// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/configs"
)

// What cannot be meant so exits with 2, what the data or the world says no to with 1 (docs/cli.md).
func TestExitCodes(t *testing.T) {
	for line, want := range map[string]int{
		"jsonl stat":                                       2,
		"jsonl stat --gap 0s nothing-there":                2,
		"jsonl stat --gap x nothing-there":                 2,
		"jsonl stat --rank zz nothing-there":               2,
		"jsonl stat nothing-there":                         1,
		"jsonl cat --to xml nothing-there":                 2,
		"jsonl cat --since never nothing-there":            2,
		"jsonl cat --sort-memory x nothing-there":          2,
		"jsonl convert nothing-there":                      2,
		"jsonl convert -o x --to xml nothing-there":        2,
		"jsonl convert -o x nothing-there":                 1,
		"jsonl replay nothing-there":                       2,
		"jsonl replay --endpoint :: nothing-there":         2,
		"jsonl replay --endpoint http://[::1]:1 --speed 0": 2,
		"jsonl verify":                                     2,
		"jsonl nope":                                       2,
		"configs show":                                     2,
		"configs show nope":                                2,
		"demo --ranks 0":                                   2,
		"strategies --rate 2":                              2,
		"strategies --world-size 0":                        2,
		"report":                                           2,
		"report --gap -1s nothing-there":                   2,
		"report --slowest -1 nothing-there":                2,
		"report --since never nothing-there":               2,
		"report nothing-there":                             1,
		"reckon --from nothing-there":                      1,
		"reckon --from x --endpoint http://h:1 -o y":       2,
		"version extra":                                    2,
		"help nope":                                        2,
		"help jsonl nope":                                  2,
		"help jsonl cat":                                   0,
		"demo --endpoint nowhere":                          2,
		"validate --config=":                               2,
		"--config=":                                        2,
		"nope":                                             2,
		"--nope":                                           2,
		"version":                                          0,
	} {
		_, err := execute(t, strings.Fields(line)...)
		code, _ := exitCodeOf(err)
		require.Equal(t, want, code, "%s: %v", line, err)
	}
}

// Whoever prints a table prints JSON too.
func TestTablesHaveJSON(t *testing.T) {
	stdout, err := execute(t, "configs", "--json")
	require.NoError(t, err)
	var list struct{ Configs []embedded }
	require.NoError(t, json.Unmarshal([]byte(stdout), &list))
	var names []string
	for _, c := range list.Configs {
		require.NotEmpty(t, c.Summary, c.Name)
		names = append(names, c.Name)
	}
	require.Equal(t, configs.Names(), names)

	root := New(testSettings(), "")
	for _, path := range []string{"version", "strategies", "configs", "doctor", "reckon", "report", "status", "top", "jsonl stat"} {
		cmd, _, err := root.Find(strings.Fields(path))
		require.NoError(t, err)
		require.NotNil(t, cmd.Flags().Lookup("json"), path)
	}
}

func TestCompletionOfCommandsAndFlags(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script, err := execute(t, "completion", shell)
		require.NoError(t, err)
		require.Contains(t, script, "lenscol")
	}
	for line, want := range map[string]string{
		"rep":                      "report",
		"report --ht":              "--html",
		"man jso":                  "jsonl",
		"man jsonl ":               "replay",
		"configs show arch":        "archive",
		"jsonl cat --to ":          "console",
		"--config ":                "lenscol:archive",
		"jsonl replay --protocol ": "grpc",
	} {
		args := strings.Split(line, " ")
		stdout, _, err := executeApart(t, append([]string{cobra.ShellCompRequestCmd}, args...)...) // It explains itself on stderr.
		require.NoError(t, err)
		require.Contains(t, stdout, want, line)
	}
}
