// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// guard stands around each call of an exporter: the call ends when the telemetry is over, whatever context the SDK gave it; a
// panic becomes an error; and an error holds no secret, which a server may have echoed.
type guard struct {
	life    context.Context // is done when nothing shall be exported any more
	secrets *strings.Replacer
}

// newGuard makes a guard for an exporter that sends to t.
func newGuard(life context.Context, t Target) guard {
	var secrets []string
	for _, value := range t.headers() {
		// A server that is given "Bearer x" may echo x alone.
		secrets = append(append(secrets, value), strings.Fields(value)...)
	}
	// Text of fewer bytes guards nothing, and stands in every message.
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < 4 })
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, Secret(secret).String())
	}
	return guard{life, strings.NewReplacer(pairs...)}
}

func (g guard) call(ctx context.Context, export func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.life, cancel)()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the exporter panicked: %v", p)
		}
		err = g.clean(err)
	}()
	return export(ctx)
}

// clean is err without secrets; what stands behind an error that has some cannot be asked for any more.
func (g guard) clean(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := g.secrets.Replace(text); clean != text {
		return errors.New(clean)
	}
	return err
}

type guardedSpans struct {
	sdktrace.SpanExporter
	guard guard
}

func (e guardedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return e.guard.call(ctx, func(ctx context.Context) error { return e.SpanExporter.ExportSpans(ctx, spans) })
}

type guardedMetrics struct {
	sdkmetric.Exporter
	guard guard
}

func (e guardedMetrics) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	return e.guard.call(ctx, func(ctx context.Context) error { return e.Exporter.Export(ctx, metrics) })
}

type guardedLogs struct {
	sdklog.Exporter
	guard guard
}

func (e guardedLogs) Export(ctx context.Context, records []sdklog.Record) error {
	return e.guard.call(ctx, func(ctx context.Context) error { return e.Exporter.Export(ctx, records) })
}
