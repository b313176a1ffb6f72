// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/telemetry"

import (
	"context"
	"errors"
	"maps"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// exportingFailed begins what exporterhelper logs of each send that failed: "… Will retry the request after interval." at
// info while it goes on trying, "… Dropping data." and "… Rejecting data." at error when it does not (v0.158,
// retry_sender.go, queue_sender.go, base_exporter.go). The text is all that there is; TestExporterhelperSaysSo holds it.
const exportingFailed = "Exporting failed."

// Exporter names an exporter's part for one signal.
type Exporter struct {
	ID     string // otlp_http/backend
	Signal string // traces, metrics, logs, profiles
}

// Failure is what is known of the failed sends of an exporter.
type Failure struct {
	Count int64     // attempts that failed
	Last  time.Time // of the last
	// Reason is of the last: "connection refused", "Unavailable", "no such host"; empty where there is no short name for
	// it. It never has the error's text, which may hold what a backend or a config says.
	Reason string
}

// failures are those of all exporters. There are no more of them than exporters.
type failures struct {
	mu sync.Mutex
	of map[Exporter]Failure
}

func (f *failures) add(e Exporter, at time.Time, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[Exporter]Failure{}
	}
	f.of[e] = Failure{Count: f.of[e].Count + 1, Last: at, Reason: reason}
}

func (f *failures) all() map[Exporter]Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.of)
}

// failureCore stands before the core that writes the log, and so before its level and its sampling. It takes nothing away
// and adds no line.
type failureCore struct {
	zapcore.Core
	failures *failures
	of       Exporter // whose log it is; no ID where it is not an exporter's
}

// With learns whose log it is: the service gives every component's logger the component's id and kind as fields.
func (c *failureCore) With(fields []zapcore.Field) zapcore.Core {
	said := zapcore.NewMapObjectEncoder()
	for _, field := range fields {
		if field.Type == zapcore.InlineMarshalerType { // the form in which the service gives them
			field.AddTo(said)
		}
	}
	with := &failureCore{Core: c.Core.With(fields), failures: c.failures, of: c.of}
	if said.Fields["otelcol.component.kind"] == "exporter" {
		with.of.ID, _ = said.Fields["otelcol.component.id"].(string)
		with.of.Signal, _ = said.Fields["otelcol.signal"].(string)
	}
	return with
}

// Enabled is true for info, at which a retry is told, whatever level the config has; what is written is decided in Check.
func (c *failureCore) Enabled(level zapcore.Level) bool {
	return c.of.ID != "" && level >= zapcore.InfoLevel || c.Core.Enabled(level)
}

func (c *failureCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Core.Enabled(entry.Level) {
		checked = c.Core.Check(entry, checked)
	}
	if c.of.ID != "" && strings.HasPrefix(entry.Message, exportingFailed) {
		checked = checked.AddCore(entry, failureRecorder{c})
	}
	return checked
}

// failureRecorder is what an entry that tells of a failed send is written to.
type failureRecorder struct{ *failureCore }

func (r failureRecorder) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	var failed error
	for _, field := range fields {
		if field.Type == zapcore.ErrorType {
			failed, _ = field.Interface.(error)
		}
	}
	r.failures.add(r.of, entry.Time, reason(failed))
	return nil
}

// reason is a short name of an error, of a fixed set.
func reason(err error) string {
	var (
		errno syscall.Errno
		dns   *net.DNSError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &dns):
		return "name not resolved"
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	}
	// Of TLS there is the text alone: in an error of gRPC, and of the other side's alerts.
	text := err.Error()
	for _, known := range tlsReasons {
		if strings.Contains(text, known.says) {
			return known.reason
		}
	}
	if s, ok := status.FromError(err); ok && s.Code() != codes.Unknown {
		return s.Code().String()
	}
	return ""
}

// tlsReasons are what crypto/tls and net/http say (Go 1.26), and what that means to whoever configures an exporter.
var tlsReasons = []struct{ says, reason string }{
	{"x509: certificate signed by unknown authority", "its certificate is of an authority that is not trusted here: tls.ca_file, or SSL_CERT_FILE"},
	{"x509: certificate has expired or is not yet valid", "its certificate has expired, or a clock is wrong"},
	{"x509: certificate is ", "its certificate is for another name: endpoint, or tls.server_name_override"}, // "not valid for any names", "valid for A, not B"
	{"x509: cannot validate certificate for ", "its certificate is for another name: endpoint, or tls.server_name_override"},
	{"tls: certificate required", "it demands a client certificate: tls.cert_file and tls.key_file"},
	{"remote error: tls: ", "it refuses the client certificate, or the kind of TLS"},
	{"server gave HTTP response to HTTPS client", "it speaks no TLS: an endpoint of http://"},
	{"first record does not look like a TLS handshake", "it speaks no TLS: tls.insecure"},
}
