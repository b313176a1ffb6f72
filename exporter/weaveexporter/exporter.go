// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/metadata"
	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/shape"
)

// weaveExporter shapes batches and delivers them. A batch is one call of pushTraces from its first try to its end, so that what becomes of
// each span is decided, and counted, in one place.
type weaveExporter struct {
	cfg       *Config
	set       exporter.Settings
	logger    *zap.Logger // one of each message a minute
	attempts  *zap.Logger // all messages
	telemetry *metadata.TelemetryBuilder
	shaper    *shape.Shaper
	client    *client

	acknowledged bool // what is pushed was acknowledged to its sender, who does not send it again
	persistent   bool // the queue keeps what was not sent over a restart
	queueSize    int64
	queueSizer   exporterhelper.RequestSizerType // zero: there is no queue

	throttle  throttle
	forbidden targets      // projects that the key may not write to
	lastTaken atomic.Int64 // when a request was last taken, in Unix nanoseconds

	now   func() time.Time
	after func(time.Duration) <-chan time.Time

	stopping  chan struct{}   // closed when the shutdown begins: what is begun then is not tried again
	drained   context.Context // done when the shutdown has no more time for requests
	stopDrain context.CancelFunc
	stopOnce  sync.Once
}

// drainTime bounds the requests of a shutdown where there is no timeout.
const drainTime = 30 * time.Second

func newWeaveExporter(set exporter.Settings, cfg *Config) (*weaveExporter, error) {
	shaper, err := shape.New(cfg.shapeOptions())
	if err != nil {
		return nil, err
	}
	client, err := newClient(cfg, set.BuildInfo)
	if err != nil {
		return nil, err
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	attempts := set.Logger
	set.Logger = set.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
	}))
	e := &weaveExporter{
		cfg: cfg, set: set, logger: set.Logger, attempts: attempts, telemetry: telemetry, shaper: shaper, client: client,
		now: time.Now, after: time.After,
		stopping: make(chan struct{}),
	}
	e.drained, e.stopDrain = context.WithCancel(context.Background())
	if queue := cfg.QueueConfig.Get(); queue != nil {
		e.acknowledged, e.persistent = !queue.WaitForResult, queue.StorageID != nil
		e.queueSize, e.queueSizer = queue.QueueSize, queue.Sizer
	}
	return e, telemetry.RegisterExporterWeaveRetryAfterCallback(func(_ context.Context, o metric.Float64Observer) error {
		o.Observe(e.throttle.left(e.now()).Seconds())
		return nil
	})
}

func (e *weaveExporter) start(ctx context.Context, host component.Host) error {
	if err := e.client.start(ctx, host.GetExtensions(), e.set.TelemetrySettings); err != nil {
		return err
	}
	if e.cfg.Probe {
		e.probe(ctx)
	}
	return nil
}

// stop ends all waiting: each batch, those in the queue included, gets one more try, within the timeout of a request.
func (e *weaveExporter) stop() {
	e.stopOnce.Do(func() {
		close(e.stopping)
		time.AfterFunc(cmp.Or(e.cfg.ClientConfig.Timeout, drainTime), e.stopDrain)
	})
}

func (e *weaveExporter) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}

// shutdown runs when no batch is left.
func (e *weaveExporter) shutdown(context.Context) error {
	e.stop()
	e.stopDrain()
	e.client.close()
	e.telemetry.Shutdown()
	return nil
}

// pushTraces takes a batch from the queue, or from its sender where there is none.
func (e *weaveExporter) pushTraces(ctx context.Context, td ptrace.Traces) error {
	return e.deliver(ctx, td, e.acknowledged)
}

// deliver returns when each span of the batch is taken, rejected or dropped, and counted as that. An error that is not permanent says that
// somebody else has the batch and will send it again: its sender, who was not acknowledged yet, or a persistent queue.
func (e *weaveExporter) deliver(ctx context.Context, td ptrace.Traces, acknowledged bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.drained, cancel)()
	shaped := e.shaper.Shape(td)
	defer shaped.Release() // run has ended then, and HTTP has copies.
	return newDelivery(e, &shaped, acknowledged).run(ctx)
}

// traces is what the pipeline sees: the helper's exporter, with what the helper does not do.
type traces struct {
	exporter.Traces
	e *weaveExporter
}

// ConsumeTraces delivers a batch that is larger than the whole queue while its sender waits. The helper would refuse it each time it comes, and
// a persistent queue that blocks would wait for ever.
func (t *traces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if t.e.exceedsQueue(td) {
		return t.e.deliver(ctx, td, false)
	}
	return t.Traces.ConsumeTraces(ctx, td)
}

// exceedsQueue tells whether td is larger than the whole queue, in the queue's measure.
func (e *weaveExporter) exceedsQueue(td ptrace.Traces) bool {
	switch e.queueSizer {
	case exporterhelper.RequestSizerTypeBytes:
		return int64(sizer.TracesSize(td)) > e.queueSize
	case exporterhelper.RequestSizerTypeItems:
		return int64(td.SpanCount()) > e.queueSize
	}
	return false
}

var sizer ptrace.ProtoMarshaler

// Shutdown ends all waiting before the queue is drained.
func (t *traces) Shutdown(ctx context.Context) error {
	t.e.stop()
	return t.Traces.Shutdown(ctx)
}
