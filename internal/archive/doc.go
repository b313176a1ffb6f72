// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package archive reads what is kept of telemetry on disk, whoever wrote it, as one stream of records, and puts it to use: it finds
// the files, sees through their compression and framing, tells the layout of every line, filters, sorts, counts, writes and replays.
//
// Find gives the files, Open a Reader of one, Sort and Writer take its records, Replay sends them.
package archive // import "github.com/lenscol/lenscol/internal/archive"
