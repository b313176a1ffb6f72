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
	"sync/atomic"
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lenscol/lenscol/sdk/telemetry/internal/repair"
)

// guard stands around each call of an exporter: the call ends with the Target's timeout, retries included, and when the telemetry
// is over, whatever context the SDK gave it; a panic becomes an error; and an error is short and holds no secret, which a
// server may have echoed. All texts that are exported are UTF-8: for one that is not, the exporters refuse the batch.
type guard struct {
	life    context.Context // is done when nothing shall be exported any more
	timeout time.Duration   // 0: that of the processor alone
	secrets *strings.Replacer
}

// newGuard makes a guard for an exporter that sends to t, which is empty where the exporter is the caller's.
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
	g := guard{life: life, secrets: strings.NewReplacer(pairs...)}
	if t.Protocol != "" {
		g.timeout = t.timeout()
	}
	return g
}

func (g guard) call(ctx context.Context, export func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if g.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, g.timeout)
		defer stop()
	}
	defer context.AfterFunc(g.life, cancel)()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the exporter panicked: %v", p)
		}
		err = g.clean(err)
	}()
	return export(ctx)
}

// maxError is how many bytes of an error are kept: exporters quote what the server answers, up to 4 MiB.
const maxError = 1 << 10

// clean is err without secrets, and at most maxError long; what stands behind an error that is changed cannot be asked for any
// more.
func (g guard) clean(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := g.secrets.Replace(text)
	if len(clean) > maxError {
		clean = strings.ToValidUTF8(clean[:maxError], "") + "…"
	}
	if clean == text {
		return err
	}
	return errors.New(clean)
}

// guardedSpans keeps the last error of the exports of a shutdown, which the SDK reports to its error handler alone.
type guardedSpans struct {
	sdktrace.SpanExporter
	guard    guard
	taken    atomic.Uint64 // spans that came here
	stopping atomic.Bool
	failure  atomic.Pointer[error]
}

func (e *guardedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.taken.Add(uint64(len(spans)))
	err := e.guard.call(ctx, func(ctx context.Context) error { return e.SpanExporter.ExportSpans(ctx, repair.Spans(spans)) })
	if err != nil && e.stopping.Load() {
		e.failure.Store(&err)
	}
	return err
}

func (e *guardedSpans) lastError() error {
	if err := e.failure.Load(); err != nil {
		return *err
	}
	return nil
}

type guardedMetrics struct {
	sdkmetric.Exporter
	guard guard
}

func (e guardedMetrics) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	repair.Metrics(metrics)
	return e.guard.call(ctx, func(ctx context.Context) error { return e.Exporter.Export(ctx, metrics) })
}

type guardedLogs struct {
	sdklog.Exporter
	guard guard
}

func (e guardedLogs) Export(ctx context.Context, records []sdklog.Record) error {
	return e.guard.call(ctx, func(ctx context.Context) error { return e.Exporter.Export(ctx, repair.Records(records)) })
}
