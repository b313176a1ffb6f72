// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
)

// loss is a gauge of one process with those resource attributes.
func loss(t *testing.T, md pmetric.Metrics, at time.Time, value float64, raw attrs) {
	rm := md.ResourceMetrics().AppendEmpty()
	require.NoError(t, rm.Resource().Attributes().FromRaw(raw))
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("megatron.training.loss")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetDoubleValue(value)
	point.SetTimestamp(pcommon.NewTimestampFromTime(at))
}

// N ranks, their checkpoint workers, which send their trainer's instance id, and Gym servers, which all say that they are rank 0 of 1: as
// many series as processes, each with its own value. Without the processor, those that share an id share a series.
func TestEachRankIsAPrometheusSeries(t *testing.T) {
	const ranks = 8
	processes := func(t *testing.T) pmetric.Metrics {
		md, now := pmetric.NewMetrics(), time.Now()
		for rank := range ranks {
			trainer := attrs{"service.name": "megatron", "nemo.run.id": "r", "dl.rank": rank, "service.instance.id": fmt.Sprint("r-rank", rank), "process.pid": 100 + rank}
			loss(t, md, now, float64(rank), trainer)
			loss(t, md, now, float64(1000+rank), plus(trainer, attrs{"process.pid": 200 + rank}))
		}
		for server := range 3 {
			loss(t, md, now, float64(2000+server), attrs{"service.name": "nemo-gym", "nemo.run.id": "r", "dl.rank": 0, "service.instance.id": "g-rank0", "process.pid": 300 + server})
		}
		return md
	}
	for _, tt := range []struct {
		instanceID string
		want       int
	}{{"unique", 2*ranks + 3}, {"keep", ranks + 1}} {
		t.Run(tt.instanceID, func(t *testing.T) {
			endpoint := freePort(t)
			factory := prometheusexporter.NewFactory()
			exporterConfig := factory.CreateDefaultConfig()
			require.NoError(t, confmap.NewFromStringMap(map[string]any{"endpoint": endpoint, "metric_expiration": "3h"}).Unmarshal(exporterConfig))
			exporter, err := factory.CreateMetrics(t.Context(), exportertest.NewNopSettings(factory.Type()), exporterConfig)
			require.NoError(t, err)
			require.NoError(t, exporter.Start(t.Context(), componenttest.NewNopHost()))
			defer func() { require.NoError(t, exporter.Shutdown(t.Context())) }()

			cfg, err := config(t, only+"mode: gateway\ninstance_id: "+tt.instanceID, system(t, "n", nil))
			require.NoError(t, err)
			p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(NewFactory().Type()), cfg, exporter)
			require.NoError(t, err)
			require.NoError(t, p.ConsumeMetrics(t.Context(), processes(t)))

			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Get("http://" + endpoint + "/metrics")
			require.NoError(t, err)
			page, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			series := map[string]string{}
			for _, line := range regexp.MustCompile(`(?m)^megatron_training_loss\{(.*)\} (\S+)$`).FindAllStringSubmatch(string(page), -1) {
				require.NotContains(t, series, line[1])
				series[line[1]] = line[2]
			}
			require.Len(t, series, tt.want, "%s", page)
			values := map[string]bool{}
			for _, value := range series {
				values[value] = true
			}
			require.Len(t, values, tt.want, "each has the value of one process")
		})
	}
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
