// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/internal/redact"
	"github.com/lenscol/lenscol/internal/runview"
	"github.com/lenscol/lenscol/processor/runidenricher/internal/metadata"
	"github.com/lenscol/lenscol/sdk/resource"
)

// enricher is the processor of one signal. What it adds was found out once, at its making; what a resource has is seen in
// one walk over it.
type enricher struct {
	*state
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	fromLabel [froms][]metric.AddOption // made once: a list of options costs an allocation
	ruleLabel [][]metric.AddOption
	tallies   sync.Pool
	otherJob  limiter
}

// state is what the processors of all signals of one component share.
type state struct {
	*stamps
	redactor  *redact.Redactor // nil: nothing is redacted
	renamer   *renamer         // nil: names stay
	instances *instances       // nil: instance ids stay
	deletes   []string
	clamp     bool
	started   sync.Once
	stopped   func() // to be called once it is; set by started
}

// shared makes one state a config.
type shared struct {
	system resource.System
	once   sync.Once
	state  *state
	err    error
}

func (s *shared) of(cfg *Config) (*state, error) {
	s.once.Do(func() { s.state, s.err = newState(cfg, s.system) })
	return s.state, s.err
}

func newState(cfg *Config, system resource.System) (*state, error) {
	s := &state{stamps: newStamps(cfg, system), renamer: newRenamer(cfg.Names), deletes: cfg.Delete, clamp: cfg.Skew == skewClamp}
	if cfg.InstanceID == idUnique {
		s.instances = newInstances(maxInstances)
	}
	if cfg.Redact.HasValue() {
		var err error
		if s.redactor, err = redact.New(*cfg.Redact.Get()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func newEnricher(set processor.Settings, cfg *Config) (*enricher, error) {
	if cfg.shared == nil {
		cfg.shared = &shared{}
	}
	s, err := cfg.shared.of(cfg)
	if err != nil {
		return nil, err
	}
	tb, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	e := &enricher{state: s, logger: set.Logger, telemetry: tb}
	for i, text := range fromText {
		e.fromLabel[i] = label("from", text)
	}
	if s.redactor != nil {
		for _, rule := range s.redactor.Labels() {
			e.ruleLabel = append(e.ruleLabel, label("rule", rule))
		}
	}
	e.tallies.New = func() any {
		t := &tally{}
		if s.redactor != nil {
			t.redacted = s.redactor.NewCounts()
		}
		return t
	}
	return e, nil
}

func label(key, value string) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))}
}

func (e *enricher) start(context.Context, component.Host) error {
	e.started.Do(func() {
		e.log(e.logger)
		e.stopped = runview.SetCompleter(func(attrs pcommon.Map) { e.stamp(attrs, 0, &tally{}) })
	})
	return nil
}

func (e *enricher) shutdown(context.Context) error {
	if e.stopped != nil {
		e.stopped()
	}
	e.telemetry.Shutdown()
	return nil
}

func (e *enricher) traces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	t := e.tally()
	for i := range td.ResourceSpans().Len() {
		rs := td.ResourceSpans().At(i)
		e.resource(rs.Resource().Attributes(), td.ResourceSpans().Len()-i-1, t)
		if e.renamer != nil {
			e.renamer.spans(rs, &t.room)
		}
		if e.clamp {
			t.clamped += clampSpans(rs)
		}
		if e.redactor != nil {
			e.redactor.Spans(rs, t.redacted)
		}
	}
	e.report(ctx, t)
	return td, nil
}

func (e *enricher) metrics(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	t := e.tally()
	for i := range md.ResourceMetrics().Len() {
		rm := md.ResourceMetrics().At(i)
		e.resource(rm.Resource().Attributes(), md.ResourceMetrics().Len()-i-1, t)
		if e.renamer != nil {
			e.renamer.metrics(rm, &t.room)
		}
		if e.redactor != nil {
			e.redactor.Metrics(rm, t.redacted)
		}
	}
	e.report(ctx, t)
	return md, nil
}

func (e *enricher) logs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	t := e.tally()
	for i := range ld.ResourceLogs().Len() {
		rl := ld.ResourceLogs().At(i)
		e.resource(rl.Resource().Attributes(), ld.ResourceLogs().Len()-i-1, t)
		if e.renamer != nil {
			e.renamer.logs(rl, &t.room)
		}
		if e.redactor != nil {
			e.redactor.Logs(rl, t.redacted)
		}
	}
	e.report(ctx, t)
	return ld, nil
}

// resource completes a resource's attributes. Names come last but for what is deleted: everything above reads both
// generations. There are as many others to come in the batch.
func (e *enricher) resource(attrs pcommon.Map, others int, t *tally) {
	e.stamp(attrs, others, t)
	if e.instances != nil {
		e.instances.tellApart(attrs, t)
	}
	if e.renamer != nil {
		e.renamer.attributes(attrs, &t.room, others)
	}
	if len(e.deletes) > 0 {
		attrs.RemoveIf(func(key string, _ pcommon.Value) bool { return slices.Contains(e.deletes, key) })
	}
}
