// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// sharedWriter is the one writer of a path for all signals of one exporter: a path without {signal} takes all three.
type sharedWriter struct {
	*writer
	key writerKey

	mu        sync.Mutex
	failing   error
	listeners map[*jsonlExporter]component.Host // the signals that write
}

type writerKey struct {
	cfg  *Config
	path string
}

var (
	writersMu sync.Mutex
	writers   = map[writerKey]*sharedWriter{}
)

// acquireWriter returns the writer of an exporter's path, started by the first signal that asks for it. The component of
// each is told of every change between failing and writing.
func acquireWriter(e *jsonlExporter, set writerSettings, host component.Host) (*sharedWriter, error) {
	writersMu.Lock()
	defer writersMu.Unlock()
	key := writerKey{e.cfg, set.path}
	s, ok := writers[key]
	if !ok {
		s = &sharedWriter{key: key, listeners: map[*jsonlExporter]component.Host{}}
		set.status = s.report
		var err error
		if s.writer, err = startWriter(set, e.cfg.newLayout()); err != nil {
			return nil, err
		}
		writers[key] = s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[e] = host
	if s.failing != nil {
		componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(s.failing))
	}
	return s, nil
}

func (s *sharedWriter) report(err error) {
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if err != nil {
		event = componentstatus.NewRecoverableErrorEvent(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = err
	for _, host := range s.listeners {
		componentstatus.ReportStatus(host, event)
	}
}

// release closes the writer when its last signal leaves.
func (s *sharedWriter) release(ctx context.Context, e *jsonlExporter) error {
	writersMu.Lock()
	defer writersMu.Unlock()
	s.mu.Lock()
	delete(s.listeners, e)
	left := len(s.listeners)
	s.mu.Unlock()
	if left > 0 {
		return nil
	}
	delete(writers, s.key)
	return s.close(ctx)
}
