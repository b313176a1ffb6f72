// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package lenshealth is the extension that says how the collector does: to probes, to scripts and to people.
//
// The way of the data: a look (look.go) reads the collector's own metrics and failed sends every two seconds, into a
// reading (reading.go); a stream (stream.go) for each component and signal learns from it what succeeded and what failed,
// and judges; report.go makes of the judgements and of the component status events (status.go) what /health says, and
// pipelines.go what /api/pipelines says. server.go has the routes, guard.go who may ask, listen.go where it listens.
package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"
