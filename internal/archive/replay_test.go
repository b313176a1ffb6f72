// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

// sink keeps what a receiver took, and can refuse or hold a request.
type sink struct {
	mu       sync.Mutex
	records  []Record
	requests int
	before   func(request int) error // called with the lock not held
}

func (s *sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *sink) take(decode func(add func(jsonlreader.Record))) error {
	s.mu.Lock()
	s.requests++
	n, before := s.requests, s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(n); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	decode(func(rec jsonlreader.Record) { s.records = append(s.records, Record{Record: rec}) })
	return nil
}

func (s *sink) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	return s.take(func(add func(jsonlreader.Record)) { addTraces(td, add) })
}

func (s *sink) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	return s.take(func(add func(jsonlreader.Record)) { addMetrics(md, add) })
}

func (s *sink) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	return s.take(func(add func(jsonlreader.Record)) { addLogs(ld, add) })
}

func (s *sink) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return names(s.records)
}

// startReceiver starts the collector's own OTLP receiver and returns its endpoints.
func startReceiver(t *testing.T, s *sink) (grpc, http string) {
	t.Helper()
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		return l.Addr().String()
	}
	grpc, http = free(), free()
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"grpc": map[string]any{"endpoint": grpc}, "http": map[string]any{"endpoint": http},
	}}).Unmarshal(cfg))
	set := receivertest.NewNopSettings(factory.Type())
	traces, err := factory.CreateTraces(t.Context(), set, cfg, s)
	require.NoError(t, err)
	metrics, err := factory.CreateMetrics(t.Context(), set, cfg, s)
	require.NoError(t, err)
	logs, err := factory.CreateLogs(t.Context(), set, cfg, s)
	require.NoError(t, err)
	require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, metrics.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, errors.Join(traces.Shutdown(context.Background()), metrics.Shutdown(context.Background()), logs.Shutdown(context.Background())))
	})
	return "http://" + grpc, "http://" + http
}

// replayOf returns a replay of all files of a folder, and these. It is closed with the test.
func replayOf(t *testing.T, folder, endpoint, protocol string) (*Replay, []Input) {
	t.Helper()
	inputs, err := Find([]string{folder})
	require.NoError(t, err)
	to, err := ParseEndpoint(endpoint)
	require.NoError(t, err)
	sender, err := NewSender(to, protocol, map[string]string{"authorization": "secret"})
	require.NoError(t, err)
	progress, err := OpenProgress(inputs, to.Redacted(), "", "", false)
	require.NoError(t, err)
	return &Replay{
		Sender: sender, Progress: progress, RetryFor: time.Minute,
		OnProblem: func(_ Input, err error) { require.NoError(t, err) },
	}, inputs
}

func runReplay(t *testing.T, stop context.Context, folder, endpoint, protocol string) (Sent, error) {
	t.Helper()
	r, inputs := replayOf(t, folder, endpoint, protocol)
	sent, err := r.Run(stop, inputs)
	require.NoError(t, errors.Join(r.Sender.Close(), r.Progress.Close()))
	return sent, err
}

// manySpans is n lines, in several requests: their names are numbers from first on.
func manySpans(first, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(spanLine(fmt.Sprint(first+i), 1+first+i, i%8))
	}
	return b.String()
}

func numbers(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}

func putFile(t *testing.T, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestReplayOfEveryCaptureArrivesEqual(t *testing.T) {
	want := wires(t, captured(t, ""))
	slices.Sort(want)
	for _, protocol := range []string{"grpc", "http"} {
		t.Run(protocol, func(t *testing.T) {
			s := &sink{}
			grpc, http := startReceiver(t, s)
			folder := t.TempDir()
			putFile(t, folder, "all.jsonl.zst", zstded(t, write(t, jsonlexporter.LayoutCompact, captured(t, ""))))
			endpoint := map[string]string{"grpc": grpc, "http": http}[protocol]
			sent, err := runReplay(t, t.Context(), folder, endpoint, protocol)
			require.NoError(t, err)
			require.EqualValues(t, len(want), sent.Records)
			got := wires(t, s.records)
			slices.Sort(got)
			require.Equal(t, want, got)

			sent, err = runReplay(t, t.Context(), folder, endpoint, protocol)
			require.NoError(t, err)
			require.Equal(t, Sent{Before: int64(len(want))}, sent, "it goes on where it ended")
		})
	}
}

func TestStoppedReplayGoesOnAndSendsNothingTwice(t *testing.T) {
	const n = 4500
	for _, protocol := range []string{"grpc", "http"} {
		t.Run(protocol, func(t *testing.T) {
			s := &sink{}
			grpc, http := startReceiver(t, s)
			endpoint := map[string]string{"grpc": grpc, "http": http}[protocol]
			folder := t.TempDir()
			putFile(t, folder, "traces-20261129T162428.123456789Z.jsonl", []byte(manySpans(0, n/3)))
			putFile(t, folder, "traces.jsonl", []byte(manySpans(n/3, n-n/3)))
			for range 20 {
				stop, cancel := context.WithCancel(t.Context())
				count := 0
				s.mu.Lock()
				s.before = func(int) error {
					if count++; count == 2 {
						cancel() // While the request is in flight: it is finished.
					}
					return nil
				}
				s.mu.Unlock()
				sent, err := runReplay(t, stop, folder, endpoint, protocol)
				cancel()
				if err == nil {
					break
				}
				require.ErrorIs(t, err, ErrStopped)
				require.EqualValues(t, 2, sent.Requests)
			}
			require.Equal(t, numbers(n), s.names())
		})
	}
}

func TestKilledReplayRepeatsOneRequestAtMost(t *testing.T) {
	const n = 3000
	s := &sink{}
	_, http := startReceiver(t, s)
	folder := t.TempDir()
	putFile(t, folder, "traces.jsonl", []byte(manySpans(0, n)))
	// A kill at the worst moment: the receiver has taken the second request, and the progress does not say so yet.
	r, inputs := replayOf(t, folder, http, "http")
	r.Sender = &dyingSender{Sender: r.Sender, after: 2}
	_, err := r.Run(t.Context(), inputs)
	require.ErrorIs(t, err, errKilled)
	require.NoError(t, errors.Join(r.Sender.Close(), r.Progress.Close()))
	require.Len(t, s.names(), 2000)

	_, err = runReplay(t, t.Context(), folder, http, "http")
	require.NoError(t, err)
	require.Equal(t, append(numbers(2000), numbers(n)[1000:]...), s.names())
}

var errKilled = errors.New("killed")

type dyingSender struct {
	Sender
	after int
}

func (d *dyingSender) Send(ctx context.Context, b jsonlreader.Batch) (int64, string, error) {
	rejected, reason, err := d.Sender.Send(ctx, b)
	if d.after--; d.after == 0 {
		return 0, "", errKilled
	}
	return rejected, reason, err
}

func TestProgressFollowsFilesNotNames(t *testing.T) {
	s := &sink{}
	_, http := startReceiver(t, s)
	folder := t.TempDir()
	active := putFile(t, folder, "traces.jsonl", []byte(manySpans(0, 10)))
	run := func(endpoint string) Sent {
		t.Helper()
		sent, err := runReplay(t, t.Context(), folder, endpoint, "http")
		require.NoError(t, err)
		return sent
	}
	require.EqualValues(t, 10, run(http).Records)

	appendTo(t, active, manySpans(10, 5)+`{"type":"sp`)
	require.Equal(t, Sent{Records: 5, Requests: 1, Before: 10}, run(http), "what came since")

	appendTo(t, active, `an","name":"x","start_ns":99}`+"\n")
	require.Equal(t, Sent{Records: 1, Requests: 1, Before: 15}, run(http), "a line that was torn is whole now")

	require.NoError(t, os.Rename(active, filepath.Join(folder, "traces-20261129T162428.123456789Z.jsonl")))
	putFile(t, folder, "traces.jsonl", []byte(manySpans(100, 3)))
	require.Equal(t, Sent{Records: 3, Requests: 1, Before: 16}, run(http), "a rotated file is the same file")

	putFile(t, folder, "traces.jsonl", []byte(manySpans(200, 7)))
	require.Equal(t, Sent{Records: 7, Requests: 1, Before: 16}, run(http), "other content is another file")

	require.Equal(t, Sent{Records: 23, Requests: 1}, run(strings.Replace(http, "127.0.0.1", "localhost", 1)), "another endpoint has its own")
}

// TestProgressIsOfTheFileThatIsRead has the active file rotated, or removed, after the progress was opened: what was sent of it says nothing of
// the file that has its name now.
func TestProgressIsOfTheFileThatIsRead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(folder, active string) error
		first  []string // what the replay sends, and then the next one
		then   []string
	}{
		{"rotated", func(folder, active string) error {
			return os.Rename(active, filepath.Join(folder, "traces-20261130T000000.000000000Z.jsonl"))
		}, numbers(13)[10:], []string{"100", "101", "102"}},
		{"removed", func(_, active string) error { return os.Remove(active) }, []string{"100", "101", "102"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &sink{}
			_, http := startReceiver(t, s)
			folder := t.TempDir()
			active := putFile(t, folder, "traces.jsonl", []byte(manySpans(0, 10)))
			_, err := runReplay(t, t.Context(), folder, http, "http")
			require.NoError(t, err)

			appendTo(t, active, manySpans(10, 3))
			r, inputs := replayOf(t, folder, http, "http")
			require.NoError(t, tt.change(folder, active))
			putFile(t, folder, "traces.jsonl", []byte(manySpans(100, 3)))
			_, err = r.Run(t.Context(), inputs)
			require.NoError(t, errors.Join(err, r.Sender.Close(), r.Progress.Close()))
			require.Equal(t, append(numbers(10), tt.first...), s.names())

			_, err = runReplay(t, t.Context(), folder, http, "http")
			require.NoError(t, err)
			require.Equal(t, append(append(numbers(10), tt.first...), tt.then...), s.names())
		})
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, errors.Join(err, f.Close()))
}

func TestTwoReplaysDoNotShareTheirProgress(t *testing.T) {
	folder := t.TempDir()
	putFile(t, folder, "traces.jsonl", []byte(manySpans(0, 1)))
	r, _ := replayOf(t, folder, "http://127.0.0.1:4318", "")
	defer func() { require.NoError(t, errors.Join(r.Sender.Close(), r.Progress.Close())) }()
	inputs, err := Find([]string{folder})
	require.NoError(t, err)
	_, err = OpenProgress(inputs, "http://127.0.0.1:4318", "", "", false)
	require.ErrorContains(t, err, "another replay to http://127.0.0.1:4318 is running")

	other, err := OpenProgress(inputs, "http://127.0.0.1:4318", "--rank 0", "", false)
	require.NoError(t, err)
	require.NoError(t, other.Close())
}

// fakeClock passes time only where somebody waits.
type fakeClock struct {
	at    time.Time
	waits []time.Duration
}

func (c *fakeClock) use(r *Replay) {
	c.at = time.Unix(1000, 0)
	r.now = func() time.Time { return c.at }
	r.wait = func(ctx context.Context, d time.Duration) bool {
		c.waits = append(c.waits, d.Round(time.Millisecond))
		c.at = c.at.Add(d)
		return ctx.Err() == nil
	}
}

// memorySender keeps batches and answers with errors in turn.
type memorySender struct {
	errs    []error
	batches [][]string
	clock   *fakeClock
	at      []time.Duration // since the clock's begin
}

func (m *memorySender) Send(_ context.Context, b jsonlreader.Batch) (int64, string, error) {
	if len(m.errs) > 0 {
		err := m.errs[0]
		m.errs = m.errs[1:]
		if err != nil {
			return 0, "", err
		}
	}
	var recs []Record
	add := func(rec jsonlreader.Record) { recs = append(recs, Record{Record: rec}) }
	if b.Signal == pipeline.SignalTraces {
		addTraces(b.Traces, add)
	}
	m.batches = append(m.batches, names(recs))
	m.at = append(m.at, m.clock.at.Sub(time.Unix(1000, 0)).Round(time.Millisecond))
	return 0, "", nil
}

func (m *memorySender) Close() error { return nil }

func memoryReplay(t *testing.T, files map[string]string, errs ...error) (*Replay, []Input, *memorySender) {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		putFile(t, folder, name, []byte(content))
	}
	r, inputs := replayOf(t, folder, "http://127.0.0.1:4318", "http")
	t.Cleanup(func() { require.NoError(t, r.Progress.Close()) })
	clock := &fakeClock{}
	clock.use(r)
	m := &memorySender{errs: errs, clock: clock}
	r.Sender = m
	return r, inputs, m
}

func TestReplayTakesTheTimeThatTheRecordsTook(t *testing.T) {
	s := int(time.Second)
	files := map[string]string{
		"rank0/traces-20261129T162428.123456789Z.jsonl": spanLine("a", 100*s, 0) + spanLine("b", 100*s+s/10, 0),
		"rank0/traces.jsonl":                            spanLine("e", 110*s, 0),
		"rank1/traces.jsonl":                            spanLine("c", 102*s, 1) + spanLine("d", 101*s, 1) + spanLine("f", 120*s, 1),
	}
	for speed, want := range map[float64][]time.Duration{
		1: {0, 2 * time.Second, 10 * time.Second, 20 * time.Second},
		2: {0, time.Second, 5 * time.Second, 10 * time.Second},
	} {
		r, inputs, m := memoryReplay(t, files)
		r.Speed = speed
		sent, err := r.Run(t.Context(), inputs)
		require.NoError(t, err)
		require.EqualValues(t, 6, sent.Records)
		require.Equal(t, [][]string{{"a", "b"}, {"c", "d"}, {"e"}, {"f"}}, m.batches)
		for i := range want { // A batch goes when the next record is far, within the time that records share a request.
			require.LessOrEqual(t, m.at[i], want[i]+early)
			require.GreaterOrEqual(t, m.at[i], want[i]-early)
		}
	}
}

func TestReplayKeepsItsRate(t *testing.T) {
	r, inputs, m := memoryReplay(t, map[string]string{"traces.jsonl": manySpans(0, 100)})
	r.Rate = 20
	_, err := r.Run(t.Context(), inputs)
	require.NoError(t, err)
	require.Len(t, m.batches, 20)
	for i, at := range m.at {
		require.Equal(t, time.Duration(i)*250*time.Millisecond, at)
	}
}

func TestReplayTriesAgainAndWaitsAsAsked(t *testing.T) {
	again := func(after time.Duration) error { return &RetryError{Err: errors.New("busy"), After: after} }
	r, inputs, m := memoryReplay(t, map[string]string{"traces.jsonl": manySpans(0, 3)}, again(0), again(0), again(7*time.Second), nil)
	_, err := r.Run(t.Context(), inputs)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"0", "1", "2"}}, m.batches)
	waits := m.clock.waits
	require.Len(t, waits, 3)
	require.InDelta(t, 500, waits[0].Milliseconds(), 101)
	require.InDelta(t, 1000, waits[1].Milliseconds(), 201)
	require.Equal(t, 7*time.Second, waits[2])

	r, inputs, _ = memoryReplay(t, map[string]string{"traces.jsonl": manySpans(0, 3)}, slices.Repeat([]error{again(25 * time.Second)}, 9)...)
	_, err = r.Run(t.Context(), inputs)
	require.ErrorContains(t, err, "traces.jsonl, lines 1 to 3: tried for 1m0s: busy")
}

func TestReplayStopsAtWhatIsRefusedForGood(t *testing.T) {
	r, inputs, _ := memoryReplay(t, map[string]string{"traces.jsonl": manySpans(0, 1500)}, nil, errors.New("bad data"))
	sent, err := r.Run(t.Context(), inputs)
	require.ErrorContains(t, err, "traces.jsonl, lines 1001 to 1500: the receiver refuses them for good: bad data")
	require.EqualValues(t, 1000, sent.Records)
	require.EqualValues(t, 1000, r.Progress.positions[inputs[0].Path].Records, "what was acknowledged counts")
}

// TestReplayHalvesWhatIsTooLarge sends records of two ranks in turn: in a request each repeats its resource, which stands once in the file.
func TestReplayHalvesWhatIsTooLarge(t *testing.T) {
	const n = 900
	for protocol, bytes := range map[string]int{"grpc": 8 << 10, "http": 36 << 10} { // A receiver takes 4 MiB, or 20.
		t.Run(protocol, func(t *testing.T) {
			var b strings.Builder
			for id := 1; id <= 2; id++ {
				fmt.Fprintf(&b, `{"type":"resource","id":%d,"attributes":{"process.command_args":%q}}`+"\n", id, strings.Repeat("x", bytes))
				fmt.Fprintf(&b, `{"type":"scope","id":%d,"resource":%d}`+"\n", id, id)
			}
			for i := range n {
				fmt.Fprintf(&b, `{"type":"span","name":"%d","start_ns":%d,"scope":%d}`+"\n", i, 1+i, 1+i%2)
			}
			s := &sink{}
			grpc, http := startReceiver(t, s)
			folder := t.TempDir()
			putFile(t, folder, "traces.jsonl", []byte(b.String()))
			sent, err := runReplay(t, t.Context(), folder, map[string]string{"grpc": grpc, "http": http}[protocol], protocol)
			require.NoError(t, err)
			require.Equal(t, Sent{Records: n, Requests: 2}, sent)
			require.Equal(t, numbers(n), s.names())
		})
	}

	tooLarge := &SizeError{errors.New("too large")}
	r, inputs, m := memoryReplay(t, map[string]string{"traces.jsonl": manySpans(0, 5)}, tooLarge, tooLarge, nil, nil, errors.New("bad data"))
	_, err := r.Run(t.Context(), inputs)
	require.ErrorContains(t, err, "traces.jsonl, lines 4 to 5: the receiver refuses them for good: bad data")
	require.Equal(t, [][]string{{"0", "1"}, {"2"}}, m.batches)
	require.EqualValues(t, 3, r.Progress.positions[inputs[0].Path].Records, "what was acknowledged counts")

	r, inputs, _ = memoryReplay(t, map[string]string{"traces.jsonl": manySpans(0, 1)}, tooLarge)
	_, err = r.Run(t.Context(), inputs)
	require.ErrorContains(t, err, "the receiver refuses them for good: too large", "a record cannot be halved")
}

func TestHTTPSender(t *testing.T) {
	var answer func(w http.ResponseWriter)
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		answer(w)
	}))
	defer server.Close()
	to, err := ParseEndpoint(server.URL + "/otel/v1/traces")
	require.NoError(t, err)
	sender, err := NewSender(to, "", map[string]string{"wandb-api-key": "secret"})
	require.NoError(t, err)
	defer sender.Close()
	batch := func() jsonlreader.Batch {
		var b jsonlreader.Batcher
		b.Add(readBytes(t, "f", []byte(spanLine("a", 1, 0))).records[0].Record)
		return b.Batch()
	}
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		want   string
		again  bool
		after  time.Duration
	}{
		{"taken", func(http.ResponseWriter) {}, "", false, 0},
		{"busy", func(w http.ResponseWriter) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) }, "/v1/traces answers 429 Too Many Requests", true, 7 * time.Second},
		{"down", func(w http.ResponseWriter) { w.WriteHeader(503); _, _ = w.Write([]byte("no\n")) }, `/v1/traces answers 503 Service Unavailable: "no"`, true, 0},
		{"bad", func(w http.ResponseWriter) { w.WriteHeader(400) }, "/v1/traces answers 400 Bad Request", false, 0},
		{"not authorised", func(w http.ResponseWriter) { w.WriteHeader(401) }, "/v1/traces answers 401 Unauthorized", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer = tt.answer
			_, _, err := sender.Send(t.Context(), batch())
			require.Equal(t, "/otel/v1/traces", got.URL.Path)
			require.Equal(t, "secret", got.Header.Get("Wandb-Api-Key"))
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tt.want)
			var again *RetryError
			require.Equal(t, tt.again, errors.As(err, &again))
			if tt.again {
				require.Equal(t, tt.after, again.After)
			}
		})
	}
	answer = func(w http.ResponseWriter) { w.WriteHeader(413) }
	_, _, err = sender.Send(t.Context(), batch())
	var size *SizeError
	require.ErrorAs(t, err, &size)
	server.Close()
	_, _, err = sender.Send(t.Context(), batch())
	var again *RetryError
	require.ErrorAs(t, err, &again, "nobody listens: it may be back")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "soon": 0, "-1": 0,
		"Sun, 29 Nov 2026 16:00:20 GMT": 20 * time.Second, "Sun, 29 Nov 2026 15:00:00 GMT": 0,
	} {
		require.Equal(t, want, retryAfter(value, now), value)
	}
}

func TestGRPCCodesThatMayBeTriedAgain(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		var again *RetryError
		want := slices.Contains([]codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss}, code)
		require.Equal(t, want, errors.As(grpcError(status.Error(code, "x")), &again), code)
	}
	full, err := status.New(codes.ResourceExhausted, "x").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)})
	require.NoError(t, err)
	var again *RetryError
	require.ErrorAs(t, grpcError(full.Err()), &again)
	require.Equal(t, 3*time.Second, again.After)
	var size *SizeError
	require.ErrorAs(t, grpcError(status.Error(codes.ResourceExhausted, "x")), &size)
}

func TestParseEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:4318":            "http://127.0.0.1:4318",
		"http://127.0.0.1:4318/":           "http://127.0.0.1:4318",
		"https://x/otel/v1/traces":         "https://x/otel",
		"https://u:p@x.example/v1/metrics": "https://u:p@x.example",
	} {
		u, err := ParseEndpoint(in)
		require.NoError(t, err)
		require.Equal(t, want, u.String())
	}
	for _, in := range []string{"127.0.0.1:4317", "ftp://x", "", "http://"} {
		_, err := ParseEndpoint(in)
		require.ErrorContains(t, err, fmt.Sprintf("--endpoint: %q is not a URL", in))
	}
	_, err := NewSender(&url.URL{Scheme: "http", Host: "x"}, "udp", nil)
	require.EqualError(t, err, `--protocol: "udp" is not one of grpc, http`)
}
