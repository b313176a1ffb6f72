// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"os"
	"time"
)

// birthTime is when a file was last changed: the nearest to its creation that every system knows.
func birthTime(_ *os.File, info os.FileInfo) time.Time { return info.ModTime() }
