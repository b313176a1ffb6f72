// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package rankgate is rankfilter's decision on the wire: a middleware of the otlp receiver that takes the resources of
// ranks that do not export out of a request before anything of it is decoded.
package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"
