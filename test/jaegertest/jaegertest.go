// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package jaegertest starts a real Jaeger for tests, and asks it for what it has.
package jaegertest // import "github.com/lenscol/lenscol/test/jaegertest"

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

const patience = time.Minute // for anything that Jaeger does

// Jaeger is one all-in-one on loopback, which keeps what it gets in memory.
type Jaeger struct {
	OTLP string // address that takes OTLP over gRPC, host:port
	HTTP string // address that takes OTLP over HTTP, host:port

	t     testing.TB
	query string // address of its API
	admin string // address that says whether it is ready
	log   string // file of what it writes
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts one that ends with the test. LENSCOL_JAEGER_BIN names its binary, whose path test/jaeger.sh prints.
func Start(t testing.TB) *Jaeger {
	t.Helper()
	j := New(t)
	j.Start()
	return j
}

// New prepares one without starting it: its addresses are known, and nobody listens there.
func New(t testing.TB) *Jaeger {
	t.Helper()
	address := func() string { return "127.0.0.1:" + testbed.FreePort(t) }
	j := &Jaeger{t: t, OTLP: address(), HTTP: address(), query: address(), admin: address(), log: filepath.Join(t.TempDir(), "jaeger.log")}
	t.Cleanup(func() {
		j.Stop()
		if t.Failed() {
			t.Log("Jaeger's log ends:\n" + j.tail())
		}
	})
	return j
}

// Start starts it, empty, again after it was stopped, and waits until it is ready.
func (j *Jaeger) Start() {
	j.t.Helper()
	require.Nil(j.t, j.cmd, "Jaeger runs already")
	binary := os.Getenv("LENSCOL_JAEGER_BIN")
	require.NotEmpty(j.t, binary, "LENSCOL_JAEGER_BIN names no Jaeger: run the make target, or set it to what test/jaeger.sh prints")
	log, err := os.OpenFile(j.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(j.t, err)
	defer log.Close()
	cmd := exec.Command(binary,
		"--collector.otlp.grpc.host-port="+j.OTLP, "--collector.otlp.http.host-port="+j.HTTP,
		"--query.http-server.host-port="+j.query, "--admin.http.host-port="+j.admin,
		"--query.grpc-server.host-port=127.0.0.1:0", "--collector.grpc-server.host-port=127.0.0.1:0", "--collector.http-server.host-port=127.0.0.1:0",
		"--collector.queue-size=1000000", // Of what comes while it is full, spans are lost that it has acknowledged.
	)
	cmd.Env = append(os.Environ(), "SPAN_STORAGE_TYPE=memory",
		"OTEL_TRACES_SAMPLER=always_off") // It would send its own spans to port 4317.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = testbed.DieWithParent()
	require.NoError(j.t, cmd.Start())
	ended := make(chan struct{})
	j.cmd, j.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for deadline := time.Now().Add(patience); !j.ready(); time.Sleep(20 * time.Millisecond) {
		require.True(j.t, time.Now().Before(deadline), "Jaeger is not ready")
	}
}

func (j *Jaeger) ready() bool {
	select {
	case <-j.ended:
		require.FailNow(j.t, "Jaeger ended")
	default:
	}
	code, _, err := get("http://" + j.admin + "/")
	return err == nil && code == http.StatusOK
}

// Stop ends it, with all that it has. It may be called twice.
func (j *Jaeger) Stop() {
	j.t.Helper()
	if j.cmd == nil {
		return
	}
	_ = j.cmd.Process.Kill() // Only says that it has ended.
	<-j.ended
	j.cmd = nil
}

func (j *Jaeger) tail() string {
	text, _ := os.ReadFile(j.log)
	return string(text[max(0, len(text)-8<<10):])
}

// Trace is a trace as Jaeger's API shows it.
type Trace struct {
	TraceID   string             `json:"traceID"`
	Spans     []Span             `json:"spans"`
	Processes map[string]Process `json:"processes"` // by Span.ProcessID
}

// Span is a span of one. Numbers of tags are json.Number.
type Span struct {
	TraceID       string      `json:"traceID"`
	SpanID        string      `json:"spanID"`
	Flags         uint32      `json:"flags"`
	OperationName string      `json:"operationName"`
	References    []Reference `json:"references"`
	StartTime     int64       `json:"startTime"` // microseconds since 1970
	Duration      int64       `json:"duration"`  // microseconds
	Tags          []Tag       `json:"tags"`
	Logs          []Log       `json:"logs"`
	ProcessID     string      `json:"processID"`
	Warnings      []string    `json:"warnings"`
}

// Reference is a parent (CHILD_OF) or a link (FOLLOWS_FROM, or what the link's attribute opentracing.ref_type says).
type Reference struct {
	RefType string `json:"refType"`
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

// Log is an event of a span.
type Log struct {
	Timestamp int64 `json:"timestamp"` // microseconds since 1970
	Fields    []Tag `json:"fields"`
}

// Process is the resource of a span.
type Process struct {
	ServiceName string `json:"serviceName"`
	Tags        []Tag  `json:"tags"`
}

// Tag is an attribute. Type is string, bool, int64, float64 or binary.
type Tag struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// Find returns the traces, whole and as they were stored, in which a span of that service has all these attributes, its own or its
// resource's, and started before 2100.
func (j *Jaeger) Find(service string, tags map[string]string) []Trace {
	j.t.Helper()
	wanted, err := json.Marshal(tags)
	require.NoError(j.t, err)
	code, body, err := get("http://" + j.query + "/api/traces?" + url.Values{
		"service": {service}, "tags": {string(wanted)}, "limit": {"1000000"}, "raw": {"true"},
		"start": {"0"}, "end": {fmt.Sprint(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())},
	}.Encode())
	require.NoError(j.t, err)
	require.Equal(j.t, http.StatusOK, code, "%s", body)
	var answer struct {
		Data   []Trace
		Errors []any
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	require.NoError(j.t, decoder.Decode(&answer))
	require.Empty(j.t, answer.Errors)
	return answer.Data
}

// Spans are the spans of these traces, in no order.
func Spans(traces []Trace) (spans []Span) {
	for _, trace := range traces {
		spans = append(spans, trace.Spans...)
	}
	return spans
}

func get(url string) (code int, body []byte, err error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	return answer.StatusCode, body, err
}
