// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/runview"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server with an API of its own model.
type site struct {
	*httptest.Server
	api   *API
	clock time.Time // of the answers
}

func newSite(t *testing.T) *site {
	s := &site{clock: time.Now()}
	value := func(text string) Answer { return func(context.Context) any { return map[string]string{"is": text} } }
	s.api = New(value("health"), value("pipelines"))
	s.api.leave()
	s.api.model = runview.New()
	s.api.answers.now = func() time.Time { return s.clock }
	mux := http.NewServeMux()
	for pattern, handler := range s.api.Handlers() {
		mux.Handle(pattern, handler)
	}
	s.Server = httptest.NewUnstartedServer(mux)
	s.Config.ReadTimeout = 200 * time.Millisecond // as the extension's server has one, which a stream must outlive
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(s.Client().CloseIdleConnections)
	return s
}

func (s *site) sees(run string, rank int, steps ...int64) {
	attrs := pcommon.NewMap()
	attrs.PutStr("nemo.run.id", run)
	attrs.PutStr("service.name", "megatron")
	attrs.PutInt("dl.rank", int64(rank))
	source := runview.SourceOf(attrs)
	report := runview.NewReport()
	defer report.Release()
	for _, step := range steps {
		report.Step(runview.Step{Number: step, Start: uint64(step) * 1e9, End: uint64(step)*1e9 + 5e8})
	}
	report.AddDropped(source.Clone(), len(steps), 0, "single_rank")
	s.api.model.Apply(runview.NewFeed(ranks.Traces), report)
}

// get asks as a client that takes no gzip, and decodes the answer.
func (s *site) get(t *testing.T, path string, into any) (status int) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	require.NoError(t, err)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := s.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	require.Empty(t, resp.Header.Get("Content-Encoding"))
	require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
	return resp.StatusCode
}

func TestAnswers(t *testing.T) {
	s := newSite(t)
	var none map[string]any
	require.Equal(t, 200, s.get(t, "/api/runs", &none))
	require.Equal(t, []any{}, none["runs"], "a list, and not null")

	hostile := `<script>/../?#%2F "` + "\x01"
	s.sees(hostile, 7, 1, 2, 3)
	s.sees(hostile, 8, 1)
	s.clock = s.clock.Add(freshFor)
	var all runview.Runs
	require.Equal(t, 200, s.get(t, "/api/runs", &all))
	require.Len(t, all.Runs, 1)
	require.Equal(t, hostile, all.Runs[0].ID)

	path := "/api/runs/" + url.PathEscape(hostile)
	var run runview.RunDetail
	require.Equal(t, 200, s.get(t, path, &run))
	require.Equal(t, []int{7, 8}, run.Rows.Rank)
	require.Equal(t, []int64{3, 1}, run.Rows.Step)
	require.Equal(t, []int64{0, 1, 2, 3}, run.Steps)
	require.Equal(t, [][]float32{{0, .5, .5, .5}, {0, .5, 0, 0}}, run.Rows.Recent)
	require.Equal(t, 200, s.get(t, path+"?steps=1&rank=8", &run))
	require.Equal(t, []int{8}, run.Rows.Rank)
	require.Equal(t, [][]float32{{0}}, run.Rows.Recent)

	for path, want := range map[string]int{
		"/api/runs/another": 404, path + "?steps=101": 400, path + "?steps=-1": 400, path + "?steps=x": 400, path + "?rank=2147483648": 400,
	} {
		var refused map[string]string
		require.Equal(t, want, s.get(t, path, &refused), path)
		require.NotEmpty(t, refused["error"])
	}
}

// However many ask, an answer is made once a second; and few are kept.
func TestAnswersAreKeptForASecond(t *testing.T) {
	s := newSite(t)
	s.sees("a", 0, 1)
	var all runview.Runs
	for _, want := range []int{1, 1, 2} {
		if want == 2 {
			s.clock = s.clock.Add(freshFor)
		}
		s.get(t, "/api/runs", &all)
		require.Len(t, all.Runs, want)
		s.sees("b", 0, 1)
	}
	for i := range 3 * maxAnswers {
		q := question{id: "a", steps: i}
		require.NotNil(t, s.api.answers.to(q, func() any { return i }))
		require.LessOrEqual(t, len(s.api.answers.kept), maxAnswers)
	}
}

// A stream that gets a kept answer has not told what came after that was made.
func TestAnAnswerKnowsWhatIsInIt(t *testing.T) {
	s := newSite(t)
	first := s.api.runs()
	require.Equal(t, s.api.model.Changes(), first.changes)
	s.sees("a", 0, 1)
	require.Same(t, first, s.api.runs())
	require.NotEqual(t, s.api.model.Changes(), first.changes)
	s.clock = s.clock.Add(freshFor)
	require.Equal(t, s.api.model.Changes(), s.api.runs().changes)
}

func TestGzip(t *testing.T) {
	s := newSite(t)
	s.sees("a", 0, 1)
	for header, want := range map[string]bool{
		"": false, "gzip": true, "deflate, GZIP;q=0.5, br": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzip ;q=1": true, "x-gzip": false, "*": false,
	} {
		require.Equal(t, want, takesGzip([]string{header}), header)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/runs", nil)
	require.NoError(t, err)
	req.Header.Set("Accept-Encoding", "gzip") // By hand, so that the client does not decompress it.
	resp, err := s.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	zip, err := gzip.NewReader(resp.Body)
	require.NoError(t, err)
	var all runview.Runs
	require.NoError(t, json.NewDecoder(zip).Decode(&all))
	require.Len(t, all.Runs, 1)
}

// listener reads a stream.
type listener struct {
	body  io.ReadCloser
	lines *bufio.Scanner
}

func (s *site) listen(t *testing.T) (l listener, status int) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/events", nil)
	require.NoError(t, err)
	resp, err := s.Client().Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	l = listener{resp.Body, bufio.NewScanner(resp.Body)}
	l.lines.Buffer(nil, 1<<20)
	return l, resp.StatusCode
}

// next returns the next event.
func (l listener) next(t *testing.T) (event, data string) {
	for _, part := range []struct {
		prefix string
		into   *string
	}{{"event: ", &event}, {"data: ", &data}, {"", new(string)}} {
		require.True(t, l.lines.Scan(), "%v", l.lines.Err())
		text, ok := strings.CutPrefix(l.lines.Text(), part.prefix)
		require.True(t, ok, l.lines.Text())
		*part.into = text
	}
	return event, data
}

func TestEvents(t *testing.T) {
	s := newSite(t)
	l, status := s.listen(t)
	require.Equal(t, 200, status)
	for _, want := range []string{"runs", "pipelines", "health"} {
		event, data := l.next(t)
		require.Equal(t, want, event)
		if want != "runs" {
			require.JSONEq(t, `{"is":"`+want+`"}`, data)
		}
	}
	s.clock = s.clock.Add(freshFor)
	s.sees("a", 3, 5)
	for {
		event, data := l.next(t)
		if event != "runs" {
			continue
		}
		var all runview.Runs
		require.NoError(t, json.Unmarshal([]byte(data), &all))
		if len(all.Runs) == 1 {
			require.EqualValues(t, 5, all.Runs[0].FrontStep)
			break
		}
	}
}

// A stream outlives the server's read timeout, and ends with its context. One that has gone makes room for another.
func TestListenersAreFew(t *testing.T) {
	s := newSite(t)
	var all []listener
	for range maxListeners {
		l, status := s.listen(t)
		require.Equal(t, 200, status)
		all = append(all, l)
	}
	_, status := s.listen(t)
	require.Equal(t, 503, status)
	for _, l := range all { // Looks come every two seconds: this is after the read timeout.
		for range 4 {
			l.next(t)
		}
	}
	require.NoError(t, all[0].body.Close())
	require.Eventually(t, func() bool {
		_, status := s.listen(t)
		return status == 200
	}, time.Minute, 10*time.Millisecond)
}

// With the API the process has a model, and without it none.
func TestShutdownEndsTheLooking(t *testing.T) {
	require.Nil(t, runview.Current())
	one, other := New(nil, nil), New(nil, nil)
	require.NotNil(t, runview.Current())
	require.Same(t, one.model, other.model)
	one.Shutdown()
	one.Shutdown()
	require.NotNil(t, runview.Current())
	other.Shutdown()
	require.Nil(t, runview.Current())
}
