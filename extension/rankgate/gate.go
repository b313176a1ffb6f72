// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"google.golang.org/grpc/mem"

	"github.com/lenscol/lenscol/extension/rankgate/internal/metadata"
	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/runview"
)

// gate is the extension. What it does to a request is sifter's; how a request gets there is grpc.go's and http.go's.
type gate struct {
	decisions *cache
	reporter  *ranks.Reporter
	telemetry *metadata.TelemetryBuilder
	paths     map[string]ranks.Signal // of HTTP requests
	sifters   sync.Pool
	feeds     [ranks.Signals]runview.Feed
}

var (
	_ extension.Extension            = (*gate)(nil)
	_ extensionmiddleware.GRPCServer = (*gate)(nil)
	_ extensionmiddleware.HTTPServer = (*gate)(nil)
)

func newGate(set extension.Settings, cfg *Config) (*gate, error) {
	decider, err := ranks.NewDecider(&cfg.Ranks)
	if err != nil {
		return nil, err
	}
	tb, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	var counters ranks.Counters
	counters.Kept[ranks.Traces], counters.Dropped[ranks.Traces] = tb.ExtensionRankGateKeptSpans, tb.ExtensionRankGateDroppedSpans
	counters.Kept[ranks.Metrics], counters.Dropped[ranks.Metrics] = tb.ExtensionRankGateKeptPoints, tb.ExtensionRankGateDroppedPoints
	counters.Kept[ranks.Logs], counters.Dropped[ranks.Logs] = tb.ExtensionRankGateKeptRecords, tb.ExtensionRankGateDroppedRecords
	counters.Disagreements = tb.ExtensionRankGateDisagreements
	g := &gate{
		decisions: newCache(decider),
		reporter:  ranks.NewReporter(decider, counters, set.Logger),
		telemetry: tb,
		paths: map[string]ranks.Signal{
			cfg.TracesURLPath:  ranks.Traces,
			cfg.MetricsURLPath: ranks.Metrics,
			cfg.LogsURLPath:    ranks.Logs,
		},
	}
	for signal := range ranks.Signals {
		g.feeds[signal] = runview.NewFeed(signal)
	}
	g.sifters.New = func() any { return &sifter{decider: decider, decisions: g.decisions} }
	return g, nil
}

func (*gate) Start(context.Context, component.Host) error { return nil }

func (g *gate) Shutdown(context.Context) error {
	g.telemetry.Shutdown()
	return nil
}

// outcome is what a request would count. It is reported when the request was answered with success, and only then.
type outcome struct {
	signal ranks.Signal
	tally  *ranks.Tally
	report *runview.Report // nil where nobody looks at the runs
}

// sift hands the bytes of a request that go on to use, the request itself where that is all of it or where it cannot be
// read, and what the request would count. The bytes are valid until use returns.
func (g *gate) sift(signal ranks.Signal, data mem.BufferSlice, use func(request []byte, o outcome)) {
	s := g.sifters.Get().(*sifter)
	defer func() {
		if s.trim() {
			g.sifters.Put(s)
		}
	}()
	request := s.materialize(data)
	o := outcome{signal: signal, tally: g.reporter.Tally()}
	if runview.Current() != nil {
		o.report = runview.NewReport()
	}
	s.report = o.report
	kept, ok := s.sift(signal, request, o.tally)
	if !ok { // the receiver refuses it too: it counts nothing
		g.settle(context.Background(), o, false)
		o = outcome{signal: signal, tally: g.reporter.Tally()}
		kept = request
	}
	use(kept, o)
}

// settle counts the outcome of a request, or forgets it.
func (g *gate) settle(ctx context.Context, o outcome, accepted bool) {
	if accepted {
		g.reporter.Report(ctx, o.signal, o.tally)
	} else {
		g.reporter.Discard(o.tally)
	}
	if o.report == nil {
		return
	}
	if model := runview.Current(); model != nil && accepted {
		model.Apply(g.feeds[o.signal], o.report)
	}
	o.report.Release()
}
