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

// line is a span of rank 0 in the compact layout. id and parent are span ids, "" none; more are further members.
func line(name, id, parent string, start, duration int64, more string) string {
	if id != "" {
		more += fmt.Sprintf(`,"trace_id":"%032d","span_id":"%016s"`, 1, id)
	}
	if parent != "" {
		more += fmt.Sprintf(`,"parent_id":"%016s"`, parent)
	}
	return fmt.Sprintf(`{"type":"span","name":%q,"start_ns":%d,"duration_ns":%d%s,"resource":{"attributes":{"nemo.run.id":"r1","nv.dl.rank":0,"host.name":"n1"}}}`+"\n",
		name, start, duration, more)
}

// TestLanes says where spans lie: "lane name begin-end", two spaces for every slice that one lies in.
func TestLanes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []string // as exported: children first
		want  string
	}{
		{"children lie in their parents", []string{line("c", "3", "2", 20, 10, ""), line("b", "2", "1", 20, 30, ""), line("a", "1", "", 10, 90, "")},
			"1 a 10-100\n  1 b 20-50\n    1 c 20-30\n"},
		{"siblings that touch share a lane", []string{line("b", "2", "1", 10, 10, ""), line("c", "3", "1", 20, 10, ""), line("a", "1", "", 10, 90, "")},
			"1 a 10-100\n  1 b 10-20\n  1 c 20-30\n"},
		{"siblings that overlap do not", []string{line("b", "2", "1", 20, 20, ""), line("c", "3", "1", 30, 20, ""), line("d", "4", "1", 45, 10, ""), line("a", "1", "", 10, 90, "")},
			"1 a 10-100\n  1 b 20-40\n2 c 30-50\n  1 d 45-55\n"},
		{"a sibling within another one is not drawn below it", []string{line("c", "3", "1", 25, 5, ""), line("b", "2", "1", 20, 20, ""), line("a", "1", "", 10, 90, "")},
			"1 a 10-100\n  1 b 20-40\n2 c 25-30\n"},
		{"the child of what has a lane of its own lies there", []string{line("b", "2", "1", 20, 20, ""), line("d", "4", "3", 32, 5, ""), line("c", "3", "1", 30, 20, ""), line("a", "1", "", 10, 90, "")},
			"1 a 10-100\n  1 b 20-40\n2 c 30-50\n  2 d 32-37\n"},
		{"what outlives its parent leaves it", []string{line("b", "2", "1", 20, 200, ""), line("a", "1", "", 10, 90, "")},
			"1 a 10-100\n2 b 20-220\n"},
		{"what begins before its parent leaves it", []string{line("b", "2", "1", 5, 20, ""), line("a", "1", "", 10, 90, "")},
			"1 b 5-25\n2 a 10-100\n"},
		{"an orphan lies alone", []string{line("b", "2", "9", 20, 20, ""), line("a", "1", "", 10, 90, "")},
			"1 a 10-100\n2 b 20-40\n"},
		{"what begins and ends together nests by parents", []string{line("c", "3", "2", 10, 10, ""), line("b", "2", "1", 10, 10, ""), line("a", "1", "", 10, 10, "")},
			"1 a 10-20\n  1 b 10-20\n    1 c 10-20\n"},
		{"spans without length", []string{line("b", "2", "1", 10, 0, ""), line("c", "3", "1", 20, 0, ""), line("a", "1", "", 10, 10, "")},
			"1 a 10-20\n  1 b 10-10\n1 c 20-20\n"},
		{"parents in a circle", []string{line("a", "1", "2", 10, 10, ""), line("b", "2", "1", 10, 10, ""), line("c", "3", "3", 10, 10, "")},
			"1 b 10-20\n2 c 10-20\n  1 a 10-20\n"},
		{"ids that are there twice", []string{line("a", "1", "", 10, 90, ""), line("a", "1", "", 10, 90, ""), line("b", "2", "1", 20, 10, "")},
			"1 a 10-100\n2 a 10-100\n  2 b 20-30\n"},
		{"no ids", []string{line("a", "", "", 10, 90, ""), line("b", "", "", 20, 10, "")},
			"1 a 10-100\n2 b 20-30\n"},
		{"a lane is used again", []string{line("a", "1", "", 10, 10, ""), line("b", "2", "", 15, 10, ""), line("c", "3", "", 20, 10, ""), line("d", "4", "", 30, 10, "")},
			"1 a 10-20\n2 b 15-25\n1 c 20-30\n1 d 30-40\n"},
		{"an open span lasts until its process was last heard of", []string{line("a", "1", "", 10, -10, ""), line("b", "2", "1", 20, 30, "")},
			"1 a (open) 10-50\n  1 b 20-50\n"},
		{"an end before the start is the start", []string{line("a", "1", "", 20, -5, "")},
			"1 a 20-20\n"},
		{"a start that is not there is the end", []string{line("a", "1", "", 0, 20, "")},
			"1 a 20-20\n"},
		{"a truncated span says so", []string{line("a", "1", "", 10, 20, `,"attributes":{"nemo.span.truncated":true}`)},
			"1 a (truncated) 10-30\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, summary := draw(t, []byte(strings.Join(tt.lines, "")), perfetto.Options{})
			j := mustJudge(t, out)
			var got strings.Builder
			for _, s := range j.slices {
				fmt.Fprintln(&got, s)
			}
			require.Equal(t, tt.want, got.String())
			require.EqualValues(t, len(j.lanes), summary.Lanes)
			chromeJudge(t, []byte(strings.Join(tt.lines, "")), j)
		})
	}
}

func TestWhatIsUnusualOfASpanIsFoundByCategory(t *testing.T) {
	out, summary := draw(t, []byte(
		line("open", "1", "", 10, -10, "")+
			line("cut", "2", "", 20, 10, `,"attributes":{"nemo.span.truncated":true}`)+
			line("bad", "3", "", 30, 10, `,"status":"ERROR","status_message":"NaN"`)+
			line("back", "4", "", 50, -7, `,"kind":"server"`)), perfetto.Options{})
	j := mustJudge(t, out)
	require.Equal(t, []int64{1, 1}, []int64{summary.Open, summary.Truncated})
	require.Equal(t, []string{"open"}, j.named("open (open)")[0].categories)
	require.Equal(t, []string{"truncated"}, j.named("cut (truncated)")[0].categories)
	bad, back := j.named("bad")[0], j.named("back")[0]
	require.Equal(t, []string{"error"}, bad.categories)
	require.Equal(t, []any{"ERROR", "NaN"}, []any{bad.args["status"], bad.args["status_message"]})
	require.Equal(t, []string{"inverted"}, back.categories)
	require.Equal(t, []any{int64(-7), "server"}, []any{back.args["duration_ns"], back.args["kind"]})
}

func TestEventsAreInstantsWithinTheirSpan(t *testing.T) {
	out, summary := draw(t, []byte(
		line("b", "2", "1", 20, 10, "")+
			line("a", "1", "", 10, 50, `,"events":[{"name":"in","time_ns":25,"attributes":{"x":1.5}},{"name":"late","time_ns":90},{"name":"early","time_ns":1},{"name":"end","time_ns":60}]`)), perfetto.Options{})
	j := mustJudge(t, out)
	require.EqualValues(t, 4, summary.Events)
	got := map[string]string{}
	for _, s := range j.instants {
		if s.lane != "" {
			got[s.name] = fmt.Sprint(s.at, " in ", s.parent.name, " ", s.args, " ", s.categories)
		}
	}
	require.Equal(t, map[string]string{
		"in":    "25 in b map[x:1.5] [event]", // what happens while a child runs is drawn below the child: it is one track
		"late":  "60 in a map[ns_outside_the_span:30] [event]",
		"early": "10 in a map[ns_outside_the_span:-9] [event]",
		"end":   "60 in a map[] [event]",
	}, got)
}

func TestAttributesKeepTheirTypes(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	out, _ := draw(t, []byte(line("a", "1", "", 10, 20, `,"attributes":{"i":-3,"b":true,"f":0.5,"s":"é","l":[1,"x"],"m":{"k":{"v":2}},"d":`+deep+
		`,"long":"`+strings.Repeat("é", 4000)+`","nan":{"@double":"NaN"}}`)), perfetto.Options{})
	args := mustJudge(t, out).slices[0].args
	require.Equal(t, []any{int64(-3), true, 0.5, "é"}, []any{args["i"], args["b"], args["f"], args["s"]})
	require.Equal(t, []any{int64(1), "x"}, args["l"])
	require.Equal(t, map[string]any{"k": map[string]any{"v": int64(2)}}, args["m"])
	require.Contains(t, fmt.Sprint(args["d"]), "[cut: nested deeper]")
	require.Equal(t, strings.Repeat("é", 2048)+"…", args["long"])
	require.Equal(t, strings.Repeat("0", 31)+"1", args["trace_id"])
}

func TestNamesThatNeverComeAgainAreForgotten(t *testing.T) {
	var lines strings.Builder
	for i := range 9_000 {
		lines.WriteString(line(fmt.Sprintf("name-%d", i), "", "", int64(10+10*i), 5, fmt.Sprintf(`,"attributes":{"key-%d":%d,"same":1}`, i, i)))
	}
	lines.WriteString(line(strings.Repeat("x", 1000), "", "", 1, 5, ""))
	out, _ := draw(t, []byte(lines.String()), perfetto.Options{})
	j := mustJudge(t, out)
	require.Len(t, j.slices, 9_001)
	require.Len(t, j.named(strings.Repeat("x", 1000)), 1)
	for i := range 9_000 {
		s := j.slices[i+1]
		require.Equal(t, fmt.Sprintf("name-%d", i), s.name)
		require.EqualValues(t, i, s.args[fmt.Sprintf("key-%d", i)])
	}
}
