// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package weaveexporter sends spans to W&B Weave so that Weave keeps every one of them, on the run that it belongs to.
//
// Package internal/shape makes of a batch the requests that Weave takes; this package brings them there, and keeps the books: each
// span is sent, rejected or dropped, and counted as one of them.
package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"
