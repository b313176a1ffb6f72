// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/oracle"
)

// delivery is one request on one way to the collector.
type delivery struct {
	name   string
	signal string
	want   []oracle.Item
	send   func(context.Context, *testbed.Client) error
}

// deliveries are all captured requests, and requests that use every field of OTLP, on every way that each can take.
func deliveries(t *testing.T) []delivery {
	var all []delivery
	add := func(capture testbed.Capture, want []oracle.Item) {
		for _, way := range ways(capture) {
			all = append(all, delivery{capture.Name + " " + way.name, capture.Signal, want, way.send})
		}
	}
	for _, capture := range testbed.Captures(t) {
		request, err := oracle.From(capture.Signal, capture.JSON, capture.Body)
		require.NoError(t, err, capture.Name)
		want := request.Expect()
		require.NotEmpty(t, want, capture.Name)
		add(capture, want)
	}
	every := oracle.EveryField()
	for signal, message := range map[string]proto.Message{"traces": every[0].Traces, "metrics": every[1].Metrics, "logs": every[2].Logs} {
		body, err := proto.Marshal(message)
		require.NoError(t, err)
		request, err := oracle.FromProto(signal, body)
		require.NoError(t, err)
		add(testbed.Capture{Name: "every field", Signal: signal, Body: body}, request.Expect())
	}
	return all
}

type way struct {
	name string
	send func(context.Context, *testbed.Client) error
}

func ways(c testbed.Capture) []way {
	var all []way
	for _, compress := range []bool{false, true} {
		suffix := map[bool]string{false: "", true: " gzip"}[compress]
		overHTTP := func(contentType string) func(context.Context, *testbed.Client) error {
			return func(ctx context.Context, client *testbed.Client) error {
				return client.HTTP(ctx, c.Signal, contentType, c.Body, compress)
			}
		}
		if c.JSON {
			all = append(all, way{"http/json" + suffix, overHTTP(testbed.JSON)})
			continue
		}
		all = append(all, way{"http/protobuf" + suffix, overHTTP(testbed.Protobuf)},
			way{"grpc" + suffix, func(ctx context.Context, client *testbed.Client) error {
				return client.GRPC(ctx, c.Signal, c.Body, compress)
			}})
	}
	return all
}

// TestCaptures sends every request on every way, one at a time, and holds what is in the files once the request was
// acknowledged against it, field by field and in order: every item is there once, and nothing else.
func TestCaptures(t *testing.T) {
	all := deliveries(t)
	for _, mode := range []string{"reference", "inline"} {
		t.Run(mode, func(t *testing.T) {
			collector := testbed.Start(t, testbed.Options{Config: exporters{{"jsonl", []string{"resource: " + mode}}}.yaml()})
			client := collector.Client()
			files := newArchive(t, filepath.Join(collector.Dir, "lens-data"))
			files.inline = mode == "inline"
			items := 0
			for _, d := range all {
				require.NoError(t, d.send(t.Context(), client), d.name)
				got := files.requireNext(t)
				require.NoError(t, oracle.SameInOrder(d.want, got[d.signal]), d.name)
				delete(got, d.signal)
				for signal, other := range got {
					require.Empty(t, other, "%s: items of %s in the file of %s", d.name, d.signal, signal)
				}
				items += len(d.want)
			}
			collector.Stop()
			for _, rest := range files.requireNext(t) {
				require.Empty(t, rest, "lines written after the last request was acknowledged")
			}
			t.Logf("%d requests with %d items", len(all), items)
		})
	}
}

// TestCapturesConcurrent sends every request at once, with and without a queue: all items are there once, in any order.
func TestCapturesConcurrent(t *testing.T) {
	all := deliveries(t)
	for name, settings := range map[string][]string{
		"without queue": nil,
		"with queue":    {"sending_queue: {queue_size: 100000}"},
	} {
		t.Run(name, func(t *testing.T) {
			collector := testbed.Start(t, testbed.Options{Config: exporters{{"jsonl", settings}}.yaml()})
			client := collector.Client()
			want := map[string][]oracle.Item{}
			var senders errgroup.Group
			senders.SetLimit(16)
			for _, d := range all {
				want[d.signal] = append(want[d.signal], d.want...)
				senders.Go(func() error { return d.send(t.Context(), client) })
			}
			require.NoError(t, senders.Wait())
			client.Close()
			collector.Stop()
			got := newArchive(t, filepath.Join(collector.Dir, "lens-data")).requireNext(t)
			for signal, items := range want {
				require.NoError(t, oracle.SameInAnyOrder(items, got[signal]), signal)
			}
		})
	}
}
