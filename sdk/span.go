// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// ScopeName is the instrumentation scope of all spans that get no tracer of their own, as in NeMo Lens: no version.
const ScopeName = "nemo.lens"

// Start begins a span in the trace of ctx while g is on, and returns a context that holds it. While g is off it returns ctx
// and nil, whose methods do nothing: nothing is allocated, attributes included. How attributes are made is said
// at [Attr].
func (g SpanGroup) Start(ctx context.Context, name string, attrs ...Attr) (context.Context, *Span) {
	if g.Enabled() {
		return start(ctx, name, attrs)
	}
	return ctx, nil
}

// StartWith is [SpanGroup.Start] with options.
func (g SpanGroup) StartWith(ctx context.Context, name string, o SpanOptions, attrs ...Attr) (context.Context, *Span) {
	if !g.Enabled() {
		return ctx, nil
	}
	return startWith(ctx, name, o, attrs)
}

// Start begins a span that stands behind no group (NeMo Lens, span_cm).
func Start(ctx context.Context, name string, attrs ...Attr) (context.Context, *Span) {
	return StartWith(ctx, name, SpanOptions{}, attrs...)
}

// StartWith is [Start] with options.
func StartWith(ctx context.Context, name string, o SpanOptions, attrs ...Attr) (context.Context, *Span) {
	ctx, span := startWith(ctx, name, o, attrs)
	span.typed = true
	return ctx, span
}

// SpanOptions are what few spans need. The zero value changes nothing.
type SpanOptions struct {
	Kind      trace.SpanKind // internal, unless it is set
	Links     []trace.Link
	StartTime time.Time    // now, unless it is set
	Root      bool         // begins a trace of its own
	Tracer    trace.Tracer // that of the global provider and [ScopeName], unless it is set
}

// Span is a span of OpenTelemetry, or nil while its group is off: all methods may be called on nil. It may be used by several
// goroutines.
type Span struct {
	span  trace.Span
	typed bool // the status of an error says its type
}

// start is out of line, so that a start in a group that is off does not pay for its stack.
//
//go:noinline
func start(ctx context.Context, name string, attrs []Attr) (context.Context, *Span) {
	var span trace.Span
	if len(attrs) > fewAttrs {
		ctx, span = tracer().Start(ctx, name, trace.WithAttributes(safe(attrs)...))
	} else {
		o := startOptions.Get().(*fewOptions)
		ctx, span = tracer().Start(ctx, name, o.with(attrs)...)
		o.release(len(attrs))
	}
	return ctx, &Span{span: span}
}

// fewOptions are the options of a start with few attributes, used again: their three allocations are a sixth of a span's
// time. A tracer reads options through trace.NewSpanStartConfig alone, which copies the attributes.
type fewOptions struct {
	attrs   [fewAttrs]attribute.KeyValue
	options [fewAttrs + 1][]trace.SpanStartOption // by the number of attributes
}

const fewAttrs = 8

var startOptions = sync.Pool{New: func() any {
	o := &fewOptions{}
	for n := 1; n <= fewAttrs; n++ {
		o.options[n] = []trace.SpanStartOption{trace.WithAttributes(o.attrs[:n]...)}
	}
	return o
}}

func (o *fewOptions) with(attrs []Attr) []trace.SpanStartOption {
	return o.options[len(safeIn(o.attrs[:len(attrs)], attrs))]
}

// release keeps no text of the n attributes alive.
func (o *fewOptions) release(n int) {
	clear(o.attrs[:n])
	startOptions.Put(o)
}

func startWith(ctx context.Context, name string, o SpanOptions, attrs []Attr) (context.Context, *Span) {
	opts := o.append([]trace.SpanStartOption{trace.WithAttributes(safe(attrs)...)})
	if o.Tracer == nil {
		o.Tracer = tracer()
	}
	ctx, span := o.Tracer.Start(ctx, name, opts...)
	return ctx, &Span{span: span}
}

func (o SpanOptions) append(opts []trace.SpanStartOption) []trace.SpanStartOption {
	if o.Kind != trace.SpanKindUnspecified {
		opts = append(opts, trace.WithSpanKind(o.Kind))
	}
	if len(o.Links) > 0 {
		links := slices.Clone(o.Links)
		r := redaction.Load()
		for i := range links {
			links[i].Attributes = r.clean(slices.Clone(links[i].Attributes))
		}
		opts = append(opts, trace.WithLinks(links...))
	}
	if !o.StartTime.IsZero() {
		opts = append(opts, trace.WithTimestamp(o.StartTime))
	}
	if o.Root {
		opts = append(opts, trace.WithNewRoot())
	}
	return opts
}

// End ends the span. Ending it again does nothing.
func (s *Span) End(opts ...trace.SpanEndOption) {
	if s != nil {
		s.end(opts)
	}
}

// end is out of line, so that End is inlined: on nil it is a comparison.
//
//go:noinline
func (s *Span) end(opts []trace.SpanEndOption) { s.span.End(slices.Clone(opts)...) }

// Finish ends the span of a function that returns an error. It is to be deferred, directly and with the address of the named
// result: an error is recorded as by [Span.Fail], and so is a panic, which then goes on.
//
//	func save(ctx context.Context) (err error) {
//		ctx, span := checkpoint.Start(ctx, "checkpoint.save")
//		defer span.Finish(&err)
func (s *Span) Finish(err *error) {
	if s == nil {
		return
	}
	p := recover()
	if p != nil {
		s.fail(fmt.Sprintf("%T", p), fmt.Sprint(p))
	} else if err != nil {
		s.Fail(*err)
	}
	s.span.End() // not deferred: the SDK's End would record the panic again
	if p != nil {
		panic(p)
	}
}

// Fail records err as an exception event and sets the status to ERROR. Its description is the error's text, and
// "type: text" where no group stands before the span and in wrapped functions, as NeMo Lens has it. Nil does nothing.
func (s *Span) Fail(err error) {
	if s != nil && err != nil {
		s.fail(fmt.Sprintf("%T", err), fmt.Sprint(err)) // Sprint survives an Error method that panics, as of a nil pointer
	}
}

func (s *Span) fail(kind, message string) {
	if !s.span.IsRecording() {
		return
	}
	message = redaction.Load().text(message)
	s.exception(kind, message)
	if s.typed {
		message = kind + ": " + message
	}
	s.span.SetStatus(codes.Error, message)
}

// RecordError records err as an exception event and leaves the status. Nil does nothing.
func (s *Span) RecordError(err error) {
	if s != nil && err != nil && s.span.IsRecording() {
		s.exception(fmt.Sprintf("%T", err), redaction.Load().text(fmt.Sprint(err)))
	}
}

// maxStack is how many bytes of a stack an exception event holds.
const maxStack = 8 << 10

// exception writes the event that OpenTelemetry Python writes, escaped included: the text "False" always.
func (s *Span) exception(kind, message string) {
	stack := make([]byte, maxStack)
	stack = stack[:runtime.Stack(stack, false)]
	s.span.AddEvent(semconv.ExceptionEvent, trace.WithAttributes(
		attribute.String(semconv.ExceptionType, kind),
		attribute.String(semconv.ExceptionMessage, message),
		attribute.String(semconv.ExceptionStacktrace, string(stack)),
		attribute.String(semconv.ExceptionEscaped, "False"),
	))
}

// SetAttributes sets attributes.
func (s *Span) SetAttributes(attrs ...Attr) {
	if s != nil && s.span.IsRecording() {
		s.span.SetAttributes(safe(attrs)...)
	}
}

// AddEvent adds an event of now.
func (s *Span) AddEvent(name string, attrs ...Attr) {
	if s != nil && s.span.IsRecording() {
		s.span.AddEvent(name, trace.WithAttributes(safe(attrs)...))
	}
}

// AddLink adds a link to a span of elsewhere; one that is not valid does nothing.
func (s *Span) AddLink(to trace.SpanContext, attrs ...Attr) {
	if s != nil && to.IsValid() && s.span.IsRecording() {
		s.span.AddLink(trace.Link{SpanContext: to, Attributes: safe(attrs)})
	}
}

// SetStatus sets the status. Only an error has a description, which passes the redaction's patterns as the text of an error does.
func (s *Span) SetStatus(code codes.Code, description string) {
	if s != nil {
		s.span.SetStatus(code, redaction.Load().text(description))
	}
}

// SetName renames the span.
func (s *Span) SetName(name string) {
	if s != nil {
		s.span.SetName(name)
	}
}

// IsRecording reports whether anything that is set on the span is kept.
func (s *Span) IsRecording() bool { return s != nil && s.span.IsRecording() }

// SpanContext is the span's identity, which is not valid for nil.
func (s *Span) SpanContext() trace.SpanContext { return s.Otel().SpanContext() }

// Otel is the span as OpenTelemetry's API has it; for nil, one that does nothing. Attributes that are set on it do not pass
// the redaction.
func (s *Span) Otel() trace.Span {
	if s == nil {
		return trace.SpanFromContext(context.Background())
	}
	return s.span
}

// The tracer of the global provider: asking an SDK's provider for it takes a lock that all goroutines share.
var cachedTracer atomic.Pointer[providerTracer]

type providerTracer struct {
	provider trace.TracerProvider // a pointer, so that it can be compared
	tracer   trace.Tracer
}

func tracer() trace.Tracer {
	provider := otel.GetTracerProvider()
	if cached := cachedTracer.Load(); cached != nil && cached.provider == provider {
		return cached.tracer
	}
	t := provider.Tracer(ScopeName)
	if reflect.TypeOf(provider).Kind() == reflect.Pointer {
		cachedTracer.Store(&providerTracer{provider, t})
	}
	return t
}
