// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// A text that Weave would take for a reference costs the request, or all lists of the project: it is kept with a mark before it.
func TestReferences(t *testing.T) {
	deep := `{"b":"` + strings.Repeat("[", 100) + `\"see weave:///x\"` + strings.Repeat("]", 100) + `"}`
	for text, marked := range map[string]bool{
		"weave:///e/q/object/o:v":                       true,
		"weave:///x":                                    true,
		"weave:///e/pp/object/o:v":                      true,
		"weave-trace-internal:///abc/object/o:v":        true,
		"weave:///e/p/object/o:v":                       false,
		"see weave:///x":                                false,
		`"weave:///x"`:                                  true,
		`"weave:///x", he said`:                         false,
		`[INFO] "weave:///x"`:                           false,
		` ["weave:///x"]`:                               true,
		`{"a":{"b":["weave:///x"]}}`:                    true,
		`{"a":["weave:///e/p/x"]}`:                      false,
		`{"weave:///x":1}`:                              false,
		`{"weave:///x" : "weave:///y"}`:                 true,
		`{"a":"[\"weave:///x\"]"}`:                      true,
		`["weave:\/\/\/x"]`:                             true,
		`["weave:\/\/\/e\/p\/x"]`:                       true, // not looked up
		`["\u0077eave:///e/p/x"]`:                       true,
		`["[\"weave-trace-internal:\/\/\/x\"]"]`:        true,
		` ["weave:///e/p/x"]`:                           true, // it would lose its blank
		`["weave:///e/p/x", "weave:\/\/\/e\/p\/x"]`:     false,
		`["line\nline \"quoted\" \u00e9 \\/"]`:          false,
		deep:                                            true,
		"https://weave.example/weave:///":               false,
		`{"role":"user","content":"what is weave:///"}`: false,
	} {
		t.Run(text, func(t *testing.T) {
			td, s := oneSpan(map[string]any{"a": text, "list": []any{"x", text}, "map": map[string]any{"b": text}})
			s.Attributes().PutStr("input.value", text)
			_, got := accepted(t, options(), td)
			want := text
			if marked {
				want = "text: " + text
				require.GreaterOrEqual(t, got.Rewritten[Reference], 3)
			} else {
				require.Zero(t, got.Rewritten[Reference])
			}
			out := asMapOf(sent(t, got)[0])
			require.Equal(t, []any{want, []any{"x", want}, map[string]any{"b": want}, want}, []any{out["a"], out["list"], out["map"], out["input.value"]})
			require.Equal(t, text, s.Attributes().AsRaw()["a"])
		})
	}
}

// Elsewhere Weave looks nothing up, whatever the project.
func TestReferencesBesideAttributes(t *testing.T) {
	const text, marked = "weave:///e/p/object/o:v", "text: weave:///e/p/object/o:v"
	td, s := oneSpan(nil)
	rs := td.ResourceSpans().At(0)
	rs.Resource().Attributes().PutStr("host.name", text)
	rs.ScopeSpans().At(0).Scope().SetName(text)
	s.SetName(text)
	s.TraceState().FromRaw(text)
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage(text)
	e := s.Events().AppendEmpty()
	e.SetName(text)
	e.Attributes().PutStr("x", text)
	l := s.Links().AppendEmpty()
	l.SetTraceID(pcommon.TraceID{9})
	l.SetSpanID(pcommon.SpanID{9})
	l.Attributes().PutStr("x", text)

	calls, got := accepted(t, options(), td)
	require.Equal(t, 9, got.Rewritten[Reference])
	out := sent(t, got)[0]
	require.Equal(t, []any{marked, marked}, []any{asMapOf(out)["host.name"], asMapOf(out)["otel.scope.name"]})
	require.Equal(t, []string{marked, marked, marked}, []string{calls[0].Display, calls[0].Exception, out.TraceState().AsRaw()})
	require.Equal(t, marked, asMapOf(out)["lenscol.original.name"])
	require.Equal(t, marked, out.Events().At(0).Name())
	require.Equal(t, map[string]any{"x": marked}, out.Events().At(0).Attributes().AsRaw())
	require.Equal(t, map[string]any{"x": marked}, out.Links().At(0).Attributes().AsRaw())
}

// Where a cut text could end within the name of the project, references to it are none either.
func TestReferencesToALongName(t *testing.T) {
	o := options(func(o *Options) { o.Target.Project, o.SpanBytes = strings.Repeat("p", 200), MinSpanBytes })
	td, _ := oneSpan(map[string]any{"a": "weave:///e/" + o.Target.Project + "/" + strings.Repeat("x", 2*MinSpanBytes)})
	_, got := accepted(t, o, td)
	require.Equal(t, 1, got.Rewritten[Reference])
}

// What is cut may become JSON.
func TestReferencesInCutTexts(t *testing.T) {
	const json = `["weave:///x"]`
	for size := range 40 {
		cut := cutPlain(json+" and more", size)
		require.False(t, refers(cut, ""), cut)
		require.True(t, strings.HasPrefix(json+" and more", cut))
	}
	require.Equal(t, `["weave:///x"`, cutPlain(json+" and more", len(json)+1))
}

// Weave shows an error without a message as a success.
func TestErrorsWithoutAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		events [][2]string // message and type
		want   string
	}{
		"no event":              {nil, "error"},
		"an exception":          {[][2]string{{"out of memory", "RuntimeError"}}, "out of memory"},
		"an exception's type":   {[][2]string{{"", "RuntimeError"}}, "RuntimeError"},
		"the last of two":       {[][2]string{{"first", ""}, {"second", ""}}, "second"},
		"one that says nothing": {[][2]string{{"first", ""}, {"", ""}}, "first"},
		"a reference, of all":   {[][2]string{{"weave:///x", ""}}, "text: weave:///x"},
		"one that is not UTF-8": {[][2]string{{"\xff", ""}}, "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			td, s := oneSpan(nil)
			s.Status().SetCode(ptrace.StatusCodeError)
			for _, said := range c.events {
				e := s.Events().AppendEmpty()
				e.SetName("exception")
				e.Attributes().PutStr("exception.message", said[0])
				e.Attributes().PutStr("exception.type", said[1])
			}
			s.Events().AppendEmpty().Attributes().PutStr("exception.message", "of another event")
			calls, got := accepted(t, options(), td)
			require.Equal(t, []string{"error", c.want}, []string{calls[0].Status, calls[0].Exception})
			require.Equal(t, 1, got.Rewritten[StatusMessage])
		})
	}
	td, s := oneSpan(nil)
	s.Status().SetCode(ptrace.StatusCodeOk)
	calls, got := accepted(t, options(), td)
	require.Equal(t, "success", calls[0].Status)
	require.Zero(t, got.Rewritten[StatusMessage])
}

// Weave fails to shorten a display name that ends in blanks, and shortens any other.
func TestRequirement10_LongDisplayNames(t *testing.T) {
	for name, c := range map[string]struct {
		in  string
		cut int // runes that are left; 0: all
	}{
		"blanks at the end": {"a" + strings.Repeat(" ", 1199), 1000},
		"Japanese":          {strings.Repeat("学", 1024), 1000},
		"not so long":       {strings.Repeat("学", 1023), 0},
	} {
		t.Run(name, func(t *testing.T) {
			td, _ := oneSpan(map[string]any{"wandb.display_name": c.in})
			calls, got := accepted(t, options(), td)
			out := asMapOf(sent(t, got)[0])
			if c.cut == 0 {
				require.Equal(t, c.in, calls[0].Display)
				require.NotContains(t, out, "lenscol.original.wandb.display_name")
				return
			}
			require.Equal(t, string([]rune(c.in)[:c.cut]), calls[0].Display)
			require.Equal(t, c.in, out["lenscol.original.wandb.display_name"])
			require.Equal(t, 1, got.Rewritten[TypedKey])
		})
	}
}
