// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/shape"
)

// The books of a batch: each of its spans is counted once, as sent, rejected or dropped. Counting does not end with the request's context.

// lossLogs say what is logged, and what would help, by the reason of a drop.
var lossLogs = map[string]string{
	dropUnauthorized: "Weave does not know the API key: check api_key, or the variable WANDB_API_KEY",
	dropForbidden:    "The API key may not write to the project, or there is no such entity: check entity and project",
	dropNotFound:     "No Weave takes spans at this address: check base_url or host, and that the project exists",
	dropRefused:      "Weave refuses spans for what they hold",
	dropTooLarge:     "Weave refuses a span for its size: check limits::span_bytes",
	dropRetries:      "Spans were given up after their last retry",
	dropShutdown:     "Spans could not be sent before the shutdown",
}

// shapedLogs say what is logged of what shaping did.
var shapedLogs = map[shape.Reason]string{
	shape.NoID:         "Spans without a trace id or a span id were dropped: Weave would show them as one",
	shape.RepeatedSpan: "Spans that a batch holds twice were dropped",
	shape.TooLarge:     "Spans too large even without their attributes were dropped",
	shape.DuplicateID:  "Two spans have one span id, and Weave keeps one call for an id: do the ranks seed their random numbers alike?",
}

// reasonLabel is the attribute of a counter by reason.
func reasonLabel(reason string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", reason)))
}

// reasonLabels are those of shaping, made once.
var reasonLabels = func() (labels [shape.Reasons]metric.MeasurementOption) {
	for r := range shape.Reasons {
		labels[r] = reasonLabel(r.String())
	}
	return labels
}()

// countShaped counts what shaping changed and dropped.
func (d *delivery) countShaped(shaped *shape.Result) {
	e := d.e
	for r := range shape.Reasons {
		changed, dropped := shaped.Rewritten[r], shaped.Dropped[r]
		if changed > 0 {
			e.telemetry.ExporterWeaveRewrittenValues.Add(context.Background(), int64(changed), reasonLabels[r])
		}
		if dropped > 0 {
			e.telemetry.ExporterWeaveDroppedSpans.Add(context.Background(), int64(dropped), reasonLabels[r])
			d.lost += dropped
			d.failure.text = r.String()
		}
		if changed+dropped == 0 {
			continue
		}
		switch text := shapedLogs[r]; {
		case r == shape.Unroutable:
			e.logger.Error("Spans without a W&B project are dropped: set entity and project, or have the resource say wandb.entity and wandb.project",
				zap.Strings("service.name", shaped.Unroutable), zap.Int("spans", dropped))
		case r == shape.RunID && len(shaped.ForeignRuns) > 0:
			e.logger.Warn("Spans are not linked to their run: its id is none that Weave takes, or of another project",
				zap.Strings("run_ids", shaped.ForeignRuns), zap.Int("count", changed))
		case text != "":
			e.logger.Warn(text, zap.Int("count", changed+dropped))
		}
	}
}

// countTaken counts a request that was taken, and what of it was rejected all the same.
func (d *delivery) countTaken(p *parcel, a answer) {
	e := d.e
	rejected := min(a.rejected, p.Spans)
	sent := p.Spans - rejected
	d.sent, d.lost = d.sent+sent, d.lost+rejected
	e.telemetry.ExporterWeaveSentSpans.Add(context.Background(), int64(sent))
	switch {
	case rejected > 0:
		d.failure = a
		e.telemetry.ExporterWeaveRejectedSpans.Add(context.Background(), int64(rejected))
		e.logger.Warn("Weave rejected spans of a request that it took",
			zap.Int("spans", rejected), zap.Stringer("project", p.Target), zap.String("message", a.text))
	case a.text != "":
		e.logger.Warn("Weave took a request, with a warning", zap.Stringer("project", p.Target), zap.String("message", a.text))
	}
}

// countDropped counts spans that are given up.
func (d *delivery) countDropped(p *parcel, a answer, reason string) {
	e := d.e
	d.lost += p.Spans
	e.telemetry.ExporterWeaveDroppedSpans.Add(context.Background(), int64(p.Spans), reasonLabel(reason))
	if log := e.logger.Check(zap.ErrorLevel, lossLogs[reason]); log != nil {
		fields := []zap.Field{
			zap.Int("spans", p.Spans), zap.Stringer("project", p.Target), zap.String("url", e.client.url(p.Endpoint)), zap.String("answer", a.text),
		}
		log.Write(append(fields, identify(p)...)...)
	}
}

// identify names the span of a request that holds one.
func identify(p *parcel) []zap.Field {
	td, err := p.Traces()
	if err != nil || td.SpanCount() != 1 {
		return nil
	}
	span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	return []zap.Field{zap.String("span", span.Name()), zap.Stringer("trace_id", span.TraceID()), zap.Stringer("span_id", span.SpanID())}
}
