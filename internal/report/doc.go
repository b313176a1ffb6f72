// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package report tells what a training run did, from the telemetry that is kept of it: how long it ran and where that time went, its
// steps by rank, who was slow, gaps, restarts, checkpoints, evaluations, errors and goodput.
//
// A Collector takes records in any order (collect.go), a span at a time: names.go says what a span is of. It keeps of each process the stretches of
// time that its spans cover (timeline.go), and quantile sketches of its steps (sketch.go). At the end the clocks of the nodes are brought together
// (clock.go, internal/clocks), lives of processes become attempts of the run (attempts.go), and each moment of each rank gets into one bucket (account.go). What
// comes out is a Summary (summary.go), which text.go prints and html.go draws.
//
// Durations are those of a rank's own clock. Clocks of several nodes meet in two places alone, the begin and the end of the wall time, and
// there they are corrected by what the ends of common steps tell.
package report // import "github.com/lenscol/lenscol/internal/report"
