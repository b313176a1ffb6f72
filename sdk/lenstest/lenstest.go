// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package lenstest is telemetry in memory, for tests of code that is instrumented with lens: what it would send, as plain
// values.
//
//	func TestStep(t *testing.T) {
//		tel := lenstest.New(t, lenstest.Options{})
//		train(t.Context(), 7)
//		span := tel.Span("train.step")
//		require.Equal(t, int64(7), span.Attributes["step"])
//	}
//
// Telemetry is set up as in production, by telemetry.Setup, with everything global that this makes: OpenTelemetry's
// providers and propagator, and the span groups. It is set back when the test ends. So tests that use New must not be parallel; New
// fails in those that are.
package lenstest // import "github.com/lenscol/lenscol/sdk/lenstest"

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/rank"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

// Options say what telemetry a test runs under. The zero value is a process without a rank that exports everything.
type Options struct {
	// Groups are the span groups that are on, as in NEMO_LENS_SPAN_GROUPS; all without it.
	Groups string
	// Disabled is a process whose telemetry is off: nothing is recorded, no group is on.
	Disabled bool
	// Config changes the configuration before it is used.
	Config func(*telemetry.Config)
	// Setup are options of telemetry.Setup, WithRank for instance. A rank that the strategy does not pick records nothing, as in
	// production.
	Setup []telemetry.Option
}

// RunID is the id of the run under test, unless [Options.Config] sets another.
const RunID = "lenstest"

// Telemetry is the telemetry of a test.
type Telemetry struct {
	*telemetry.Handle
	*Memory
}

var inUse atomic.Pointer[string] // the name of the test

// New sets telemetry up for a test and back when it ends.
func New(tb testing.TB, o Options) *Telemetry {
	tb.Helper()
	tb.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_on") // Nothing is dropped; and Setenv panics in a parallel test.
	name := tb.Name()
	if !inUse.CompareAndSwap(nil, &name) {
		tb.Fatalf("lenstest: %s has the telemetry of this process, which is global: one test at a time", *inUse.Load())
	}
	tb.Cleanup(func() { inUse.Store(nil) })
	groups := strings.Join(lens.EnabledGroups(), ",")
	tb.Cleanup(func() { lens.SetGroups(groups) })
	lens.SetGroups("")

	cfg := telemetry.Default()
	cfg.Enabled, cfg.LogsEnabled = !o.Disabled, true
	cfg.ExportStrategy, cfg.RunID, cfg.SpanGroups = rank.NameAllRanks, RunID, "all"
	if o.Groups != "" {
		cfg.SpanGroups = o.Groups
	}
	if o.Config != nil {
		o.Config(&cfg)
	}
	memory := NewMemory(tb)
	handle, err := telemetry.Setup(tb.Context(), cfg, append(memory.Options(), o.Setup...)...)
	if err != nil {
		tb.Fatalf("lenstest: %v", err)
	}
	tb.Cleanup(func() { // The test's context is over by now.
		if err := handle.Shutdown(context.Background()); err != nil {
			tb.Errorf("lenstest: %v", err)
		}
	})
	return &Telemetry{Handle: handle, Memory: memory}
}
