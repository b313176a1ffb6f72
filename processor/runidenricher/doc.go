// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package runidenricher makes every resource say which run, job, attempt, node and W&B target it belongs to.
package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"
