// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
)

// sender is one client, which sends one request after the other and repeats each until it is acknowledged.
type sender struct {
	http  bool
	spans int           // in a request
	text  int           // bytes of text in a span
	pause time.Duration // between requests
	limit int           // requests; 0 is until the load is stopped
}

// mixed are small and large requests on both ways.
var mixed = []sender{
	{spans: 3, pause: 2 * time.Millisecond},
	{spans: 200, text: 100, pause: 10 * time.Millisecond},
	{spans: 20, http: true, pause: 5 * time.Millisecond},
	{spans: 1, text: 50_000, pause: 20 * time.Millisecond},
}

// load is a group of senders at work.
type load struct {
	group    errgroup.Group
	cancel   context.CancelFunc
	answered atomic.Int64 // requests that were acknowledged
	gone     atomic.Bool  // the collector is no more: senders give up what they have
}

// start sets senders to work.
func (c *chaos) start(collector *testbed.Collector, senders ...sender) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel}
	c.Cleanup(func() {
		cancel()
		_ = l.group.Wait()
	})
	for _, s := range senders {
		client := collector.Client()
		l.group.Go(func() error {
			for n := 0; ctx.Err() == nil && (s.limit == 0 || n < s.limit); n++ {
				if err := c.book.send(client, s, &l.gone); errors.Is(err, errGone) {
					return nil
				} else if err != nil {
					return err
				}
				l.answered.Add(1)
				time.Sleep(s.pause) // The rate.
			}
			return nil
		})
	}
	return l
}

// stop lets each sender bring its request to an end.
func (c *chaos) stop(l *load) {
	c.Helper()
	l.cancel()
	require.NoError(c, l.group.Wait())
}

// finish lets senders with a limit come to it.
func (c *chaos) finish(l *load) {
	c.Helper()
	require.NoError(c, l.group.Wait())
}

// answers waits until n more requests were acknowledged.
func (c *chaos) answers(l *load, n int64) {
	c.Helper()
	from := l.answered.Load()
	c.eventually(func() bool { return l.answered.Load() >= from+n }, func() string { return fmt.Sprintf("%d of %d requests were acknowledged", l.answered.Load()-from, n) })
}

// errGone ends a sender whose collector is no more: what it has is not acknowledged.
var errGone = errors.New("given up")

// send sends one request until it is acknowledged, as SDKs do. What is refused for good is an error.
func (b *book) send(client *testbed.Client, s sender, gone *atomic.Bool) error {
	first := b.open(s.spans)
	body, err := b.request(first, s)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; {
		if err = s.try(client, body); err == nil {
			b.ack(first, s.spans)
			return nil
		}
		if !testbed.Retryable(err) && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("refused for good: %w", err)
		}
		b.refuse(s.spans)
		if gone.Load() {
			return errGone
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not acknowledged within %s: %w", patience, err)
		}
		time.Sleep(20 * time.Millisecond) // The pause before a retry.
	}
}

// try sends once, with the 10 seconds that OTLP's exporters have.
func (s sender) try(client *testbed.Client, body []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if s.http {
		return client.HTTP(ctx, "traces", testbed.Protobuf, body, s.text > 0)
	}
	return client.GRPC(ctx, "traces", body, s.text > 0)
}

var manyX = strings.Repeat("x", 1<<20)

// request is a request of rank 0 with spans of these numbers.
func (b *book) request(first int, s sender) ([]byte, error) {
	spans := make([]*tracepb.Span, s.spans)
	now := uint64(time.Now().UnixNano())
	for i := range spans {
		id := b.id(first + i)
		spans[i] = &tracepb.Span{
			TraceId: append(id, id...), SpanId: id, Name: "megatron.train.iteration", StartTimeUnixNano: now, EndTimeUnixNano: now + 1000,
			Attributes: []*commonpb.KeyValue{text("text", manyX[:s.text])},
		}
	}
	return proto.Marshal(&coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
			text("service.name", "megatron"), text("nemo.run.id", "chaos"),
			{Key: "dl.rank", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: 0}}},
		}},
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "chaos"}, Spans: spans}},
	}}})
}

func text(key, v string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
}
