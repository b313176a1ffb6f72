// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package kafka

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
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
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
)

const (
	ranks = 4
	items = 5 // of each signal in a step
	steps = 3000
)

var signals = []string{"traces", "metrics", "logs"}

// item is a span, a point or a record. Its span id, its value or its body says which of its signal it is: 1, 2, … of its rank.
type item struct{ rank, number int }

// load are the ranks of a job: each sends a step's traces, metrics and logs, one request after the other, and repeats what was not acknowledged.
type load struct {
	t         *testing.T
	collector *testbed.Collector
	stop      chan struct{}
	done      sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string]map[item]bool // by signal
	steps        [ranks]int               // that were acknowledged
	refused      [ranks]int               // attempts that were not
}

func startLoad(t *testing.T, collector *testbed.Collector) *load {
	l := &load{t: t, collector: collector, stop: make(chan struct{}), acknowledged: map[string]map[item]bool{}}
	for _, signal := range signals {
		l.acknowledged[signal] = map[item]bool{}
	}
	for rank := range ranks {
		l.done.Go(func() { l.run(rank) })
	}
	t.Cleanup(l.end)
	return l
}

// end lets every rank finish its step.
func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.done.Wait()
}

func (l *load) run(rank int) {
	client := l.collector.Client()
	defer client.Close()
	for step := range steps {
		numbers := make([]item, items)
		for i := range numbers {
			numbers[i] = item{rank, step*items + i + 1}
		}
		for i := range signals {
			signal := signals[(rank+i)%len(signals)] // The broker's end meets each of them.
			body, err := proto.Marshal(request(signal, numbers))
			if err != nil {
				panic(err) // The request is made below.
			}
			for !l.attempt(client, rank, signal, body) {
				select {
				case <-l.stop:
					return
				case <-time.After(20 * time.Millisecond): // The pause before a retry.
				}
			}
			l.mu.Lock()
			for _, n := range numbers {
				l.acknowledged[signal][n] = true
			}
			l.mu.Unlock()
		}
		l.mu.Lock()
		l.steps[rank]++
		l.mu.Unlock()
		select {
		case <-l.stop:
			return
		case <-time.After(10 * time.Millisecond): // A step takes its time.
		}
	}
}

func (l *load) attempt(client *testbed.Client, rank int, signal string, body []byte) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := client.GRPC(ctx, signal, body, false)
	if err != nil {
		l.mu.Lock()
		l.refused[rank]++
		l.mu.Unlock()
	}
	return err == nil
}

func (l *load) counts() (steps, refused [ranks]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.steps, l.refused
}

// proceeds waits until every rank has made n more steps.
func (l *load) proceeds(n int) {
	l.t.Helper()
	before, _ := l.counts()
	eventually(l.t, func() bool {
		now, _ := l.counts()
		for rank := range ranks {
			if now[rank] < before[rank]+n {
				return false
			}
		}
		return true
	}, "%d more steps of every rank", n)
}

// stalls waits until every rank had an attempt that was not acknowledged.
func (l *load) stalls() {
	l.t.Helper()
	_, before := l.counts()
	eventually(l.t, func() bool {
		_, now := l.counts()
		for rank := range ranks {
			if now[rank] == before[rank] {
				return false
			}
		}
		return true
	}, "a failed attempt of every rank")
}

// request has one item for each number, of the rank of the first.
func request(signal string, numbers []item) proto.Message {
	rank := numbers[0].rank
	resource := &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
		text("service.name", "megatron"), text("nemo.run.id", "run-1"), text("service.instance.id", fmt.Sprint("run-1-rank", rank)),
		{Key: "dl.rank", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(rank)}}},
	}}
	now := uint64(time.Now().UnixNano())
	switch signal {
	case "traces":
		out := &tracepb.ScopeSpans{}
		trace := make([]byte, 16)
		_, _ = rand.Read(trace) // It never fails.
		for _, n := range numbers {
			id, _ := hex.DecodeString(n.spanID())
			out.Spans = append(out.Spans, &tracepb.Span{TraceId: trace, SpanId: id, Name: "step", StartTimeUnixNano: now, EndTimeUnixNano: now + 1})
		}
		return &coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{Resource: resource, ScopeSpans: []*tracepb.ScopeSpans{out}}}}
	case "metrics":
		gauge := &metricspb.Gauge{}
		for _, n := range numbers {
			gauge.DataPoints = append(gauge.DataPoints, &metricspb.NumberDataPoint{TimeUnixNano: now, Value: &metricspb.NumberDataPoint_AsInt{AsInt: int64(n.number)}})
		}
		out := &metricspb.ScopeMetrics{Metrics: []*metricspb.Metric{{Name: "loss", Data: &metricspb.Metric_Gauge{Gauge: gauge}}}}
		return &colmetricspb.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: resource, ScopeMetrics: []*metricspb.ScopeMetrics{out}}}}
	default:
		out := &logspb.ScopeLogs{}
		for _, n := range numbers {
			out.LogRecords = append(out.LogRecords, &logspb.LogRecord{TimeUnixNano: now, Body: text("", strconv.Itoa(n.number)).Value})
		}
		return &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{Resource: resource, ScopeLogs: []*logspb.ScopeLogs{out}}}}
	}
}

func (n item) spanID() string { return fmt.Sprintf("%08x%08x", n.rank+1, n.number) }

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

// inMessage are the items of a message in a topic.
func inMessage(t *testing.T, signal string, message []byte) (got []item) {
	t.Helper()
	rankOf := func(resource *resourcepb.Resource) int {
		for _, kv := range resource.Attributes {
			if kv.Key == "dl.rank" {
				return int(kv.Value.GetIntValue())
			}
		}
		return -1
	}
	switch signal {
	case "traces":
		var m tracepb.TracesData
		require.NoError(t, proto.Unmarshal(message, &m))
		for _, rs := range m.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, span := range ss.Spans {
					got = append(got, fromSpanID(t, hex.EncodeToString(span.SpanId)))
				}
			}
		}
	case "metrics":
		var m metricspb.MetricsData
		require.NoError(t, proto.Unmarshal(message, &m))
		for _, rm := range m.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, metric := range sm.Metrics {
					for _, point := range metric.GetGauge().DataPoints {
						got = append(got, item{rankOf(rm.Resource), int(point.GetAsInt())})
					}
				}
			}
		}
	default:
		var m logspb.LogsData
		require.NoError(t, proto.Unmarshal(message, &m))
		for _, rl := range m.ResourceLogs {
			for _, sl := range rl.ScopeLogs {
				for _, record := range sl.LogRecords {
					number, err := strconv.Atoi(record.Body.GetStringValue())
					require.NoError(t, err)
					got = append(got, item{rankOf(rl.Resource), number})
				}
			}
		}
	}
	return got
}

func fromSpanID(t *testing.T, id string) item {
	t.Helper()
	var n item
	_, err := fmt.Sscanf(id, "%08x%08x", &n.rank, &n.number)
	require.NoError(t, err, id)
	n.rank--
	return n
}
