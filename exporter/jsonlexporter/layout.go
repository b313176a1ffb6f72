// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// layout turns what one resource sent into whole lines at the end of a chunk, each part of them ended by endPart. One
// instance serves one file, and requests call it side by side.
type layout interface {
	addSpans(*chunk, ptrace.ResourceSpans)
	addMetrics(*chunk, pmetric.ResourceMetrics)
	addLogs(*chunk, plog.ResourceLogs)
}

// newLayout returns the layout that a config asks for, for one file.
func (cfg *Config) newLayout() layout {
	switch cfg.Layout {
	case LayoutConsole:
		return console{}
	case LayoutOTLPJSON:
		return otlpJSON{}
	default:
		return &compact{inline: cfg.Resource == ResourceInline, members: cfg.members()}
	}
}
