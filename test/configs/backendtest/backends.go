// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package backendtest // import "github.com/lenscol/lenscol/test/configs/backendtest"

import (
	"errors"
	"fmt"
	"net/http"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Honeycomb wants the key, a dataset for metrics, and in Classic for all.
func Honeycomb(key, dataset, metricsDataset string) Rules {
	return Rules{Encodings: []string{"", "gzip", "zstd"}, Accepts: func(signal string, header http.Header, _ any) error {
		if err := want(header, "x-honeycomb-team", key); err != nil {
			return err
		}
		if signal == "metrics" {
			return want(header, "x-honeycomb-dataset", metricsDataset)
		}
		return want(header, "x-honeycomb-dataset", dataset)
	}}
}

// GrafanaCloud wants the number of an instance and its token, by basic auth.
func GrafanaCloud(instance, token string) Rules {
	return Rules{Prefix: "/otlp", Encodings: []string{"", "gzip"}, Accepts: func(_ string, header http.Header, _ any) error {
		r := http.Request{Header: header}
		if user, password, _ := r.BasicAuth(); user != instance || password != token {
			return fmt.Errorf("basic auth of %q", user)
		}
		return nil
	}}
}

// Datadog wants the key, for traces the source that it gave a name, and metrics as deltas.
func Datadog(key, source string) Rules {
	return Rules{Encodings: []string{"", "gzip"}, Accepts: func(signal string, header http.Header, telemetry any) error {
		if err := want(header, "dd-api-key", key); err != nil {
			return err
		}
		if signal == "traces" {
			return want(header, "dd-otlp-source", source)
		}
		if md, ok := telemetry.(pmetric.Metrics); ok && cumulative(md) {
			return errors.New("metrics must be delta")
		}
		return nil
	}}
}

func cumulative(md pmetric.Metrics) bool {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityDelta {
					return true
				}
			}
		}
	}
	return false
}

// NewRelic wants the key.
func NewRelic(key string) Rules {
	return Rules{Encodings: []string{"", "gzip", "zstd"}, Accepts: func(_ string, header http.Header, _ any) error {
		return want(header, "api-key", key)
	}}
}
