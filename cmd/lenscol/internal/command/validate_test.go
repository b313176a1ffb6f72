// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A variable that is not set is said whether the config is valid without it or not; one with a default is not.
func TestValidateNamesUnsetVariables(t *testing.T) {
	t.Setenv("TEST_EMPTY", "")
	t.Setenv("TEST_SET", "1s")
	config := filepath.Join(t.TempDir(), "config.yaml")
	for _, tt := range []struct {
		name, interval string
		err            string
		warnings       string
	}{
		{"set", "${env:TEST_SET}", "", ""},
		{"a default", "${env:TEST_UNSET:-1s}", "", ""},
		{"not set", "${env:TEST_UNSET}", "check_interval", warningOf("TEST_UNSET")},
		{"empty", "1s # ${env:TEST_SET}\n    min_gc_interval_when_hard_limited: ${env:TEST_EMPTY}", "", warningOf("TEST_EMPTY")},
		{"without env:", "${TEST_UNSET}", "check_interval", warningOf("TEST_UNSET")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(config, []byte("processors:\n  memory_limiter:\n    check_interval: "+tt.interval+"\n"), 0o600))
			_, stderr, err := executeApart(t, "validate", "--config", "lenscol:archive", "--config", config)
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.err)
			}
			require.Equal(t, tt.warnings, stderr)
		})
	}
}

func warningOf(variable string) string {
	return "lenscol: warning: ${env:" + variable + "}: the variable is not set, and the config has no default for it: there is nothing in its place\n"
}

// Of several files the one that is no config is named.
func TestWhichFileIsNoConfig(t *testing.T) {
	folder := t.TempDir()
	bad, list := filepath.Join(folder, "bad.yaml"), filepath.Join(folder, "list.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("receivers:\n\totlp:\n"), 0o600))
	require.NoError(t, os.WriteFile(list, []byte("- receivers\n"), 0o600))
	for _, tt := range []struct{ file, uri, want string }{
		{bad, bad, "yaml: line 2: found character that cannot start any token"},
		{list, "file:" + list, "cannot be used as a Conf"},
	} {
		for _, command := range [][]string{{"validate"}, nil} {
			_, err := execute(t, append(command, "--config", "lenscol:archive", "--config", tt.uri)...)
			require.ErrorContains(t, err, tt.uri+": ")
			require.ErrorContains(t, err, tt.want)
		}
	}
}
