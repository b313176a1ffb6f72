// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runview // import "github.com/lenscol/lenscol/internal/runview"

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/ranks"
)

// Traces adds a batch of which all goes on.
func (r *Report) Traces(td ptrace.Traces) {
	for i := range td.ResourceSpans().Len() {
		rs := td.ResourceSpans().At(i)
		items, errors := 0, 0
		for j := range rs.ScopeSpans().Len() {
			spans := rs.ScopeSpans().At(j).Spans()
			items += spans.Len()
			for k := range spans.Len() {
				span := spans.At(k)
				if span.Status().Code() == ptrace.StatusCodeError {
					errors++
				}
				if step, ok := StepOf(span); ok {
					r.Step(step)
				}
			}
		}
		r.addResource(rs.Resource(), items, errors)
	}
}

// Metrics adds a batch of which all goes on.
func (r *Report) Metrics(md pmetric.Metrics) {
	for i := range md.ResourceMetrics().Len() {
		rm := md.ResourceMetrics().At(i)
		r.addResource(rm.Resource(), ranks.PointCount(rm), 0)
	}
}

// Logs adds a batch of which all goes on.
func (r *Report) Logs(ld plog.Logs) {
	for i := range ld.ResourceLogs().Len() {
		rl := ld.ResourceLogs().At(i)
		items, errors := 0, 0
		for j := range rl.ScopeLogs().Len() {
			records := rl.ScopeLogs().At(j).LogRecords()
			items += records.Len()
			for k := range records.Len() {
				if records.At(k).SeverityNumber() >= plog.SeverityNumberError {
					errors++
				}
			}
		}
		r.addResource(rl.Resource(), items, errors)
	}
}

func (r *Report) addResource(resource pcommon.Resource, items, errors int) {
	source := SourceOf(resource.Attributes())
	r.add(&source, items, errors, "")
}
