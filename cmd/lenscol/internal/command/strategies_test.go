// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func runStrategies(args ...string) (string, error) {
	cmd := newStrategiesCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestStrategies(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no flags", nil, "all_ranks\nfirst_rank_per_node\nper_group\nranks\nsampled\nsingle_rank\n"},
		{"sampled", []string{"--strategy", "sampled", "--rate", "0.1", "--world-size", "64"}, "3,5-6,31,55\n5 of 64 ranks\n"},
		{"json", []string{"--strategy", "sampled", "--rate", "0.1", "--world-size", "64", "--json"}, `{"world_size":64,"count":5,"ranks":[3,5,6,31,55]}` + "\n"},
		{"none", []string{"--strategy", "sampled", "--rate", "0.25", "--world-size", "3"}, "none\n0 of 3 ranks\n"},
		{"none as json", []string{"--strategy", "sampled", "--rate", "0.25", "--world-size", "3", "--json"}, `{"world_size":3,"count":0,"ranks":[]}` + "\n"},
		{"at least one", []string{"--strategy", "sampled", "--rate", "0.25", "--at-least-one", "--world-size", "3"}, "0\n1 of 3 ranks\n"},
		{"the default is the last rank", []string{"--world-size", "8"}, "7\n1 of 8 ranks\n"},
		{"all", []string{"--strategy", "all_ranks", "--world-size", "8"}, "0-7\n8 of 8 ranks\n"},
		{"ranks", []string{"--strategy", "ranks", "--ranks", "0,8-15,-1", "--world-size", "32"}, "0,8-15,31\n10 of 32 ranks\n"},
		{"groups", []string{"--strategy", "per_group", "--per", "pp", "--sizes", "tp=8,pp=4", "--world-size", "256"}, "0,64,128,192\n4 of 256 ranks\n"},
		{"nodes", []string{"--strategy", "first_rank_per_node", "--ranks-per-node", "8", "--world-size", "16"}, "0,8\n2 of 16 ranks\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := runStrategies(tt.args...)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestStrategiesRefused(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--strategy", "sampled"}, "--world-size is missing"},
		{[]string{"--world-size", "0"}, "world-size: 0 must be 1 to"},
		{[]string{"--world-size", "2000000000"}, "world-size: 2000000000 must be 1 to"},
		{[]string{"--world-size", "8", "--strategy", "odd"}, "must be one of all_ranks"},
		{[]string{"--world-size", "8", "--strategy", "sampled", "--rate", "1.5"}, "rate: 1.5 is outside [0, 1]"},
		{[]string{"--world-size", "8", "--export-rank", "8"}, "export_rank: 8 is not below the world size 8"},
		{[]string{"--world-size", "8", "--strategy", "ranks", "--ranks", "7-3"}, `ranks: "7-3"`},
		{[]string{"--world-size", "8", "--strategy", "first_rank_per_node"}, "ranks-per-node: is missing"},
		{[]string{"--world-size", "8", "--ranks-per-node", "-1"}, "ranks-per-node: -1"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			_, err := runStrategies(tt.args...)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
