// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package jsonlreader reads the archive of the jsonl exporter, layout compact version 1, back into telemetry.
// The format is specified in docs/format.md.
//
// What is read equals what was written, up to grouping: consecutive records of one scope stand together again, and adjacent
// points of one metric stand in one metric, wherever the requests that brought them ended.
//
// A [Reader] holds one line, one batch and the scopes and resources that the file has defined, never the file. It takes
// uncompressed bytes; a compressed file is read through its decompressor.
package jsonlreader // import "github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
