// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankfilter // import "github.com/lenscol/lenscol/processor/rankfilter"

import (
	"reflect"
	"unsafe"

	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// slice is a list of pdata: resources, scopes, spans or log records.
type slice[E any] interface {
	Len() int
	At(int) E
	AppendEmpty() E
}

// appendTo puts e at the end of a list of another batch.
//
// Where it can it shares: both lists then point to the same element, and nothing below it is visited or copied. Both
// batches are bound by the same rule, that of the one that came in: read-only where that is marked so. pdata has no
// function for this. A list is a struct that begins with a pointer to a slice of pointers to elements, and an element a
// struct that begins with such a pointer; canShare is true only where that holds for all the types used here.
func appendTo[S slice[E], E interface{ CopyTo(E) }](shares bool, list S, e E) {
	if !shares {
		e.CopyTo(list.AppendEmpty())
		return
	}
	pointers := *(**[]unsafe.Pointer)(unsafe.Pointer(&list))
	*pointers = append(*pointers, *(*unsafe.Pointer)(unsafe.Pointer(&e)))
}

// canShare reports whether this release of pdata lets elements be shared. It is asked when a filter is made: the gates of
// the command line are not set before.
func canShare() bool { return hasTheForm && !poolsElements() }

var hasTheForm = shareable[ptrace.ResourceSpansSlice, ptrace.ResourceSpans]() &&
	shareable[ptrace.SpanSlice, ptrace.Span]() &&
	shareable[pmetric.ResourceMetricsSlice, pmetric.ResourceMetrics]() &&
	shareable[plog.ResourceLogsSlice, plog.ResourceLogs]() &&
	shareable[plog.LogRecordSlice, plog.LogRecord]()

// shareable reports whether S and E look as appendTo takes them to.
func shareable[S slice[E], E any]() bool {
	s, e := reflect.TypeFor[S](), reflect.TypeFor[E]()
	if s.Kind() != reflect.Struct || e.Kind() != reflect.Struct || s.NumField() == 0 || e.NumField() == 0 {
		return false
	}
	list, element := s.Field(0).Type, e.Field(0).Type
	return element.Kind() == reflect.Pointer && list == reflect.PointerTo(reflect.SliceOf(element))
}

// poolsElements reports whether pdata takes the elements of a batch back when the batch is done, which sharing does not
// survive. That is an experiment behind a gate, off by default; where the gate is unknown the answer is on.
func poolsElements() bool {
	pools := true
	featuregate.GlobalRegistry().VisitAll(func(g *featuregate.Gate) {
		if g.ID() == "pdata.useProtoPooling" {
			pools = g.IsEnabled()
		}
	})
	return pools
}
