// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
)

// jsonlExporter archives one signal: what each file takes of a request becomes a chunk of lines, and the file's writer
// commits it.
type jsonlExporter struct {
	cfg       *Config
	signal    string
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	counted   metric.MeasurementOption // the signal as an attribute
	now       func() time.Time

	pool       atomic.Pointer[pool] // nil before start and after shutdown
	only       *pooled              // the writer of a path that does not depend on what is written
	faultNoted atomic.Int64         // the minute in which the last fault in the data was logged
}

func newJSONLExporter(set exporter.Settings, cfg *Config, signal string) (*jsonlExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &jsonlExporter{
		cfg: cfg, signal: signal, logger: set.Logger, telemetry: telemetry, now: time.Now,
		counted: metric.WithAttributeSet(attribute.NewSet(attribute.String("signal", signal))),
	}, nil
}

func (e *jsonlExporter) start(_ context.Context, host component.Host) error {
	p, err := acquirePool(e, host)
	if err != nil {
		return err
	}
	if !p.template.partitioned() {
		// Opened here, so that a path that cannot be written ends the start, and held until the end.
		var r rendered
		p.template.render(&r, e.signal, pcommon.NewMap(), e.now())
		if e.only, err = p.acquire(context.Background(), string(r.path), true); err != nil {
			return errors.Join(err, p.release(context.Background(), e))
		}
	}
	e.pool.Store(p)
	return nil
}

func (e *jsonlExporter) shutdown(ctx context.Context) error {
	p := e.pool.Swap(nil)
	if p == nil {
		return nil
	}
	err := p.release(ctx, e)
	e.telemetry.Shutdown()
	return err
}

// request is one request's telemetry, resource by resource, whatever its signal.
type request struct {
	resources int
	attrs     func(i int) pcommon.Map
	add       func(l layout, c *chunk, i int)
	failed    func(err error, resources []int) error // an error that carries these resources alone, to be sent again
}

func (e *jsonlExporter) pushTraces(ctx context.Context, td ptrace.Traces) error {
	all := td.ResourceSpans()
	return e.push(ctx, request{
		resources: all.Len(),
		attrs:     func(i int) pcommon.Map { return all.At(i).Resource().Attributes() },
		add:       func(l layout, c *chunk, i int) { l.addSpans(c, all.At(i)) },
		failed: func(err error, resources []int) error {
			rest := ptrace.NewTraces()
			for _, i := range resources {
				all.At(i).CopyTo(rest.ResourceSpans().AppendEmpty())
			}
			return consumererror.NewTraces(err, rest)
		},
	})
}

func (e *jsonlExporter) pushMetrics(ctx context.Context, md pmetric.Metrics) error {
	all := md.ResourceMetrics()
	return e.push(ctx, request{
		resources: all.Len(),
		attrs:     func(i int) pcommon.Map { return all.At(i).Resource().Attributes() },
		add:       func(l layout, c *chunk, i int) { l.addMetrics(c, all.At(i)) },
		failed: func(err error, resources []int) error {
			rest := pmetric.NewMetrics()
			for _, i := range resources {
				all.At(i).CopyTo(rest.ResourceMetrics().AppendEmpty())
			}
			return consumererror.NewMetrics(err, rest)
		},
	})
}

func (e *jsonlExporter) pushLogs(ctx context.Context, ld plog.Logs) error {
	all := ld.ResourceLogs()
	return e.push(ctx, request{
		resources: all.Len(),
		attrs:     func(i int) pcommon.Map { return all.At(i).Resource().Attributes() },
		add:       func(l layout, c *chunk, i int) { l.addLogs(c, all.At(i)) },
		failed: func(err error, resources []int) error {
			rest := plog.NewLogs()
			for _, i := range resources {
				all.At(i).CopyTo(rest.ResourceLogs().AppendEmpty())
			}
			return consumererror.NewLogs(err, rest)
		},
	})
}

// push returns when the request's lines are written. Every error of it is retryable: none lies in the data.
func (e *jsonlExporter) push(ctx context.Context, r request) error {
	p := e.pool.Load()
	if p == nil {
		return errClosed
	}
	if e.only == nil {
		return e.pushPartitioned(ctx, p, r)
	}
	c := e.newChunk(ctx, e.only.writer)
	for i := range r.resources {
		r.add(e.only.layout, c, i)
	}
	return e.finish(ctx, e.only.writer, e.begin(e.only.writer, c))
}

// part of a request: what one file takes of it.
type fileShare struct {
	path      string
	missing   int  // values that the resources did not say
	overflow  bool // the path of what is beyond max_partitions
	resources []int
	writer    *pooled
	chunk     *chunk
}

// pushPartitioned writes a request into the files of its resources, in waves: each takes the files that can be had at
// once, and only while it holds none does it wait for one, so requests never wait for each other in a circle.
func (e *jsonlExporter) pushPartitioned(ctx context.Context, p *pool, r request) error {
	shares := e.shares(p, r)
	var failed []int
	var errs []error
	for len(shares) > 0 {
		var later, wave []*fileShare
		for _, s := range shares {
			var err error
			switch s.writer, err = p.acquire(ctx, s.path, len(wave) == 0); {
			case errors.Is(err, errBusy):
				later = append(later, s)
				continue
			case err != nil:
				failed, errs = append(failed, s.resources...), append(errs, err)
				continue
			}
			c := e.newChunk(ctx, s.writer.writer)
			for _, i := range s.resources {
				r.add(s.writer.layout, c, i)
			}
			s.chunk = e.begin(s.writer.writer, c)
			wave = append(wave, s)
		}
		for _, s := range wave {
			if err := e.finish(ctx, s.writer.writer, s.chunk); err != nil {
				failed, errs = append(failed, s.resources...), append(errs, err)
			} else {
				e.countRoute(ctx, s)
			}
			p.giveBack(s.writer)
		}
		shares = later
	}
	if len(errs) == 0 {
		return nil
	}
	err := errors.Join(errs...)
	if len(failed) == r.resources {
		return err
	}
	slices.Sort(failed)
	return r.failed(err, failed)
}

// shares sorts the resources of a request by the files that take them.
func (e *jsonlExporter) shares(p *pool, r request) (shares []*fileShare) {
	byPath := map[string]*fileShare{}
	var path rendered
	for i := range r.resources {
		key, overflow := p.route(&path, e.signal, r.attrs(i))
		s := byPath[key]
		if s == nil {
			s = &fileShare{path: key, overflow: overflow}
			byPath[key] = s
			shares = append(shares, s)
		}
		s.missing += path.missing
		s.resources = append(s.resources, i)
	}
	return shares
}

// countRoute counts what of a share did not go where its resources say, once it is written.
func (e *jsonlExporter) countRoute(ctx context.Context, s *fileShare) {
	if s.missing > 0 {
		e.telemetry.ExporterJsonlPartitionsMissing.Add(ctx, int64(s.missing))
	}
	if s.overflow {
		e.telemetry.ExporterJsonlPartitionsOverflow.Add(ctx, int64(len(s.resources)))
	}
}

// newChunk returns a chunk for what a writer takes of a request. Of a large one each part is written before the next is encoded.
func (e *jsonlExporter) newChunk(ctx context.Context, w *writer) *chunk {
	c := newChunk()
	c.handOn = func() {
		part := c.takeParts()
		if c.err != nil {
			part.release() // The request is tried again, whole.
			return
		}
		c.err = e.finish(ctx, w, e.begin(w, part))
	}
	return c
}

// begin hands an encoded chunk to its writer. It returns nil where there is nothing to write.
func (e *jsonlExporter) begin(w *writer, c *chunk) *chunk {
	if c.err != nil {
		return c
	}
	if c.items == 0 {
		c.release()
		return nil
	}
	w.submit(c)
	return c
}

// finish waits for what begin handed over, and counts it once it is written.
func (e *jsonlExporter) finish(ctx context.Context, w *writer, c *chunk) error {
	if c == nil {
		return nil
	}
	if err := c.err; err != nil {
		c.release()
		return err
	}
	items, faults := c.items, c.faults // await gives the chunk back.
	if err := w.await(ctx, c); err != nil {
		return err
	}
	e.telemetry.ExporterJsonlWrittenRecords.Add(ctx, int64(items), e.counted)
	if faults.any() {
		e.noteFaults(ctx, faults)
	}
	return nil
}

// noteFaults counts what the format cannot hold as it came, and logs the first of a minute.
func (e *jsonlExporter) noteFaults(ctx context.Context, f faults) {
	e.telemetry.ExporterJsonlTextRepaired.Add(ctx, int64(f.repaired))
	e.telemetry.ExporterJsonlValuesCut.Add(ctx, int64(f.cut))
	minute := e.now().Unix() / 60
	if e.faultNoted.Swap(minute) == minute {
		return
	}
	e.logger.Warn("values were not written as they came: text that is not UTF-8 is repaired with U+FFFD, lists and maps deeper than 64 are cut",
		zap.String("signal", e.signal), zap.Int("repaired", f.repaired), zap.Int("cut", f.cut),
		zap.String("first_key", shortened(f.key)), zap.String("first_text", shortened(f.text)))
}

func shortened(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
