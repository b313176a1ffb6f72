// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package runview is what a training run does, as the collector sees it: for each run and rank when something came last,
// how much, which step the rank has done and how long it took.
//
// Whoever wants to know joins (join.go), and from then on there is a [Model] that those who see telemetry report to:
// run_id_enricher all that goes through it, rank_gate what it drops before that. A [Report] (report.go) says of one request
// whose it is (source.go), how many items it has and which steps were done (step.go). Model.Runs and Model.Run (look.go)
// give the answers of /api/runs (answer.go).
//
// A model is bounded whatever comes: see the constants in model.go.
package runview // import "github.com/lenscol/lenscol/internal/runview"
