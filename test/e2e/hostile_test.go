// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/oracle"
)

// TestHostileValues sends what a careless or malicious client could, each between two harmless spans: it is acknowledged
// and written as the format says, and so are its neighbours.
func TestHostileValues(t *testing.T) {
	hostile := map[string]*tracepb.Span{
		"map of depth 10,000":   {Name: "deep", Attributes: []*commonpb.KeyValue{{Key: "k", Value: nestedMaps(10_000)}}},
		"list of depth 10,000":  {Name: "deep", Attributes: []*commonpb.KeyValue{{Key: "k", Value: nestedLists(10_000)}}},
		"map of depth 64":       {Name: "deep", Attributes: []*commonpb.KeyValue{{Key: "k", Value: nestedMaps(64)}}},
		"map of depth 65":       {Name: "deep", Attributes: []*commonpb.KeyValue{{Key: "k", Value: nestedMaps(65)}}},
		"depth in an event":     {Name: "deep", Events: []*tracepb.Span_Event{{Attributes: []*commonpb.KeyValue{{Key: "k", Value: nestedMaps(10_000)}}}}},
		"depth in a link":       {Name: "deep", Links: []*tracepb.Span_Link{{Attributes: []*commonpb.KeyValue{{Key: "k", Value: nestedLists(10_000)}}}}},
		"20 MB of text":         {Name: "long", Attributes: []*commonpb.KeyValue{text("k", strings.Repeat("\u2028\"\\é\x00", 2_000_000))}},
		"20 MB name":            {Name: strings.Repeat("n", 20_000_000)},
		"NaN and infinities":    {Name: "nan", Attributes: []*commonpb.KeyValue{double("a", math.NaN()), double("b", math.Inf(1)), double("c", math.Inf(-1))}},
		"repeated keys":         {Name: "keys", Attributes: []*commonpb.KeyValue{integer("k", 1), text("k", "2"), text("", "3"), text("", "4")}},
		"10,000 times one key":  {Name: "keys", Attributes: slices.Repeat([]*commonpb.KeyValue{integer("k", 1)}, 10_000)},
		"keys of the format":    {Name: "@pairs", Attributes: []*commonpb.KeyValue{text("@pairs", "[]")}},
		"NUL in names":          {Name: "a\x00b", TraceState: "\x00", Attributes: []*commonpb.KeyValue{text("\x00", "\x00\x00"), text("\x00\x00", "")}},
		"line ends in names":    {Name: "a\nb\r\n{\"type\":\"span\"}\u0085\u2028\u2029", Attributes: []*commonpb.KeyValue{text("\n", "\n")}},
		"zero ids":              {Name: "ids", TraceId: make([]byte, 16), SpanId: make([]byte, 8), ParentSpanId: make([]byte, 8), Links: []*tracepb.Span_Link{{TraceId: make([]byte, 16)}}},
		"every enum unknown":    {Name: "enums", Kind: math.MaxInt32, Status: &tracepb.Status{Code: -1}},
		"times out of any year": {Name: "times", StartTimeUnixNano: math.MaxUint64, EndTimeUnixNano: 1},
		"surrogates as text":    {Name: `\ud800`, Attributes: []*commonpb.KeyValue{text(`\u0000`, `\`)}},
	}
	collector := testbed.Start(t, testbed.Options{Config: exporters{{Name: "jsonl"}}.yaml()})
	client := collector.Client()
	files := newArchive(t, filepath.Join(collector.Dir, "lens-data"))
	for name, span := range hostile {
		t.Run(name, func(t *testing.T) {
			message := traces(nil, &tracepb.Span{Name: "before"}, span, &tracepb.Span{Name: "after"})
			body, err := proto.Marshal(message)
			require.NoError(t, err)
			want := oracle.Request{Traces: message}.Expect()
			require.NoError(t, client.HTTP(t.Context(), "traces", testbed.Protobuf, body, false))
			require.NoError(t, oracle.SameInOrder(want, files.requireNext(t)["traces"]))
			collector.RequireRunning()
		})
	}
	t.Run("depth in resource, scope and body", func(t *testing.T) {
		deep := []*commonpb.KeyValue{{Key: "k", Value: nestedMaps(10_000)}}
		message := &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{
			Resource:  &resourcepb.Resource{Attributes: deep},
			ScopeLogs: []*logspb.ScopeLogs{{Scope: &commonpb.InstrumentationScope{Attributes: deep}, LogRecords: []*logspb.LogRecord{{}, {Body: nestedLists(10_000)}, {}}}},
		}}}
		body, err := proto.Marshal(message)
		require.NoError(t, err)
		require.NoError(t, client.GRPC(t.Context(), "logs", body, false))
		require.NoError(t, oracle.SameInOrder(oracle.Request{Logs: message}.Expect(), files.requireNext(t)["logs"]))
	})
	t.Run("depth in JSON", func(t *testing.T) {
		message := traces(nil, &tracepb.Span{Name: "before"}, &tracepb.Span{Attributes: []*commonpb.KeyValue{{Key: "k", Value: nestedLists(10_000)}}})
		body := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"before"},{"attributes":[{"key":"k","value":` +
			strings.Repeat(`{"arrayValue":{"values":[`, 10_000) + "{}" + strings.Repeat(`]}}`, 10_000) + `}]}]}]}]}`
		require.NoError(t, client.HTTP(t.Context(), "traces", testbed.JSON, []byte(body), true))
		require.NoError(t, oracle.SameInOrder(oracle.Request{Traces: message}.Expect(), files.requireNext(t)["traces"]))
	})
	t.Run("6,000 resources of 3 kB", func(t *testing.T) {
		message := &coltracepb.ExportTraceServiceRequest{}
		for i := range 6000 {
			resource := []*commonpb.KeyValue{integer("nv.dl.rank", int64(i)), text("padding", strings.Repeat("p", 3000))}
			message.ResourceSpans = append(message.ResourceSpans, traces(resource, &tracepb.Span{Name: "step"}).ResourceSpans...)
		}
		body, err := proto.Marshal(message)
		require.NoError(t, err)
		want := oracle.Request{Traces: message}.Expect()
		for range 2 {
			require.NoError(t, client.GRPC(t.Context(), "traces", body, true))
			require.NoError(t, oracle.SameInOrder(want, files.requireNext(t)["traces"]))
		}
	})
	collector.Stop()
}

// TestTextThatIsNotUTF8 is repaired with U+FFFD in every place that has text, and costs no neighbour its place.
func TestTextThatIsNotUTF8(t *testing.T) {
	collector := testbed.Start(t, testbed.Options{Config: exporters{{Name: "jsonl"}}.yaml()})
	client := collector.Client()
	request := func(bad string) *coltracepb.ExportTraceServiceRequest {
		message := traces([]*commonpb.KeyValue{text("nemo.run.id", bad), text("service.name", bad), text(bad, "v")}, &tracepb.Span{Name: "before"}, &tracepb.Span{
			Name: bad, TraceState: bad, Attributes: []*commonpb.KeyValue{text(bad, bad), text("good", "ü")},
			Events: []*tracepb.Span_Event{{Name: bad}}, Links: []*tracepb.Span_Link{{TraceState: bad}}, Status: &tracepb.Status{Message: bad},
		}, &tracepb.Span{Name: "after"})
		rs := message.ResourceSpans[0]
		rs.SchemaUrl, rs.ScopeSpans[0].SchemaUrl = bad, bad
		rs.ScopeSpans[0].Scope = &commonpb.InstrumentationScope{Name: bad, Version: bad}
		return message
	}
	const placeholder, bad = "a\x01\x02\x03b", "a\xff\xe2\x82b"
	body, err := proto.Marshal(request(placeholder))
	require.NoError(t, err)
	// No encoder that keeps to the protocol writes such text: it is put into the bytes.
	body = bytes.ReplaceAll(body, []byte(placeholder), []byte(bad))
	require.NoError(t, client.GRPC(t.Context(), "traces", body, false))
	got := newArchive(t, filepath.Join(collector.Dir, "lens-data")).requireNext(t)["traces"]
	require.NoError(t, oracle.SameInOrder(oracle.Request{Traces: request(bad)}.Expect(), got))
	collector.Stop()
}

// TestRequestsThatCannotBeRead are refused for good, write nothing, and stop nothing.
func TestRequestsThatCannotBeRead(t *testing.T) {
	collector := testbed.Start(t, testbed.Options{Config: exporters{{Name: "jsonl"}}.yaml()})
	client := collector.Client()
	files := newArchive(t, filepath.Join(collector.Dir, "lens-data"))
	for name, send := range map[string]func() error{
		"protobuf torn":       func() error { return client.HTTP(t.Context(), "traces", testbed.Protobuf, []byte{0x0a, 0xff}, false) },
		"protobuf torn, grpc": func() error { return client.GRPC(t.Context(), "traces", []byte{0x0a, 0xff}, false) },
		"JSON torn": func() error {
			return client.HTTP(t.Context(), "logs", testbed.JSON, []byte(`{"resourceLogs":[{`), true)
		},
		"JSON as protobuf": func() error { return client.HTTP(t.Context(), "metrics", testbed.Protobuf, []byte(`{}{}`), false) },
		"unknown type":     func() error { return client.HTTP(t.Context(), "traces", "text/plain", nil, false) },
		"span id of 9 bytes": func() error {
			body, err := proto.Marshal(traces(nil, &tracepb.Span{SpanId: make([]byte, 9)}))
			require.NoError(t, err)
			return client.GRPC(t.Context(), "traces", body, false)
		},
		"larger than the limit":       func() error { return client.HTTP(t.Context(), "traces", testbed.Protobuf, make([]byte, 65<<20), false) },
		"larger than the limit, gzip": func() error { return client.HTTP(t.Context(), "traces", testbed.Protobuf, make([]byte, 65<<20), true) },
	} {
		t.Run(name, func(t *testing.T) {
			err := send()
			require.Error(t, err)
			require.False(t, testbed.Retryable(err), err)
			for signal, items := range files.requireNext(t) {
				require.Empty(t, items, signal)
			}
			collector.RequireRunning()
		})
	}
	for i, message := range []*coltracepb.ExportTraceServiceRequest{
		{},
		{ResourceSpans: []*tracepb.ResourceSpans{{}}},
		{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{}}}}},
	} {
		t.Run(fmt.Sprintf("nothing in it %d", i), func(t *testing.T) {
			body, err := proto.Marshal(message)
			require.NoError(t, err)
			require.NoError(t, client.GRPC(t.Context(), "traces", body, false))
			require.Empty(t, files.requireNext(t)["traces"])
		})
	}
	message := traces(nil, &tracepb.Span{Name: "good"})
	body, err := proto.Marshal(message)
	require.NoError(t, err)
	require.NoError(t, client.GRPC(t.Context(), "traces", body, false))
	require.NoError(t, oracle.SameInOrder(oracle.Request{Traces: message}.Expect(), files.requireNext(t)["traces"]))
}

// traces is a request of spans of one resource and scope.
func traces(resource []*commonpb.KeyValue, spans ...*tracepb.Span) *coltracepb.ExportTraceServiceRequest {
	return &coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: resource}, ScopeSpans: []*tracepb.ScopeSpans{{Spans: spans}},
	}}}
}

func nestedMaps(depth int) *commonpb.AnyValue {
	v := &commonpb.AnyValue{}
	for range depth {
		v = &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: []*commonpb.KeyValue{{Key: "k", Value: v}}}}}
	}
	return v
}

func nestedLists(depth int) *commonpb.AnyValue {
	v := &commonpb.AnyValue{}
	for range depth {
		v = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{v}}}}
	}
	return v
}

func double(key string, v float64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}}}
}
