// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/oracle"
)

// sender is one client that sends one request after the other.
type sender struct {
	signal string
	http   bool
	gzip   bool
	items  int // in a request
	text   int // bytes of text in an item
}

// senders are small and large requests of all signals on all ways.
var senders = []sender{
	{signal: "traces", items: 3},
	{signal: "traces", items: 200, text: 300, gzip: true},
	{signal: "traces", http: true, items: 1, text: 200_000},
	{signal: "metrics", items: 50},
	{signal: "metrics", http: true, gzip: true, items: 5},
	{signal: "logs", http: true, items: 2},
	{signal: "logs", items: 200, text: 2000},
}

// load sends items that each carry a number of their own, and keeps book of them.
type load struct {
	mu       sync.Mutex
	sent     []origin // by number
	acked    []bool   // by number
	seen     []bool   // by number: it is in a file
	answered int      // requests
	watchers []watcher
}

// origin is where an item comes from; what its line must say follows from it and the number.
type origin struct {
	sender sender
	first  int // number of the first item of its request
}

type watcher struct {
	answered int
	reached  chan struct{}
}

// run sends as s says until ctx is done or one request fails with an error that keepOn does not accept. The request
// that is on its way when ctx is done is still brought to its end.
func (l *load) run(ctx context.Context, collector *testbed.Collector, s sender, keepOn func(error) bool) error {
	client := collector.Client()
	defer client.Close()
	for ctx.Err() == nil {
		signal, body, numbers, err := l.request(s)
		if err != nil {
			return err
		}
		if err := s.deliver(client, signal, body, keepOn); err != nil {
			return fmt.Errorf("%s: %w", signal, err)
		}
		l.answer(numbers)
	}
	return nil
}

// deliver repeats a request until it is acknowledged, as SDKs do.
func (s sender) deliver(client *testbed.Client, signal string, body []byte, keepOn func(error) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		var err error
		if s.http {
			err = client.HTTP(ctx, signal, testbed.Protobuf, body, s.gzip)
		} else {
			err = client.GRPC(ctx, signal, body, s.gzip)
		}
		if err == nil || !keepOn(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond): // The pause before a retry.
		}
	}
}

// request makes the next request of a sender; it is booked as sent.
func (l *load) request(s sender) (signal string, body []byte, numbers []int, err error) {
	l.mu.Lock()
	first := len(l.sent)
	for i := range s.items {
		numbers = append(numbers, first+i)
		l.sent = append(l.sent, origin{s, first})
	}
	l.acked = append(l.acked, make([]bool, s.items)...)
	l.seen = append(l.seen, make([]bool, s.items)...)
	l.mu.Unlock()
	_, message := numbered(s, first, numbers...)
	body, err = proto.Marshal(message)
	return s.signal, body, numbers, err
}

var manyX = strings.Repeat("x", 200_000)

// numbered is a request whose items have the attribute n, and one of a few resources and scopes, as first decides.
func numbered(s sender, first int, numbers ...int) (oracle.Request, proto.Message) {
	resource := &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
		text("service.name", "trainer"), integer("dl.rank", int64(first%4)), text("nemo.run.id", "run-1"),
	}}
	scope := &commonpb.InstrumentationScope{Name: s.signal, Version: fmt.Sprint(s.items)}
	padding := manyX[:s.text]
	attributes := func(n int) []*commonpb.KeyValue {
		return []*commonpb.KeyValue{integer("n", int64(n)), text("padding", padding)}
	}
	switch s.signal {
	case "traces":
		ss := &tracepb.ScopeSpans{Scope: scope}
		for _, n := range numbers {
			ss.Spans = append(ss.Spans, &tracepb.Span{Name: "step", StartTimeUnixNano: uint64(n), EndTimeUnixNano: uint64(n) + 5, Attributes: attributes(n)})
		}
		m := &coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{Resource: resource, ScopeSpans: []*tracepb.ScopeSpans{ss}}}}
		return oracle.Request{Traces: m}, m
	case "metrics":
		gauge := &metricspb.Gauge{}
		for _, n := range numbers {
			gauge.DataPoints = append(gauge.DataPoints, &metricspb.NumberDataPoint{TimeUnixNano: uint64(n), Attributes: attributes(n), Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: float64(n)}})
		}
		sm := &metricspb.ScopeMetrics{Scope: scope, Metrics: []*metricspb.Metric{{Name: "loss", Data: &metricspb.Metric_Gauge{Gauge: gauge}}}}
		m := &colmetricspb.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: resource, ScopeMetrics: []*metricspb.ScopeMetrics{sm}}}}
		return oracle.Request{Metrics: m}, m
	default:
		sl := &logspb.ScopeLogs{Scope: scope}
		for _, n := range numbers {
			sl.LogRecords = append(sl.LogRecords, &logspb.LogRecord{TimeUnixNano: uint64(n), Attributes: attributes(n)})
		}
		m := &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{Resource: resource, ScopeLogs: []*logspb.ScopeLogs{sl}}}}
		return oracle.Request{Logs: m}, m
	}
}

func text(key, v string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
}

func integer(key string, v int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v}}}
}

func (l *load) answer(numbers []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range numbers {
		l.acked[n] = true
	}
	l.answered++
	l.watchers = deleteReached(l.watchers, l.answered)
}

func deleteReached(watchers []watcher, answered int) (rest []watcher) {
	for _, w := range watchers {
		if answered < w.answered {
			rest = append(rest, w)
			continue
		}
		close(w.reached)
	}
	return rest
}

// after returns a channel that is closed when n more requests were acknowledged.
func (l *load) after(n int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := watcher{l.answered + n, make(chan struct{})}
	l.watchers = append(l.watchers, w)
	return w.reached
}

// start runs all senders. wait returns when all have ended.
func (l *load) start(ctx context.Context, collector *testbed.Collector, keepOn func(error) bool) (wait func() error) {
	var group errgroup.Group
	for _, s := range senders {
		group.Go(func() error { return l.run(ctx, collector, s, keepOn) })
	}
	return group.Wait
}

// requireGenuine holds items that were read against what was sent, each in full.
func (l *load) requireGenuine(t *testing.T, items map[string][]oracle.Item) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for signal, list := range items {
		for _, item := range list {
			attributes, _ := item.Line.Get("attributes")
			number, ok := attributes.Get("n")
			require.True(t, ok, "%s: a line that nobody sent: %s", signal, item.Line)
			var n int
			_, err := fmt.Sscan(number.Text, &n)
			require.NoError(t, err)
			require.Less(t, n, len(l.sent), "%s: a number that nobody sent", signal)
			request, _ := numbered(l.sent[n].sender, l.sent[n].first, n)
			require.NoError(t, oracle.Same(request.Expect()[0], item), "%s: item %d is not as it was sent", signal, n)
			l.seen[n] = true
		}
	}
}

// requireNothingLost demands that all that was acknowledged was read.
func (l *load) requireNothingLost(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	acked, lost := 0, []int(nil)
	for n, ok := range l.acked {
		if !ok {
			continue
		}
		acked++
		if !l.seen[n] {
			lost = append(lost, n)
		}
	}
	require.Empty(t, lost, "acknowledged and lost, of %d", acked)
	require.NotZero(t, acked)
	t.Logf("%d requests acknowledged, %d items, all there", l.answered, acked)
}
