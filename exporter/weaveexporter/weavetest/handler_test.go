// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// good is a request of two spans.
var good = Rule{Name: "good", Edit: attrs("dl.iteration", 7)}

// request is a POST to the fake, as a test changes it.
type request struct {
	path   string
	header map[string]string
	body   []byte
}

// send posts a request; what it leaves out is that of a good one.
func send(t *testing.T, s *Server, r request) (*http.Response, string) {
	t.Helper()
	if r.body == nil {
		r.body = good.Body()
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+cmp.Or(r.path, CallsPath), bytes.NewReader(r.body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("wandb-api-key", Key)
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		return nil, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

// TestHTTP is what Weave's HTTP layer does, as far as it is documented.
func TestHTTP(t *testing.T) {
	zipped := func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(b)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return out.Bytes()
	}
	basic := func(user, password string) string {
		req, err := http.NewRequest(http.MethodPost, "/", nil)
		require.NoError(t, err)
		req.SetBasicAuth(user, password)
		return req.Header.Get("Authorization")
	}
	unrouted := Rule{Edit: func(r *tracepb.ResourceSpans, _ *tracepb.Span) { r.Resource = nil }}.Body()
	for _, test := range []struct {
		name   string
		send   request
		status int
		calls  int
	}{
		{"the cloud", request{}, 200, 2},
		{"a dedicated instance", request{path: "/traces" + CallsPath}, 200, 2},
		{"the agents endpoint", request{path: AgentsPath}, 200, 0},
		{"a dedicated agents endpoint", request{path: "/traces" + AgentsPath}, 200, 0},
		{"a doubled path", request{path: CallsPath + "/v1/traces"}, 404, 0},
		{"no path", request{path: "/"}, 404, 0},
		{"metrics", request{path: "/otel/v1/metrics"}, 404, 0},
		{"no key", request{header: map[string]string{"wandb-api-key": ""}}, 401, 0},
		{"another key", request{header: map[string]string{"wandb-api-key": "x"}}, 401, 0},
		{"basic", request{header: map[string]string{"wandb-api-key": "", "Authorization": basic("api", Key)}}, 200, 2},
		{"basic with another user", request{header: map[string]string{"wandb-api-key": "", "Authorization": basic("me", Key)}}, 401, 0},
		{"basic behind another key", request{header: map[string]string{"wandb-api-key": "x", "Authorization": basic("api", Key)}}, 401, 0},
		{"bearer", request{header: map[string]string{"wandb-api-key": "", "Authorization": "Bearer " + Key}}, 401, 0},
		{"JSON", request{header: map[string]string{"Content-Type": "application/json"}}, 415, 0},
		{"gzip", request{header: map[string]string{"Content-Encoding": "gzip"}, body: zipped(good.Body())}, 200, 2},
		{"gzip that is none", request{header: map[string]string{"Content-Encoding": "gzip"}}, 400, 0},
		{"zstd", request{header: map[string]string{"Content-Encoding": "zstd"}}, 415, 0},
		{"an empty request", request{body: []byte{}}, 200, 0},
		{"a project by header", request{header: map[string]string{"project_id": RuleProject}, body: unrouted}, 200, 2},
		{"a project without entity by header", request{header: map[string]string{"project_id": "project"}, body: unrouted}, 422, 0},
		{"a resource and a header", request{header: map[string]string{"project_id": "other/project"}}, 200, 2},
		{"too large", request{body: Rule{Edit: attrs("a", strings.Repeat("x", 1<<20))}.Body()}, 413, 0},
		{"too large when decompressed", request{
			header: map[string]string{"Content-Encoding": "gzip"}, body: zipped(Rule{Edit: attrs("a", strings.Repeat("x", 1<<20))}.Body()),
		}, 413, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New(t, Options{BodyLimit: 1 << 20})
			resp, text := send(t, s, test.send)
			require.Equal(t, test.status, resp.StatusCode, text)
			require.Len(t, s.Calls(RuleProject), test.calls)
			got := s.Requests()
			require.Len(t, got, 1)
			require.Equal(t, test.status, got[0].Status)
			if test.status != http.StatusOK {
				require.Regexp(t, `^{"reason":".+"}$`, text)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	s := New(t, Options{})
	clash := Rule{Edit: attrs("a", 1, "a.b", 2)}.Body()
	_, text := send(t, s, request{})
	require.JSONEq(t, `{"partial_success":null}`, text)
	_, text = send(t, s, request{body: clash})
	var nested struct {
		Partial struct {
			Rejected int    `json:"rejected_spans"`
			Message  string `json:"error_message"`
		} `json:"partial_success"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &nested))
	require.Equal(t, 1, nested.Partial.Rejected)
	require.Contains(t, nested.Partial.Message, RuleSpan)
	_, text = send(t, s, request{path: AgentsPath, body: clash})
	require.Regexp(t, `^{"accepted_spans":1,"error_message":".+","rejected_spans":1}$`, text)
	require.Equal(t, Stats{Requests: 3, Spans: 6, Rejected: 2, Resent: 1}, s.Stats())
}

// A request for several projects is taken project by project: what is stored before one fails stays.
func TestProjects(t *testing.T) {
	s := New(t, Options{})
	bad := Rule{Edit: attrs("a", nil)}
	body := append(good.BodyFor("e", "one"), bad.BodyFor("e", "two")...) // Two messages in a row are one with the lists joined.
	body = append(body, good.BodyFor("e", "three")...)
	resp, _ := send(t, s, request{body: body})
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Equal(t, []string{"e/one"}, s.Projects())
	require.Equal(t, []string{"e/one", "e/three", "e/two"}, s.Requests()[0].Projects)
}

// Two spans with one id are one call, a span that comes again is no other one.
func TestMerge(t *testing.T) {
	s := New(t, Options{})
	send(t, s, request{})
	send(t, s, request{})
	require.Equal(t, Stats{Requests: 2, Spans: 4, Resent: 2}, s.Stats())
	send(t, s, request{body: Rule{Edit: func(_ *tracepb.ResourceSpans, s *tracepb.Span) { s.TraceId = bytes.Repeat([]byte{3}, 16) }}.Body()})
	require.Equal(t, 1, s.Stats().Merged)
	calls := s.Calls(RuleProject)
	require.Len(t, calls, 2)
	require.Equal(t, strings.Repeat("03", 16), calls[1].TraceID)
	s.Reset()
	require.Empty(t, s.Calls(RuleProject))
	require.Equal(t, Stats{}, s.Stats())
}

func TestScript(t *testing.T) {
	s := New(t, Options{})
	s.Script(
		Answer{Status: 429, RetryAfter: "3600", Times: 1},
		Answer{Status: 403, Project: "e/closed"},
		Answer{Status: 503, Body: "busy", Times: 1, Stored: true},
		Answer{Cut: true, Times: 1},
		Answer{Status: 500, When: func(r Request) bool { return r.Spans == 2 && r.SpanIDs[1] == RuleSpan && r.Header.Get("poison") != "" }},
	)
	resp, text := send(t, s, request{})
	require.Equal(t, 429, resp.StatusCode)
	require.Equal(t, "3600", resp.Header.Get("Retry-After"))
	require.JSONEq(t, `{"reason":"scripted"}`, text)
	resp, _ = send(t, s, request{body: good.BodyFor("e", "closed")})
	require.Equal(t, 403, resp.StatusCode)
	require.Empty(t, s.Calls(RuleProject))
	resp, text = send(t, s, request{})
	require.Equal(t, 503, resp.StatusCode)
	require.Equal(t, "busy", text)
	require.Len(t, s.Calls(RuleProject), 2, "stored, and the answer lost")
	resp, _ = send(t, s, request{})
	require.Nil(t, resp, "the connection was cut")
	resp, _ = send(t, s, request{header: map[string]string{"poison": "1"}})
	require.Equal(t, 500, resp.StatusCode)
	resp, _ = send(t, s, request{})
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, Stats{Requests: 6, Refused: 5, Spans: 4, Resent: 2}, s.Stats())
}

// A request that hangs ends with its client, or with the server.
func TestHang(t *testing.T) {
	s := New(t, Options{})
	s.Script(Answer{Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	hang := func(ctx context.Context) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+CallsPath, bytes.NewReader(good.Body()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-protobuf")
			req.Header.Set("wandb-api-key", Key)
			_, err = s.Client().Do(req)
		}
		ended <- err
	}
	go hang(ctx)
	require.Eventually(t, func() bool { return len(s.Requests()) == 1 }, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	go hang(t.Context())
	require.Eventually(t, func() bool { return len(s.Requests()) == 2 }, time.Minute, time.Millisecond)
	s.Close()
	require.Error(t, <-ended)
}

// Row sizes are bounded, attributes counted twice: in their column and in the dump.
func TestBlank(t *testing.T) {
	s := New(t, Options{RowLimit: 10_000})
	send(t, s, request{body: Rule{Edit: attrs("a", strings.Repeat("x", 6000))}.Body()})
	calls := s.Calls(RuleProject)
	require.Len(t, calls, 2)
	require.Equal(t, []string{"dump"}, calls[1].Blanked)
	_, ok := calls[1].Filter("a")
	require.True(t, ok)
	send(t, s, request{body: Rule{Edit: attrs("a", strings.Repeat("x", 20_000))}.Body()})
	calls = s.Calls(RuleProject)
	require.Equal(t, []string{"dump", "attributes"}, calls[1].Blanked)
	_, ok = calls[1].Filter("a")
	require.False(t, ok)
	require.Equal(t, 2, s.Stats().Blanked)
}

func TestRequestSizes(t *testing.T) {
	s := New(t, Options{})
	body := good.Body()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	send(t, s, request{header: map[string]string{"Content-Encoding": "gzip"}, body: zipped.Bytes()})
	got := s.Requests()[0]
	require.Equal(t, zipped.Len(), got.Wire)
	require.Equal(t, len(body), got.Size)
	require.Equal(t, []string{RuleNeighbour, RuleSpan}, got.SpanIDs)
}
