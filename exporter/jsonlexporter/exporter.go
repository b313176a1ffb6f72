// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
)

// jsonlExporter archives one signal: a request becomes a chunk of lines, and the writer of its path commits it.
type jsonlExporter struct {
	cfg       *Config
	signal    string
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	now       func() time.Time

	writer     atomic.Pointer[writer] // nil before start and after shutdown
	shared     *sharedWriter
	faultNoted atomic.Int64 // the minute in which the last fault in the data was logged
}

func newJSONLExporter(set exporter.Settings, cfg *Config, signal string) (*jsonlExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &jsonlExporter{cfg: cfg, signal: signal, logger: set.Logger, telemetry: telemetry, now: time.Now}, nil
}

func (e *jsonlExporter) pushTraces(ctx context.Context, td ptrace.Traces) error {
	return e.push(ctx, func(c *chunk, l layout) {
		for _, rs := range td.ResourceSpans().All() {
			l.addSpans(c, rs)
		}
	})
}

func (e *jsonlExporter) pushMetrics(ctx context.Context, md pmetric.Metrics) error {
	return e.push(ctx, func(c *chunk, l layout) {
		for _, rm := range md.ResourceMetrics().All() {
			l.addMetrics(c, rm)
		}
	})
}

func (e *jsonlExporter) pushLogs(ctx context.Context, ld plog.Logs) error {
	return e.push(ctx, func(c *chunk, l layout) {
		for _, rl := range ld.ResourceLogs().All() {
			l.addLogs(c, rl)
		}
	})
}

// push returns when the request's lines are written. Every error of it is retryable: none lies in the data.
func (e *jsonlExporter) push(ctx context.Context, encode func(*chunk, layout)) error {
	w := e.writer.Load()
	if w == nil {
		return errClosed
	}
	c := newChunk()
	encode(c, w.layout)
	if c.faults.any() {
		e.noteFaults(ctx, c)
	}
	if c.items == 0 {
		c.release()
		return nil
	}
	return w.commit(ctx, c)
}

// noteFaults counts what the format cannot hold as it came, and logs the first of a minute.
func (e *jsonlExporter) noteFaults(ctx context.Context, c *chunk) {
	e.telemetry.ExporterJsonlTextRepaired.Add(ctx, int64(c.repaired))
	e.telemetry.ExporterJsonlValuesCut.Add(ctx, int64(c.cut))
	minute := e.now().Unix() / 60
	if e.faultNoted.Swap(minute) == minute {
		return
	}
	e.logger.Warn("values were not written as they came: text that is not UTF-8 is repaired with U+FFFD, lists and maps deeper than 64 are cut",
		zap.String("signal", e.signal), zap.Int("repaired", c.repaired), zap.Int("cut", c.cut),
		zap.String("first_key", strings.ToValidUTF8(c.faults.key, "\uFFFD")), zap.String("first_text", shortened(c.faults.text)))
}

func shortened(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func (e *jsonlExporter) start(_ context.Context, host component.Host) error {
	path, err := filepath.Abs(strings.ReplaceAll(e.cfg.Path, signalPlaceholder, e.signal))
	if err != nil {
		return fmt.Errorf("path %q: %w", e.cfg.Path, err)
	}
	if e.cfg.CreateDirectory {
		if err := os.MkdirAll(filepath.Dir(path), e.cfg.DirectoryMode.mode()); err != nil {
			return fmt.Errorf("create the folder of %s: %w", path, err)
		}
	}
	if e.shared, err = acquireWriter(e, e.writerSettings(path), host); err != nil {
		return err
	}
	e.writer.Store(e.shared.writer)
	return nil
}

func (e *jsonlExporter) shutdown(ctx context.Context) error {
	if e.writer.Swap(nil) == nil {
		return nil
	}
	err := e.shared.release(ctx, e)
	e.telemetry.Shutdown()
	return err
}

func (e *jsonlExporter) writerSettings(path string) writerSettings {
	return writerSettings{
		path:          path,
		sync:          e.cfg.Sync,
		syncInterval:  e.cfg.SyncInterval,
		flushInterval: e.cfg.FlushInterval,
		rotation:      e.cfg.Rotation,
		minFree:       int64(e.cfg.MinFreeBytes),
		fileMode:      e.cfg.FileMode,
		logger:        e.logger,
		now:           e.now,
		cutTorn:       func(n int64) { e.telemetry.ExporterJsonlTornBytes.Add(context.Background(), n) },
		replaced:      func() { e.telemetry.ExporterJsonlFilesReplaced.Add(context.Background(), 1) },
	}
}
