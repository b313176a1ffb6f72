// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheustest starts a real Prometheus for tests, and asks it for what it has.
package prometheustest // import "github.com/lenscol/lenscol/test/prometheustest"

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// Prometheus is one on loopback, whose data end with the test.
type Prometheus struct {
	URL string

	t      testing.TB
	client http.Client
}

// Start starts one with that configuration file and flags beside those of its files and its address, and returns when it is ready. The
// program is the one that LENSCOL_PROMETHEUS_BIN names, else the one on the path; where there is none the test is skipped.
func Start(t testing.TB, config string, flags ...string) *Prometheus {
	t.Helper()
	program, err := exec.LookPath(cmp.Or(os.Getenv("LENSCOL_PROMETHEUS_BIN"), "prometheus"))
	if err != nil {
		t.Skip("needs Debian's prometheus: " + err.Error())
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer log.Close()
	address := "127.0.0.1:" + testbed.FreePort(t)
	cmd := exec.Command(program, append([]string{"--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=" + address}, flags...)...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = testbed.DieWithParent()
	require.NoError(t, cmd.Start())
	p := &Prometheus{URL: "http://" + address, t: t, client: http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // Only says that it has ended.
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("Prometheus's log ends:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	require.Eventually(t, func() bool {
		answer, err := p.client.Get(p.URL + "/-/ready")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "Prometheus is not ready")
	return p
}

// Get decodes the data of an answer of Prometheus's API.
func (p *Prometheus) Get(path string, query url.Values, data any) {
	p.t.Helper()
	answer, err := p.client.Get(p.URL + path + "?" + query.Encode())
	require.NoError(p.t, err)
	defer answer.Body.Close()
	body := struct {
		Status, Error string
		Data          any
	}{Data: data}
	require.NoError(p.t, json.NewDecoder(answer.Body).Decode(&body))
	require.Equal(p.t, "success", body.Status, "%s: %s", query, body.Error)
}

// Series is one of a query's result, with its value now.
type Series struct {
	Labels map[string]string
	Value  float64
}

// Query asks for an instant vector.
func (p *Prometheus) Query(query string) (series []Series) {
	p.t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any // time and value
		}
	}
	p.Get("/api/v1/query", url.Values{"query": {query}}, &data)
	for _, result := range data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(result.Value[1]), 64)
		require.NoError(p.t, err)
		series = append(series, Series{result.Metric, value})
	}
	return series
}

// Exemplar is one of a series.
type Exemplar struct {
	Series map[string]string // its labels
	Labels map[string]string // the exemplar's
	Value  float64
	Time   float64 // seconds since 1970
}

// Exemplars asks for all exemplars of the series that match.
func (p *Prometheus) Exemplars(query string) (exemplars []Exemplar) {
	p.t.Helper()
	var data []struct {
		SeriesLabels map[string]string
		Exemplars    []struct {
			Labels    map[string]string
			Value     string
			Timestamp float64
		}
	}
	p.Get("/api/v1/query_exemplars", url.Values{"query": {query}, "start": {"0"}, "end": {fmt.Sprint(time.Now().Add(time.Hour).Unix())}}, &data)
	for _, series := range data {
		for _, e := range series.Exemplars {
			value, err := strconv.ParseFloat(e.Value, 64)
			require.NoError(p.t, err)
			exemplars = append(exemplars, Exemplar{series.SeriesLabels, e.Labels, value, e.Timestamp})
		}
	}
	return exemplars
}
