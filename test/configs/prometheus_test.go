// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package configs

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// N ranks are N series, and rank, run and host are labels of each.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	port := testbed.FreePort(t)
	collector := start(t, "prometheus", testbed.Options{Env: []string{"LENSCOL_PROMETHEUS_PORT=" + port}})
	sendRanks(t, collector)
	eventually(t, func() bool { return len(scrape(t, port, "megatron_training_loss{")) == 4 }, "four series")
	series := scrape(t, port, "megatron_training_loss{")
	for _, rank := range []string{"0", "1", "2", "3"} {
		line := only(t, series, `rank="`+rank+`"`)
		require.Contains(t, line, `nemo_run_id="run-1"`)
		require.Contains(t, line, `host="node-a"`)
		require.Contains(t, line, `instance="run-1-rank`+rank+`"`)
		require.Contains(t, line, `job="megatron"`)
	}
	collector.Stop()
	require.Len(t, archived(t, collector.Dir+"/lens-data", "metrics", "metric"), 4)
}

func sendRanks(t *testing.T, collector *testbed.Collector) {
	t.Helper()
	var ranks []attributes
	for n := range int64(4) {
		r := rank(n, 4)
		r["host.name"] = "node-a"
		if n == 3 { // of a newer Lens
			r["nv.dl.rank"] = r["dl.rank"]
			delete(r, "dl.rank")
		}
		ranks = append(ranks, r)
	}
	send(t, collector, gauges("megatron.training.loss", ranks...))
}

func only(t *testing.T, lines []string, part string) (found string) {
	t.Helper()
	for _, line := range lines {
		if strings.Contains(line, part) {
			require.Empty(t, found, "several lines with %s", part)
			found = line
		}
	}
	require.NotEmpty(t, found, "no line with %s in %q", part, lines)
	return found
}

// scrape returns the lines of a Prometheus page on loopback that begin so.
func scrape(t *testing.T, port, prefix string) (lines []string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://127.0.0.1:" + port + "/metrics")
	if err != nil {
		return nil // It does not listen yet.
	}
	defer answer.Body.Close()
	for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
		if strings.HasPrefix(scanner.Text(), prefix) {
			lines = append(lines, scanner.Text())
		}
	}
	return lines
}

// remoteWrite takes Prometheus's remote write, version 1, and keeps the labels of each series.
type remoteWrite struct {
	mu     sync.Mutex
	series []map[string]string
	err    error
}

func (rw *remoteWrite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rw.mu.Lock()
	defer rw.mu.Unlock()
	if err := rw.take(r.Body); err != nil {
		rw.err = err
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (rw *remoteWrite) take(body io.Reader) error {
	compressed, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	message, err := snappy.Decode(nil, compressed)
	if err != nil {
		return err
	}
	var req prompb.WriteRequest
	if err := req.Unmarshal(message); err != nil {
		return err
	}
	for _, s := range req.Timeseries {
		labels := map[string]string{}
		for _, l := range s.Labels {
			labels[l.Name] = l.Value
		}
		rw.series = append(rw.series, labels)
	}
	return nil
}

// named are the series of a metric.
func (rw *remoteWrite) named(name string) (series []map[string]string) {
	rw.mu.Lock()
	defer rw.mu.Unlock()
	for _, labels := range rw.series {
		if labels["__name__"] == name {
			series = append(series, labels)
		}
	}
	return series
}

func TestPrometheusRemoteWrite(t *testing.T) {
	t.Parallel()
	backend := &remoteWrite{}
	server := httptest.NewServer(backend)
	defer server.Close()
	collector := start(t, "prometheus-remote-write", testbed.Options{Env: []string{"LENSCOL_REMOTE_WRITE=" + server.URL}})
	sendRanks(t, collector)
	eventually(t, func() bool { return len(backend.named("megatron_training_loss")) >= 4 }, "four series")
	collector.Stop()
	require.NoError(t, backend.err)
	seen := map[string]bool{}
	for _, labels := range backend.named("megatron_training_loss") {
		require.Equal(t, "run-1", labels["nemo_run_id"])
		require.Equal(t, "node-a", labels["host"])
		require.Equal(t, "megatron", labels["job"])
		require.Equal(t, "run-1-rank"+labels["rank"], labels["instance"])
		seen[labels["rank"]] = true
	}
	require.Len(t, seen, 4)
	require.Len(t, archived(t, collector.Dir+"/lens-data", "metrics", "metric"), 4)
}

// The machine, the exporters beside it and the jobs on one page; of the node exporter, network and storage alone.
func TestNodeMetrics(t *testing.T) {
	t.Parallel()
	page := func(text string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, text)
		}))
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "http://")
	}
	port := testbed.FreePort(t)
	collector := start(t, "node-metrics", testbed.Options{Env: []string{
		"LENSCOL_PROMETHEUS_PORT=" + port,
		"LENSCOL_DCGM=" + page("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 97\nDCGM_FI_DEV_GPU_UTIL{gpu=\"1\"} 12\n"),
		"LENSCOL_NODE_EXPORTER=" + page("# TYPE node_network_up gauge\nnode_network_up{device=\"ib0\"} 1\n# TYPE node_load1 gauge\nnode_load1 3\n"),
		"LENSCOL_VLLM=127.0.0.1:" + testbed.FreePort(t), // nobody
	}})
	sendRanks(t, collector)
	for name, n := range map[string]int{"DCGM_FI_DEV_GPU_UTIL{": 2, "node_network_up{": 1, "megatron_training_loss{": 4} {
		eventually(t, func() bool { return len(scrape(t, port, name)) == n }, "%d of %s", n, name)
	}
	for _, name := range []string{"system_cpu_time", "system_memory_usage", "system_network_io", "system_filesystem_usage", "system_cpu_load_average_1m"} {
		eventually(t, func() bool { return len(scrape(t, port, name)) > 0 }, "%s", name)
	}
	require.Empty(t, scrape(t, port, "node_load1"))
	only(t, scrape(t, port, "DCGM_FI_DEV_GPU_UTIL{"), `gpu="0"`)
	collector.Stop()
}
