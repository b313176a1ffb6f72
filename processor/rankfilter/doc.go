// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package rankfilter lets the telemetry of some ranks of a training run go on and drops that of the others.
package rankfilter // import "github.com/lenscol/lenscol/processor/rankfilter"
