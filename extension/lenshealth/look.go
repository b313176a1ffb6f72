// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lenscol/lenscol/telemetry"
)

// Where the numbers come from, as /health says it.
const (
	fromInside = "inside" // package telemetry
	fromScrape = "scrape" // the collector's own Prometheus endpoint
	fromNone   = "none"
)

// Bounds of a scrape, so that whatever listens at the address cannot hold the extension up.
const (
	scrapeTimeout = time.Second
	maxScrape     = 16 << 20 // bytes
)

// looker reads the collector's own metrics: from inside where the build has package telemetry, else as Prometheus would.
type looker struct {
	inside  func() *telemetry.Source   // nil in a build without package telemetry
	metrics metricdata.ResourceMetrics // its memory is used again
	client  *http.Client
	scrape  string // URL of the collector's own Prometheus endpoint; empty where the config has none
}

func newLooker() *looker {
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true}
	return &looker{inside: telemetry.Current, client: &http.Client{Transport: transport, Timeout: scrapeTimeout}}
}

var errUnreadable = errors.New("this build has no telemetry factory of lenscol, and the config has no Prometheus reader " +
	"(service::telemetry::metrics::readers): its metrics cannot be read")

// look returns what the metrics say now, and the sends that failed, which only the way from inside tells.
func (l *looker) look(ctx context.Context, now time.Time) (from string, r *reading, failed map[telemetry.Exporter]telemetry.Failure, err error) {
	r = newReading(now)
	if source := l.inside(); source != nil {
		failed := source.FailedSends() // First: what succeeded in spite of it is in the metrics then.
		// Another error is of one instrument, and the others are read.
		if err := source.Collect(ctx, &l.metrics); errors.Is(err, sdkmetric.ErrReaderShutdown) {
			return fromNone, nil, nil, err
		}
		r.addMetrics(&l.metrics)
		return fromInside, r, failed, nil
	}
	if l.scrape == "" {
		return fromNone, nil, nil, errUnreadable
	}
	if err := l.scrapeInto(ctx, r); err != nil {
		return fromNone, nil, nil, fmt.Errorf("read the collector's own metrics at %s: %w", l.scrape, err)
	}
	return fromScrape, r, nil, nil
}

// addMetrics takes the sums and gauges of the SDK's metrics.
func (r *reading) addMetrics(metrics *metricdata.ResourceMetrics) {
	for _, scope := range metrics.ScopeMetrics {
		for _, metric := range scope.Metrics {
			switch data := metric.Data.(type) {
			case metricdata.Sum[int64]:
				r.addPoints(metric.Name, data.DataPoints)
			case metricdata.Gauge[int64]:
				r.addPoints(metric.Name, data.DataPoints)
			}
		}
	}
}

func (r *reading) addPoints(name string, points []metricdata.DataPoint[int64]) {
	for _, point := range points {
		r.add(name, func(key string) string {
			value, _ := point.Attributes.Value(attribute.Key(key))
			return value.String()
		}, point.Value)
	}
}

func (l *looker) scrapeInto(ctx context.Context, r *reading) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.scrape, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/plain; version=0.0.4")
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(resp.Body, maxScrape))
	if err != nil {
		return err
	}
	// A page without a metric of the collector's process is not the collector's page.
	if families["otelcol_process_uptime"] == nil && families["otelcol_process_uptime_total"] == nil {
		return errors.New("what answers is not a collector: there is no otelcol_process_uptime")
	}
	r.addFamilies(families)
	return nil
}

// addFamilies takes the counters and gauges of a Prometheus page, whose label names have _ where the SDK's have a dot.
func (r *reading) addFamilies(families map[string]*dto.MetricFamily) {
	for name, family := range families {
		for _, metric := range family.Metric {
			value := max(metric.GetCounter().GetValue(), metric.GetGauge().GetValue(), metric.GetUntyped().GetValue())
			if math.IsNaN(value) || math.Abs(value) > 1<<53 {
				continue
			}
			r.add(name, func(key string) string {
				key = strings.ReplaceAll(key, ".", "_")
				for _, label := range metric.Label {
					if label.GetName() == key {
						return label.GetValue()
					}
				}
				return ""
			}, int64(value))
		}
	}
}

// scrapeURL finds the collector's own Prometheus endpoint in its effective config. It is empty where there is none.
func scrapeURL(effective *confmap.Conf) string {
	readers, _ := effective.Get("service::telemetry::metrics::readers").([]any)
	for _, reader := range readers {
		conf := confmap.NewFromStringMap(asMap(reader))
		host, _ := conf.Get("pull::exporter::prometheus::host").(string)
		port := conf.Get("pull::exporter::prometheus::port")
		if host == "" || port == nil {
			continue
		}
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return "http://" + net.JoinHostPort(host, fmt.Sprint(port)) + "/metrics"
	}
	return ""
}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}
