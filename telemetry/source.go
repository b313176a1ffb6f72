// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/telemetry"

import (
	"context"
	"sync/atomic"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Source is the telemetry of one service.
type Source struct {
	reader   *sdkmetric.ManualReader
	failures *failures
}

var current atomic.Pointer[Source]

// Current returns the telemetry of the service that was made last, nil where none has this package's factory. A reload
// makes another: whoever lives longer than a service asks each time.
func Current() *Source { return current.Load() }

// Collect reads all metrics into metrics, whose memory is used again. It fails with sdkmetric.ErrReaderShutdown once the
// service has ended, and where an asynchronous instrument fails; what the others gave is in metrics then.
func (s *Source) Collect(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	return s.reader.Collect(ctx, metrics)
}

// FailedSends returns what is known of failed sends, by exporter. An exporter whose sends have all succeeded is not there.
func (s *Source) FailedSends() map[Exporter]Failure {
	if s.failures == nil {
		return nil
	}
	return s.failures.all()
}
