// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter

import (
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

// Requirement 2: the key goes as Weave wants it, and comes back in no log and no error.
func TestRequirement02_KeyIsSentAndNotShown(t *testing.T) {
	for _, style := range []AuthStyle{AuthHeader, AuthBasic} {
		t.Run(string(style), func(t *testing.T) {
			b := newBench(t, weavetest.Options{}, func(cfg *Config) { cfg.AuthStyle = style })
			require.NoError(t, b.send(t, spans(0, 1)))
			header := b.fake.Requests()[0].Header
			basic := base64.StdEncoding.EncodeToString([]byte("api:" + weavetest.Key))
			if style == AuthBasic {
				require.Equal(t, "Basic "+basic, header.Get("Authorization"))
				require.Empty(t, header.Get("wandb-api-key"))
			} else {
				require.Equal(t, weavetest.Key, header.Get("wandb-api-key"))
				require.Empty(t, header.Get("Authorization"))
			}

			b.fake.Script(weavetest.Answer{Status: 401, Body: `{"reason":"unknown key ` + weavetest.Key + ` in Basic ` + basic + `"}`})
			err := b.send(t, spans(1, 1))
			require.ErrorContains(t, err, "unknown key [REDACTED] in Basic [REDACTED]")
			require.NotContains(t, err.Error(), weavetest.Key)
			require.Len(t, b.logged(zapcore.ErrorLevel), 1)
			require.NotContains(t, fmt.Sprint(b.logs.All()), weavetest.Key)
			require.NotContains(t, fmt.Sprint(b.logs.All()), basic)
		})
	}
}

// Requirement 3: a request for each project; what one answers is no matter of the others.
func TestRequirement03_OneRequestAProject(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	b.fake.Script(weavetest.Answer{Status: 403, Project: "acme/two"}, weavetest.Answer{Status: 503, Project: "acme/six", Times: 2})
	td := ptrace.NewTraces()
	addSpans(td, "acme/one", 0, 2)
	addSpans(td, "acme/two", 2, 2)
	addSpans(td, "acme/six", 4, 2)
	addSpans(td, "acme/one", 6, 2)
	require.NoError(t, b.send(t, td))

	requireDelivered(t, b.fake, "acme/one", 0, 1, 6, 7)
	requireDelivered(t, b.fake, "acme/six", 4, 5)
	require.Empty(t, b.fake.Calls("acme/two"))
	requests := map[string]int{}
	for _, r := range b.fake.Requests() {
		require.Len(t, r.Projects, 1)
		requests[r.Projects[0]]++
	}
	require.Equal(t, 1, requests["acme/one"], "what was taken is not sent again")
	require.Equal(t, 3, requests["acme/six"], "what may pass later is")
	require.Equal(t, map[string]int64{"sent_spans": 6, "dropped_spans:forbidden": 2}, b.counters(t))
}

// Requirement 4: what has no project is not sent, but counted, and said once.
func TestRequirement04_UnroutableIsDroppedLoudly(t *testing.T) {
	b := newBench(t, weavetest.Options{}, func(cfg *Config) { cfg.Project = "" })
	for i := range 3 {
		require.Error(t, b.send(t, spans(10*i, 2)))
	}
	require.Empty(t, b.fake.Requests())
	require.Equal(t, map[string]int64{"dropped_spans:unroutable": 6}, b.counters(t))
	errors := b.logged(zapcore.ErrorLevel)
	require.Len(t, errors, 1)
	require.Equal(t, []any{"trainer"}, errors[0].ContextMap()["service.name"])
}

// Requirement 18: a batch of 100 MiB goes in requests below Weave's limit, each span once.
func TestRequirement18_LargeBatchesAreSplit(t *testing.T) {
	b := newBench(t, weavetest.Options{}, func(cfg *Config) { cfg.ClientConfig.Compression = "none" })
	td := ptrace.NewTraces()
	all := addSpans(td, "", 0, 100)
	for i := range all.Len() {
		all.At(i).Attributes().PutStr("prompt", strings.Repeat("x", 1<<20))
	}
	require.NoError(t, b.send(t, td))
	requireDelivered(t, b.fake, project, upTo(100)...)
	require.Greater(t, len(b.fake.Requests()), 3)
	for _, r := range b.fake.Requests() {
		require.Equal(t, 200, r.Status)
		require.LessOrEqual(t, r.Size, b.cfg.Limits.RequestBytes)
	}
	require.Zero(t, b.fake.Stats().Resent)
}

// Requirement 20: a request that is too large is halved, and a span that is too large dropped.
func TestRequirement20_TooLargeIsHalved(t *testing.T) {
	b := newBench(t, weavetest.Options{BodyLimit: 1 << 20})
	const n = 16
	td := ptrace.NewTraces()
	all := addSpans(td, "", 0, n)
	for i := range all.Len() {
		all.At(i).Attributes().PutStr("prompt", strings.Repeat("x", 600<<10))
	}
	all.At(5).Attributes().PutStr("prompt", strings.Repeat("x", 1200<<10))
	require.NoError(t, b.send(t, td))
	requireDelivered(t, b.fake, project, upTo(n, 5)...)
	require.LessOrEqual(t, len(b.fake.Requests()), 2*n-1)
	require.Equal(t, map[string]int64{"sent_spans": n - 1, "dropped_spans:too_large": 1}, b.counters(t))
	require.Empty(t, b.waits)
}

// Requirement 20: what stands before Weave may not say that a request is too large, but cut it off, or let it run out of time. Nothing else has to be
// taken for the parts to arrive.
func TestRequirement20_TooLargeForAGateway(t *testing.T) {
	for name, answer := range map[string]weavetest.Answer{"504": {Status: 504}, "cut": {Cut: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, weavetest.Options{}, func(cfg *Config) { cfg.RetryConfig.MaxElapsedTime = time.Hour })
			answer.When = func(r weavetest.Request) bool { return r.Size > 3<<20 }
			b.fake.Script(answer)
			td := ptrace.NewTraces()
			all := addSpans(td, "", 0, 4)
			for i := range all.Len() {
				all.At(i).Attributes().PutStr("prompt", strings.Repeat("x", 1<<20))
			}
			require.NoError(t, b.send(t, td))
			requireDelivered(t, b.fake, project, upTo(4)...)
			require.Equal(t, map[string]int64{"sent_spans": 4}, b.counters(t))
		})
	}
}

// Requirement 21: one bad span costs itself alone, and a bounded number of requests.
func TestRequirement21_PoisonIsIsolated(t *testing.T) {
	const n = 512
	for _, tt := range []struct {
		status int
		drop   string
		tries  int // requests beyond those of halving
	}{
		{400, "refused", 1}, {403, "forbidden", 1}, {422, "refused", 1}, {500, "refused", requestTries + spanTries - 1},
	} {
		for _, bad := range []int{0, 255, 256, 300, 511} {
			t.Run(fmt.Sprint(tt.status, " ", bad), func(t *testing.T) {
				b := newBench(t, weavetest.Options{})
				b.fake.Script(weavetest.Answer{Status: tt.status, When: holds(bad)})
				require.NoError(t, b.send(t, spans(0, n)))
				requireDelivered(t, b.fake, project, upTo(n, bad)...)
				require.Equal(t, map[string]int64{"sent_spans": n - 1, "dropped_spans:" + tt.drop: 1}, b.counters(t))
				require.LessOrEqual(t, len(b.fake.Requests()), 2*int(math.Log2(n))+tt.tries)
				errors := b.logged(zapcore.ErrorLevel)
				require.Len(t, errors, 1)
				require.Equal(t, spanID(bad).String(), errors[0].ContextMap()["span_id"])
			})
		}
	}
}

// A span that breaks what stands before Weave, or keeps it from an answer, is isolated as soon as others are taken.
func TestRequirement21_PoisonOfAGateway(t *testing.T) {
	for name, answer := range map[string]weavetest.Answer{"502": {Status: 502}, "504": {Status: 504}, "520": {Status: 520}, "cut": {Cut: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, weavetest.Options{})
			answer.When = holds(77)
			b.fake.Script(answer)
			waits := 0
			b.tick = func() { // Others are taken after a while.
				if waits++; waits > 50 {
					b.lastTaken.Store(b.time().UnixNano())
				}
			}
			require.NoError(t, b.send(t, spans(0, 256)))
			requireDelivered(t, b.fake, project, upTo(256, 77)...)
			require.Equal(t, map[string]int64{"sent_spans": 255, "dropped_spans:refused": 1}, b.counters(t))
			require.Greater(t, waits, 50, "a backend that is down is waited for")
		})
	}
}

// A poison in the last of a pair of spans leaves nothing that is taken after it: what was taken before counts.
func TestRequirement21_PoisonOnAClockThatRuns(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	b.now = func() time.Time { <-b.wait(time.Microsecond); return b.time() }
	b.fake.Script(weavetest.Answer{Status: 500, When: holds(15)})
	require.NoError(t, b.send(t, spans(0, 16)))
	requireDelivered(t, b.fake, project, upTo(15)...)
	require.LessOrEqual(t, len(b.fake.Requests()), 2*4+requestTries+spanTries-1)
}

func TestRequirement21_ManyPoisonsAreIsolated(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	bad := []int{3, 4, 5, 100, 101, 200, 400}
	for _, n := range bad {
		b.fake.Script(weavetest.Answer{Status: 400, When: holds(n)})
	}
	require.NoError(t, b.send(t, spans(0, 512)))
	requireDelivered(t, b.fake, project, upTo(512, bad...)...)
}

// Requirement 21: a sender all of whose spans are at fault costs itself alone, and few requests and pauses.
func TestRequirement21_HalfOfABatchIsPoison(t *testing.T) {
	for _, status := range []int{400, 500} {
		b := newBench(t, weavetest.Options{})
		b.fake.Script(weavetest.Answer{Status: status, When: func(r weavetest.Request) bool { return slices.Max(r.SpanIDs) > spanID(255).String() }})
		require.NoError(t, b.send(t, spans(0, 512)))
		requireDelivered(t, b.fake, project, upTo(256)...)
		require.Equal(t, map[string]int64{"sent_spans": 256, "dropped_spans:refused": 256}, b.counters(t))
		require.Less(t, len(b.fake.Requests()), 64)
		require.Less(t, len(b.waits), 8)
	}
}

// Requirement 21: where all of a project is refused, no span is at fault, and halving ends.
func TestRequirement21_WholeProjectIsNotBisectedForEver(t *testing.T) {
	for _, status := range []int{400, 403, 422} {
		b := newBench(t, weavetest.Options{})
		b.fake.Script(weavetest.Answer{Status: status})
		require.Error(t, b.send(t, spans(0, 512)))
		require.LessOrEqual(t, len(b.fake.Requests()), 2*10+10, status)
		require.Len(t, b.counters(t), 1)

		if status == 403 {
			before := len(b.fake.Requests())
			for i := 1; i <= 10; i++ {
				require.Error(t, b.send(t, spans(1000*i, 512)))
				b.wait(time.Minute)
			}
			require.Len(t, b.fake.Requests(), before+10, "a project that is known to be closed is asked once a batch")
			require.Equal(t, map[string]int64{"dropped_spans:forbidden": 11 * 512}, b.counters(t))
		}
	}
}

// Requirement 21: small batches of a closed project are few requests too.
func TestRequirement21_SmallBatchesOfAClosedProject(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 16} {
		b := newBench(t, weavetest.Options{})
		b.fake.Script(weavetest.Answer{Status: 403})
		for i := range 10 {
			require.Error(t, b.send(t, spans(100*i, n)))
		}
		require.LessOrEqual(t, len(b.fake.Requests()), n+1+9, n)
		require.Equal(t, map[string]int64{"dropped_spans:forbidden": int64(10 * n)}, b.counters(t))
	}
}

// Requirement 22: what cannot pass is not tried again, what may pass is, as long as Weave asks.
func TestRequirement22_RetryClasses(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 40, 0, time.UTC)
	for _, tt := range []struct {
		name     string
		answer   weavetest.Answer
		requests int
		longest  time.Duration // wait, at least
		drop     string
		hint     string
	}{
		{"401", weavetest.Answer{Status: 401}, 1, 0, "unauthorized", "check api_key"},
		{"404", weavetest.Answer{Status: 404}, 1, 0, "not_found", "check base_url or host"},
		{"405", weavetest.Answer{Status: 405}, 1, 0, "not_found", "check base_url or host"},
		{"409", weavetest.Answer{Status: 409}, 1, 0, "refused", "refuses"},
		{"408", weavetest.Answer{Status: 408, Times: 2}, 3, 0, "", ""},
		{"429", weavetest.Answer{Status: 429, Times: 2}, 3, 0, "", ""},
		{"429 for seconds", weavetest.Answer{Status: 429, RetryAfter: "17", Times: 1}, 2, 17 * time.Second, "", ""},
		{"429 to a date", weavetest.Answer{Status: 429, RetryAfter: at.Format(http.TimeFormat), Times: 1}, 2, 40 * time.Second, "", ""},
		{"429 with nonsense", weavetest.Answer{Status: 429, RetryAfter: "soon", Times: 1}, 2, 0, "", ""},
		{"502", weavetest.Answer{Status: 502, Times: 3}, 4, 0, "", ""},
		{"503", weavetest.Answer{Status: 503, RetryAfter: "40", Times: 1}, 2, 40 * time.Second, "", ""},
		{"504", weavetest.Answer{Status: 504, Times: 1}, 2, 0, "", ""},
		{"520", weavetest.Answer{Status: 520, Times: 1}, 2, 0, "", ""},
		{"500", weavetest.Answer{Status: 500, Times: 2}, 3, 0, "", ""},
		{"cut", weavetest.Answer{Cut: true, Times: 2}, 3, 0, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, weavetest.Options{})
			b.fake.Script(tt.answer)
			err := b.send(t, spans(0, 8))
			require.Len(t, b.fake.Requests(), tt.requests)
			require.Len(t, b.waits, tt.requests-1)
			for _, wait := range b.waits {
				require.GreaterOrEqual(t, wait, tt.longest)
			}
			if tt.drop == "" {
				require.NoError(t, err)
				requireDelivered(t, b.fake, project, upTo(8)...)
				return
			}
			require.True(t, consumererror.IsPermanent(err), err)
			require.Equal(t, map[string]int64{"dropped_spans:" + tt.drop: 8}, b.counters(t))
			require.Len(t, b.logged(zapcore.ErrorLevel), 1)
			require.Contains(t, b.logged(zapcore.ErrorLevel)[0].Message, tt.hint)
		})
	}
}

// Requirement 22: a used-up quota is said once, and nobody asks again before its end.
func TestRequirement22_QuotaPausesEverything(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	b.fake.Script(weavetest.Answer{Status: 429, RetryAfter: "3600", Times: 1})
	require.NoError(t, b.send(t, spans(0, 4)))
	require.GreaterOrEqual(t, b.waits[0], time.Hour)
	require.Len(t, b.fake.Requests(), 2)
	require.Len(t, b.logged(zapcore.ErrorLevel), 1)
	require.Equal(t, float64(3600), b.logged(zapcore.ErrorLevel)[0].ContextMap()["retry_after"].(time.Duration).Seconds())

	b.throttle.extend(b.time(), time.Hour)
	require.NoError(t, b.send(t, spans(4, 4)))
	require.Len(t, b.fake.Requests(), 3, "the other batches wait too")
	require.Len(t, b.logged(zapcore.ErrorLevel), 1)
	require.Equal(t, map[string]int64{"sent_spans": 8}, b.counters(t))
}

// Requirement 22: a backend of which nothing is taken is down, whatever it answers; it is waited for.
func TestRequirement22_ServerErrorsOfABackendThatIsDown(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	b.fake.Script(weavetest.Answer{Status: 500, When: func(weavetest.Request) bool { return b.time().Before(time.Date(2026, 11, 29, 12, 2, 0, 0, time.UTC)) }})
	require.NoError(t, b.send(t, spans(0, 512)))
	requireDelivered(t, b.fake, project, upTo(512)...)
	require.Equal(t, map[string]int64{"sent_spans": 512}, b.counters(t))

	b.fake.Script(weavetest.Answer{Status: 500})
	before := len(b.fake.Requests())
	require.Error(t, b.send(t, spans(1000, 512)))
	require.Equal(t, map[string]int64{"sent_spans": 512, "dropped_spans:refused": 512}, b.counters(t))
	require.Less(t, len(b.fake.Requests())-before, 2*512)
}

// Requirement 22: a request that one outage held up long is not at fault in the next, whatever was taken between the two.
func TestRequirement22_OutagesOneAfterAnother(t *testing.T) {
	for name, answer := range map[string]weavetest.Answer{"502": {Status: 502}, "504": {Status: 504}, "cut": {Cut: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, weavetest.Options{})
			answer.Times = 100
			b.fake.Script(answer)
			b.tick = func() {
				if len(b.fake.Requests()) == 20 {
					b.lastTaken.Store(b.time().UnixNano())
				}
			}
			require.NoError(t, b.send(t, spans(0, 64)))
			requireDelivered(t, b.fake, project, upTo(64)...)
			require.Equal(t, map[string]int64{"sent_spans": 64}, b.counters(t))
		})
	}
}

// Requirement 22: an outage that begins while a request is halved takes none of its parts along.
func TestRequirement22_OutageWhileHalving(t *testing.T) {
	for status, tries := range map[int]int{500: requestTries, 502: gatewayTries} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			b := newBench(t, weavetest.Options{})
			b.fake.Script(weavetest.Answer{Status: status, Times: 100})
			b.tick = func() { // Others are taken up to then.
				if len(b.fake.Requests()) < tries {
					b.lastTaken.Store(b.time().UnixNano())
				}
			}
			require.NoError(t, b.send(t, spans(0, 512)))
			requireDelivered(t, b.fake, project, upTo(512)...)
			require.Equal(t, map[string]int64{"sent_spans": 512}, b.counters(t))
		})
	}
}

// Requirement 22: that Weave was busy says nothing of a request that then fails once.
func TestRequirement22_ThrottlingIsNoFailure(t *testing.T) {
	for _, busy := range []int{429, 503} {
		for _, then := range []int{500, 502} {
			t.Run(fmt.Sprint(busy, " ", then), func(t *testing.T) {
				b := newBench(t, weavetest.Options{})
				b.fake.Script(weavetest.Answer{Status: busy, Times: 2 * gatewayTries}, weavetest.Answer{Status: then, Times: 1})
				b.tick = func() { b.lastTaken.Store(b.time().UnixNano()) } // Others are taken all the time.
				require.NoError(t, b.send(t, spans(0, 1)))
				requireDelivered(t, b.fake, project, 0)
				require.Equal(t, map[string]int64{"sent_spans": 1}, b.counters(t))
			})
		}
	}
}

func TestRetriesEndWhereTheConfigSays(t *testing.T) {
	b := newBench(t, weavetest.Options{}, func(cfg *Config) { cfg.RetryConfig.MaxElapsedTime = time.Minute })
	b.fake.Script(weavetest.Answer{Status: 503})
	err := b.send(t, spans(0, 4))
	require.True(t, consumererror.IsPermanent(err), err)
	require.Greater(t, len(b.fake.Requests()), 3)
	require.Equal(t, map[string]int64{"dropped_spans:retries_exhausted": 4}, b.counters(t))

	b = newBench(t, weavetest.Options{}, func(cfg *Config) { cfg.RetryConfig.Enabled = false })
	b.fake.Script(weavetest.Answer{Status: 503})
	require.Error(t, b.send(t, spans(0, 4)))
	require.Len(t, b.fake.Requests(), 1)
	require.Equal(t, map[string]int64{"dropped_spans:retries_exhausted": 4}, b.counters(t))

	err = b.deliver(t.Context(), spans(4, 4), false)
	require.Error(t, err)
	require.False(t, consumererror.IsPermanent(err), "its sender has it and will send it again")
	require.Equal(t, map[string]int64{"dropped_spans:retries_exhausted": 4}, b.counters(t), "so it is not lost")
}

// A project that is read from a file may end in a line break. It is no other project, and holds up nobody: no header can have one.
func TestProjectsWithLineBreaks(t *testing.T) {
	for _, mode := range []string{"calls", "agents"} {
		t.Run(mode, func(t *testing.T) {
			b := newBench(t, weavetest.Options{}, func(cfg *Config) {
				cfg.Mode, cfg.Run.ID, cfg.RetryConfig.MaxElapsedTime = mode, "3f9k2q", time.Hour
			})
			td := ptrace.NewTraces()
			addSpans(td, "acme/llm\n", 0, 2)
			addSpans(td, "acme/l\nlm", 2, 2)
			require.NoError(t, b.send(t, td))
			require.Equal(t, map[string]int64{"sent_spans": 2, "dropped_spans:unroutable": 2, "rewritten_values:typed_key": 1}, b.counters(t))
			require.Equal(t, []string{"acme/llm"}, b.fake.Projects())
		})
	}
}

// The key goes to no other host than that of the config, and what answers elsewhere is not Weave.
func TestOtherServersAreNotWeave(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
	}{
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }},
		{"kept redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}},
		{"page", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<html>Log in")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests++; tt.handler(w, r) }))
			defer server.Close()
			b := newBench(t, weavetest.Options{}, func(cfg *Config) { cfg.BaseURL = server.URL })
			require.Error(t, b.send(t, spans(0, 2)))
			require.Equal(t, 1, requests)
			require.Equal(t, map[string]int64{"dropped_spans:not_found": 2}, b.counters(t))
		})
	}
}

// Requirement 23: spans that Weave rejects in a request that it takes are counted, said once, and not sent again.
func TestRequirement23_PartialSuccess(t *testing.T) {
	for name, body := range map[string]string{
		"nested": `{"partial_success":{"rejected_spans":3,"error_message":"bad spans"}}`,
		"flat":   `{"accepted_spans":7,"rejected_spans":3,"error_message":"bad spans"}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, weavetest.Options{})
			b.fake.Script(weavetest.Answer{Status: 200, Body: body})
			require.NoError(t, b.send(t, spans(0, 10)))
			require.NoError(t, b.send(t, spans(10, 10)))
			require.Len(t, b.fake.Requests(), 2)
			require.Equal(t, map[string]int64{"sent_spans": 14, "rejected_spans": 6}, b.counters(t))
			warnings := b.logged(zapcore.WarnLevel)
			require.Len(t, warnings, 1)
			require.Equal(t, "bad spans", warnings[0].ContextMap()["message"])
		})
	}
}

// Requirement 23: what an answer says without rejecting anything is said on (OTLP 1.10 §Partial Success: a warning), and counts nothing.
func TestRequirement23_Warning(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	b.fake.Script(weavetest.Answer{Status: 200, Body: `{"partial_success":{"rejected_spans":0,"error_message":"the quota is nearly used up"}}`})
	require.NoError(t, b.send(t, spans(0, 10)))
	require.NoError(t, b.send(t, spans(10, 10)))
	require.Equal(t, map[string]int64{"sent_spans": 20}, b.counters(t))
	warnings := b.logged(zapcore.WarnLevel)
	require.Len(t, warnings, 1)
	require.Equal(t, "the quota is nearly used up", warnings[0].ContextMap()["message"])
}

// A backend that is down is in the log, with the reason, at each try: in the words by which lens_health knows it.
func TestRetriesAreLogged(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	b.fake.Script(weavetest.Answer{Cut: true, Times: 2}, weavetest.Answer{Status: 503, Times: 1}, weavetest.Answer{Status: 429, RetryAfter: "17", Times: 1})
	require.NoError(t, b.send(t, spans(0, 8)))
	retries := b.logs.FilterMessage("Exporting failed. Will retry the request after interval.").All()
	require.Len(t, retries, 4)
	var errs []error
	for _, line := range retries {
		for _, field := range line.Context {
			if err, ok := field.Interface.(error); ok {
				errs = append(errs, err)
			}
		}
	}
	require.ErrorIs(t, errs[0], io.EOF)
	require.Equal(t, codes.Unavailable, status.Code(errs[2]))
	require.Equal(t, codes.ResourceExhausted, status.Code(errs[3]))
	require.Equal(t, "HTTP status 503: scripted", retries[2].ContextMap()["error"])
	require.Equal(t, "17s", retries[3].ContextMap()["interval"])
}

// Requirement 24: Weave's reason is in the error; a body without end is not read to its end.
func TestRequirement24_ReasonsAreShown(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	b.fake.Script(weavetest.Answer{Status: 400, Body: `{"reason":"AnyValue has no value"}`, Times: 1})
	require.ErrorContains(t, b.send(t, spans(0, 1)), "HTTP status 400: AnyValue has no value")

	read := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		chunk := []byte(strings.Repeat("long ", 2000))
		for range 1000 {
			n, err := w.Write(chunk)
			if read += n; err != nil {
				return
			}
		}
	}))
	b = newBench(t, weavetest.Options{}, func(cfg *Config) { cfg.BaseURL = server.URL })
	err := b.send(t, spans(0, 1))
	server.Close() // It waits for the handler.
	require.ErrorContains(t, err, "HTTP status 401: long long")
	require.Less(t, len(err.Error()), maxShown+200)
	require.Less(t, read, 10<<20, "the connection was closed before the end")
}

// Requirement 30: the batch is another exporter's too.
func TestRequirement30_InputIsNotTouched(t *testing.T) {
	b := newBench(t, weavetest.Options{})
	td := spans(0, 3)
	span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1)
	span.SetName("<step 7>")
	span.Attributes().PutDouble("rl.reward", math.NaN())
	span.Attributes().PutDouble("rl.reward.mean", 1)
	td.MarkReadOnly()
	before, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	require.NoError(t, b.send(t, td))
	after, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	require.Equal(t, before, after)
	requireDelivered(t, b.fake, project, 0, 1, 2)
}
