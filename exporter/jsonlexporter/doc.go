// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package jsonlexporter archives telemetry as JSON lines: one object per span, data point and log record.
package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"
