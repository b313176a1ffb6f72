// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFilterKeeps(t *testing.T) {
	const content = `{"type":"span","name":"megatron.step","start_ns":1000000000,"status":"ERROR","resource":{"attributes":{"nemo.run.id":"r1","nv.dl.rank":0,"nv.dl.world_size":8}}}
{"type":"span","name":"megatron.save","start_ns":2000000000,"status":"OK","resource":{"attributes":{"nemo.run.id":"r1","dl.rank":"7","dl.world_size":8}}}
{"type":"span","name":"gym.verify","start_ns":3000000000,"resource":{"attributes":{"nemo.run.id":"r2"}}}
{"type":"metric","name":"megatron.loss","kind":"gauge","start_ns":0,"time_ns":4000000000,"value":1,"resource":{"attributes":{"slurm.job.id":"12"}}}
{"type":"log","time_ns":0,"observed_ns":5000000000,"body":"hello","event_name":"megatron.event","resource":{"attributes":{"nv.dl.rank":3}}}
`
	all := []string{"megatron.step", "megatron.save", "gym.verify", "megatron.loss", "hello"}
	now := time.Unix(10, 0)
	for _, tt := range []struct {
		name string
		text FilterText
		want []string
	}{
		{"nothing set", FilterText{}, all},
		{"a run", FilterText{Runs: []string{"r1"}}, all[:2]},
		{"runs", FilterText{Runs: []string{"r2", "1*"}}, all[2:4]},
		{"a rank", FilterText{Ranks: "0"}, all[:1]},
		{"ranges of ranks", FilterText{Ranks: "3-7"}, []string{"megatron.save", "hello"}},
		{"ranks from the end", FilterText{Ranks: "-1"}, []string{"megatron.save"}},
		{"a name", FilterText{Names: []string{"megatron.*"}}, []string{"megatron.step", "megatron.save", "megatron.loss", "hello"}},
		{"names", FilterText{Names: []string{"*.save", "gym.*"}}, []string{"megatron.save", "gym.verify"}},
		{"since a time", FilterText{Since: "1970-01-01T00:00:03Z"}, all[2:]},
		{"since a while", FilterText{Since: "7s"}, all[2:]},
		{"until a time", FilterText{Until: "1970-01-01T00:00:03Z"}, all[:2]},
		{"between", FilterText{Since: "8500ms", Until: "6s"}, all[1:3]},
		{"until before 1970", FilterText{Until: "3d"}, nil},
		{"since before 1970", FilterText{Since: "3d"}, all},
		{"until the end of time", FilterText{Until: "9999-12-31T23:59:59Z"}, all},
		{"until beyond 63 bits of nanoseconds", FilterText{Until: "2262-04-12T00:00:00Z"}, all},
		{"since beyond them", FilterText{Since: "2262-04-12T00:00:00Z"}, nil},
		{"a status", FilterText{Statuses: []string{"error"}}, all[:1]},
		{"statuses", FilterText{Statuses: []string{"OK", "unset"}}, all[1:3]},
		{"all of it", FilterText{Runs: []string{"r*"}, Ranks: "0-7", Names: []string{"*s*"}, Since: "9s", Statuses: []string{"ok"}}, all[1:2]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := NewFilter(tt.text, now)
			require.NoError(t, err)
			var kept []Record
			for _, rec := range readBytes(t, "f", []byte(content)).records {
				if f.Keep(rec) {
					kept = append(kept, rec)
				}
			}
			require.Equal(t, tt.want, names(kept))
		})
	}
}

func TestFilterErrorsNameTheFlagAndTheValue(t *testing.T) {
	for _, tt := range []struct {
		name string
		text FilterText
		want string
	}{
		{"rank", FilterText{Ranks: "a"}, `--rank: ranks: "a" of "a" is none of a rank (3), a range (8-15), a range in steps (0-1023/64) and a rank from the end (-1)`},
		{"since", FilterText{Since: "yesterday"}, `--since: "yesterday" is neither a time like 2026-11-29T16:24:28Z nor a duration before now like 90m, 2h or 3d`},
		{"until", FilterText{Until: "-2h"}, `--until: "-2h" is neither a time like 2026-11-29T16:24:28Z nor a duration before now like 90m, 2h or 3d`},
		{"status", FilterText{Statuses: []string{"fine"}}, `--status: "fine" is not one of ok, error, unset`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewFilter(tt.text, time.Now())
			require.EqualError(t, err, tt.want)
		})
	}
}
