// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/perfetto"
)

// of is a line with members and the attributes of its resource.
func of(members, resource string) string {
	return fmt.Sprintf(`{%s,"resource":{"attributes":{%s}}}`+"\n", members, resource)
}

const rank3 = `"service.name":"megatron","nv.dl.rank":3,"host.name":"n1"`

func TestMetricsAreCounters(t *testing.T) {
	histogram := func(start, at, count int, sum float64) string {
		return of(fmt.Sprintf(`"type":"metric","name":"step","kind":"histogram","unit":"ms","temporality":"cumulative","start_ns":%d,"time_ns":%d,"count":%d,"sum":%g`, start, at, count, sum), rank3)
	}
	lines := []string{
		of(`"type":"metric","name":"loss","kind":"gauge","time_ns":10,"value":2.5`, rank3),
		of(`"type":"metric","name":"loss","kind":"gauge","time_ns":20,"value":{"@double":"NaN"}`, rank3),
		of(`"type":"metric","name":"loss","kind":"gauge","time_ns":30,"value":2.25`, rank3),
		of(`"type":"metric","name":"tokens","kind":"sum","unit":"{token}","temporality":"cumulative","monotonic":true,"start_ns":1,"time_ns":10,"value":9007199254740993`, rank3),
		of(`"type":"metric","name":"memory","kind":"gauge","unit":"By","time_ns":10,"value":4,"attributes":{"gpu":0,"kind":"hbm"}`, rank3),
		of(`"type":"metric","name":"memory","kind":"gauge","unit":"By","time_ns":10,"value":5,"attributes":{"gpu":1,"kind":"hbm"}`, rank3),
		histogram(1, 10, 4, 10), histogram(1, 20, 6, 20), histogram(1, 30, 6, 20), histogram(35, 40, 1, 7), // a mean since the point before; a new start begins anew
		of(`"type":"metric","name":"delta","kind":"exponential_histogram","unit":"ns","temporality":"delta","start_ns":1,"time_ns":10,"count":2,"sum":5`, rank3),
		of(`"type":"metric","name":"sum","kind":"summary","unit":"s","start_ns":1,"time_ns":10,"count":2,"sum":3`, rank3),
		of(`"type":"metric","name":"sumless","kind":"histogram","temporality":"delta","start_ns":1,"time_ns":10,"count":2`, rank3),
		of(`"type":"metric","name":"none","kind":"gauge","time_ns":10,"value":null`, rank3),
		of(`"type":"metric","name":"timeless","kind":"gauge","time_ns":0,"value":1`, rank3),
	}
	out, summary := draw(t, []byte(strings.Join(lines, "")), perfetto.Options{})
	j := mustJudge(t, out)
	const process = "rank 0003 | n1 | megatron/"
	require.Equal(t, map[string][]float64{
		process + "loss []":                                    {2.5, 2.25},
		process + "tokens [token]":                             {9007199254740992},
		process + "memory {gpu=0, kind=hbm} [UNIT_SIZE_BYTES]": {4},
		process + "memory {gpu=1, kind=hbm} [UNIT_SIZE_BYTES]": {5},
		process + "step (mean) [ms]":                           {2.5, 5, 7},
		process + "delta (mean) [UNIT_TIME_NS]":                {2.5},
		process + "sum (mean) [s]":                             {1.5},
	}, j.counters)
	require.Equal(t, []int64{3, 1}, []int64{summary.Unnumbered, summary.Timeless})
	chromeJudge(t, []byte(strings.Join(lines, "")), j)
}

func TestLogRecordsAreInstants(t *testing.T) {
	lines := of(`"type":"log","time_ns":10,"severity_number":17,"severity_text":"ERROR","body":"loss is NaN\nat step 7","attributes":{"step":7},"span_id":"00000000000000aa"`, rank3) +
		of(`"type":"log","time_ns":20,"observed_ns":30,"severity_number":9,"event_name":"device.app.lifecycle","body":{"a":[1]}`, rank3) +
		of(`"type":"log","time_ns":0,"observed_ns":40`, rank3) +
		of(`"type":"log","time_ns":50,"body":"`+strings.Repeat("é", 500)+`"`, rank3) +
		of(`"type":"log","time_ns":0`, rank3)
	out, summary := draw(t, []byte(lines), perfetto.Options{})
	j := mustJudge(t, out)
	require.EqualValues(t, 4, summary.Logs)
	require.EqualValues(t, 1, summary.Timeless)
	var got []string
	for _, s := range j.instants {
		if s.lane == "logs" {
			got = append(got, fmt.Sprint(s.at, " ", s.name, " ", s.categories, " ", s.args["body"]))
		}
	}
	require.Equal(t, []string{
		"10 loss is NaN [log error] loss is NaN\nat step 7",
		"20 device.app.lifecycle [log info] map[a:[1]]",
		"40 log [log] ",
		"50 " + strings.Repeat("é", 120) + "… [log] " + strings.Repeat("é", 500),
	}, got)
	chromeJudge(t, []byte(lines), j)
}

// TestEveryLinkIsAFlowOfItsOwn: two links to one span are two arrows, and not one that goes on.
func TestEveryLinkIsAFlowOfItsOwn(t *testing.T) {
	linkTo := func(id string) string {
		return fmt.Sprintf(`,"links":[{"trace_id":"%032d","span_id":"%016s"}]`, 1, id)
	}
	lines := line("a", "1", "", 10, 5, "") + line("b", "2", "", 20, 5, linkTo("1")) + line("c", "3", "", 30, 5, linkTo("1")) +
		line("before", "4", "", 5, 1, linkTo("1")) + line("dangling", "5", "", 40, 5, linkTo("9")) + line("a", "1", "", 60, 5, "")
	out, summary := draw(t, []byte(lines), perfetto.Options{})
	j := mustJudge(t, out)
	require.EqualValues(t, 3, summary.Flows)
	arrows := map[string]int{}
	for _, ends := range j.flows {
		names := ""
		for _, s := range ends {
			names += s.name + " "
		}
		arrows[names]++
	}
	require.Equal(t, map[string]int{"a b ": 1, "a c ": 1, "before a ": 1, "dangling ": 1}, arrows)
	chromeJudge(t, []byte(lines), j)
}

func TestProcesses(t *testing.T) {
	at := 0
	span := func(resource string) string {
		at += 100
		return of(fmt.Sprintf(`"type":"span","name":"s","start_ns":%d,"duration_ns":10`, at), resource)
	}
	lines := span(`"service.name":"megatron","nemo.run.id":"r1","dl.rank":2,"host.name":"n1","process.pid":1`) +
		span(`"service.name":"megatron","nemo.run.id":"r1","dl.rank":2,"host.name":"n2","process.pid":2`) + // started again elsewhere
		span(`"service.name":"megatron","nemo.run.id":"r1","nv.dl.rank":2,"nv.dl.role":"ckpt_worker","host.name":"n1"`) +
		span(`"service.name":"megatron","nemo.run.id":"r1","dl.rank":"12345","host.name":"n1"`) +
		span(`"service.name":"megatron","nemo.run.id":"r2","dl.rank":2,"k8s.node.name":"k1"`) +
		span(`"service.name":"vllm","nemo.run.id":"r1","host.name":"n1"`) +
		span(`"service.name":"vllm","nemo.run.id":"r1","host.name":"n2","service.instance.id":"x"`) +
		span(`"nemo.run.id":"r1","dl.rank":3,"host.name":"n1"`) + span(`"nemo.run.id":"r1","dl.rank":3,"host.name":"n2"`) + span(`"nemo.run.id":"r1","dl.rank":3,"host.name":"n3"`) +
		span(``)
	out, summary := draw(t, []byte(lines), perfetto.Options{})
	j := mustJudge(t, out)
	var names []string
	for pid := range int64(len(j.processes)) {
		names = append(names, j.processes[pid+1].name)
	}
	require.Equal(t, []string{
		"rank 00002 | n1, n2 | megatron | r1",
		"rank 00002 | n1 | megatron | ckpt_worker | r1",
		"rank 00003 | n1 and 2 more | r1",
		"rank 12345 | n1 | megatron | r1",
		"rank 00002 | k1 | megatron | r2",
		"no service",
		"vllm | n1 | r1",
		"vllm | n2 x | r1",
	}, names)
	require.Equal(t, []int{5, 8}, []int{summary.Ranks, summary.Processes})
	require.Len(t, j.named("s"), 11)
	chromeJudge(t, []byte(lines), j)
}
