// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	lens "github.com/lenscol/lenscol/sdk"
)

// What the SDK would take wrong is taken out of the environment, and nothing else.
func TestMendEnvironment(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_TRACES_SAMPLER", " ", ""},
		{"OTEL_BSP_SCHEDULE_DELAY", "\t", ""},
		{"OTEL_SERVICE_NAME", " a ", " a "},
		{"NEMO_LENS_RUN_ID", " ", " "},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=1,b=%C3%A9, c=2 ,", "a=1,b=%C3%A9, c=2 ,"},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=1,b=%ff,c,d=\xff,\xff=1,=2,e=2", "a=1,e=2"},
		{"OTEL_RESOURCE_ATTRIBUTES", "\xff", ""},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=1, ,b=2,", "a=1,b=2"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "Bearer hunter2,a=1,b=hunter2%,=hunter2", "a=1"},
		{"OTEL_EXPORTER_OTLP_LOGS_HEADERS", "a=1%2Cx", "a=1%2Cx"},
	} {
		t.Run(c.name+" "+c.value, func(t *testing.T) {
			cleanEnv(t)
			t.Setenv(c.name, c.value)
			require.NoError(t, mendEnvironment())
			got, isSet := os.LookupEnv(c.name)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want != "", isSet)
		})
	}
	t.Run("not where nothing is exported", func(t *testing.T) {
		cleanEnv(t)
		t.Setenv("OTEL_TRACES_SAMPLER", " ")
		setUp(t, to(newSink(t), ProtocolGRPC), WithRank(0, 2))
		require.Equal(t, " ", os.Getenv("OTEL_TRACES_SAMPLER"))
	})
}

// Text that is no UTF-8, wherever it may stand, costs a character and not the batch.
func TestTextThatIsNoUTF8(t *testing.T) {
	const bad, good = "a\xffz", "a\uFFFDz"
	for _, protocol := range sending {
		t.Run(protocol, func(t *testing.T) {
			cleanEnv(t)
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "decoded=a%ffz,raw="+bad+","+bad+"=key,good=1")
			t.Setenv("OTEL_SERVICE_NAME", bad)
			s := newSink(t)
			cfg := to(s, protocol)
			cfg.ServiceName, cfg.User = bad, bad
			handled := handledErrors(t)
			h := setUp(t, cfg, WithResource(attribute.String("mine", bad)))

			kv := attribute.String(bad, bad)
			ctx, span := otel.Tracer(bad, trace.WithInstrumentationVersion(bad)).Start(t.Context(), bad,
				trace.WithAttributes(kv, attribute.StringSlice("list", []string{"good", bad})),
				trace.WithLinks(trace.Link{Attributes: []attribute.KeyValue{kv}}))
			span.AddEvent(bad, trace.WithAttributes(kv))
			span.SetStatus(codes.Error, bad)
			span.End()
			_, clean := lens.Start(ctx, "clean")
			clean.End()

			counter, err := h.MeterProvider().Meter(bad).Int64Counter("count", metric.WithDescription(bad), metric.WithUnit(bad))
			require.NoError(t, err)
			counter.Add(ctx, 1, metric.WithAttributes(kv))
			histogram, err := h.Meter().Float64Histogram("histogram")
			require.NoError(t, err)
			histogram.Record(ctx, 1, metric.WithAttributes(kv))

			var record log.Record
			record.SetBody(log.MapValue(log.String(bad, bad), log.Slice("list", log.StringValue(bad))))
			record.SetSeverityText(bad)
			record.SetEventName(bad)
			record.AddAttributes(log.String(bad, bad), log.String("good", "good"))
			h.LoggerProvider().Logger(bad, log.WithInstrumentationVersion(bad), log.WithInstrumentationAttributes(kv)).Emit(ctx, record)

			require.NoError(t, h.Shutdown(t.Context()))
			require.Empty(t, handled())
			if protocol == ProtocolJSON {
				require.Len(t, s.json, 3)
				return
			}
			got := s.span(t, good)
			require.Equal(t, "clean", s.span(t, "clean").Name)
			require.Equal(t, good, attributes(got.Attributes)[good])
			require.Equal(t, good, attributes(got.Events[0].Attributes)[good])
			require.Equal(t, []string{good, good}, []string{got.Events[0].Name, got.Status.Message})
			resource := resourceOf(s.spans[0].Resource)
			require.Equal(t, []any{good, good, good, "1", nil, nil}, []any{
				resource["mine"], resource["service.name"], resource["nemo.user.id"], resource["good"], resource["decoded"], resource["raw"]})
			require.Equal(t, []string{"count", "histogram"}, s.metricNames())
			logs := s.logs[0].ScopeLogs[0]
			require.Equal(t, []string{good, good}, []string{logs.Scope.Name, logs.Scope.Version})
			require.Equal(t, []string{good, good}, []string{logs.LogRecords[0].SeverityText, logs.LogRecords[0].EventName})
			require.Equal(t, map[string]any{good: good, "good": "good"}, attributes(logs.LogRecords[0].Attributes))
		})
	}
}

// Headers that end with a comma: the exporters of logs would print them all, as not readable.
func TestNoSecretOfHeadersInTheEnvironment(t *testing.T) {
	for _, protocol := range sending {
		t.Run(protocol, func(t *testing.T) {
			cleanEnv(t)
			s := newSink(t)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter2, ,")
			handled := handledErrors(t)
			cfg, err := FromEnv(Source{})
			require.NoError(t, err)
			target := to(s, protocol)
			target.Logs.Headers = cfg.Logs.Headers
			h := setUp(t, target)
			one(t.Context(), h, "one")
			require.NoError(t, h.Shutdown(t.Context()))
			require.NotContains(t, handled(), "hunter2")
		})
	}
}
