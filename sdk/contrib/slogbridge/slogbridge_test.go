// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package slogbridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/log/global"
	sdklog "go.opentelemetry.io/otel/sdk/log"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/contrib/slogbridge"
)

// records keeps what is emitted.
type records struct{ list []sdklog.Record }

func (r *records) OnEmit(_ context.Context, record *sdklog.Record) error {
	r.list = append(r.list, record.Clone())
	return nil
}
func (*records) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }
func (*records) Shutdown(context.Context) error                         { return nil }
func (*records) ForceFlush(context.Context) error                       { return nil }

func (r *records) provider() log.LoggerProvider {
	return sdklog.NewLoggerProvider(sdklog.WithProcessor(r))
}

// attrs are a record's, maps as maps.
func attrs(record sdklog.Record) map[string]any {
	out := map[string]any{}
	record.WalkAttributes(func(kv log.KeyValue) bool { out[kv.Key] = plain(kv.Value); return true })
	return out
}

func plain(v log.Value) any {
	if v.Kind() != log.KindMap {
		return v.String()
	}
	out := map[string]any{}
	for _, kv := range v.AsMap() {
		out[kv.Key] = plain(kv.Value)
	}
	return out
}

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"

func TestBridge(t *testing.T) {
	var kept records
	var out bytes.Buffer
	var level slog.LevelVar
	logger := slogbridge.Bridge(slog.New(slog.NewTextHandler(&out, nil)),
		slogbridge.Options{Scope: "megatron.train", Level: &level, Provider: kept.provider()})
	ctx := lens.Extract(t.Context(), map[string]string{"traceparent": traceparent})
	logger.With("rank", 3).WithGroup("step").InfoContext(ctx, "saved", "n", 100)
	logger.DebugContext(ctx, "too low")
	level.Set(slog.LevelError)
	logger.WarnContext(ctx, "too low by now")

	require.Len(t, kept.list, 1)
	record := kept.list[0]
	require.Equal(t, "saved", record.Body().AsString())
	require.Equal(t, log.SeverityInfo, record.Severity())
	require.Equal(t, "megatron.train", record.InstrumentationScope().Name)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", record.TraceID().String())
	require.Equal(t, "b7ad6b7169203331", record.SpanID().String())
	require.Equal(t, map[string]any{"rank": "3", "step": map[string]any{"n": "100"}}, attrs(record))
	require.Contains(t, out.String(), "saved rank=3 step.n=100")
	require.Contains(t, out.String(), "too low by now", "the program's own log is as it was")
}

func TestDefaults(t *testing.T) {
	var kept records
	logger := slog.New(slogbridge.NewHandler(slogbridge.Options{Provider: kept.provider()}))
	logger.Debug("no")
	logger.Info("yes")
	require.Len(t, kept.list, 1)
	require.Equal(t, "nemo.lens", kept.list[0].InstrumentationScope().Name)
}

// inChild runs the test in a process of its own, for what can be set once for all, and returns what that printed; ok is false there.
func inChild(t *testing.T) (out string, ok bool) {
	if os.Getenv("LENS_TEST_BRIDGE") != "" {
		return "", false
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), "LENS_TEST_BRIDGE=1")
	text, err := child.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Contains(t, string(text), "--- PASS: "+t.Name())
	return string(text), true
}

func TestActiveOnceAProviderIsSet(t *testing.T) {
	if _, ok := inChild(t); ok {
		return
	}
	logger := slog.New(slogbridge.NewHandler(slogbridge.Options{}))
	require.False(t, logger.Enabled(t.Context(), slog.LevelError))
	logger.Error("before")
	var kept records
	global.SetLoggerProvider(kept.provider())
	require.True(t, logger.Enabled(t.Context(), slog.LevelInfo))
	logger.Error("after")
	require.Len(t, kept.list, 1)
}

// The logger that Go begins with, bridged and made the default again, as the package's comment has it.
func TestTheLoggerThatGoBeginsWith(t *testing.T) {
	if out, ok := inChild(t); ok {
		for _, line := range []string{`level=INFO msg="by slog" step=7`, `level=INFO msg="by log"`, "bridged by slog\n", "bridged by log\n"} {
			require.Contains(t, out, line)
		}
		return
	}
	var kept records
	slog.SetDefault(slogbridge.Bridge(slog.Default(), slogbridge.Options{Provider: kept.provider()}))
	slog.Info("by slog", "step", 7)
	stdlog.Print("by log")
	for _, record := range kept.list {
		fmt.Println("bridged", record.Body())
	}
}

// broken is an error, and its method panics.
type broken struct{ text *string }

func (b broken) Error() string { return *b.text }

type refusing struct{ records }

func (*refusing) OnEmit(context.Context, *sdklog.Record) error { panic("full") }

type asking struct{ records }

func (*asking) Enabled(context.Context, sdklog.EnabledParameters) bool { panic("who knows") }

func TestNeverFails(t *testing.T) {
	var reported []error
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { reported = append(reported, err) }))
	t.Cleanup(func() { otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) })
	var kept records
	for name, c := range map[string]struct {
		provider log.LoggerProvider
		logs     func(*slog.Logger)
	}{
		"a value that panics":                 {kept.provider(), func(l *slog.Logger) { l.Info("x", "list", []any{broken{}}) }},
		"a value that panics, kept for later": {kept.provider(), func(l *slog.Logger) { l.With("list", []any{broken{}}).Info("x") }},
		"a processor that panics":             {sdklog.NewLoggerProvider(sdklog.WithProcessor(&refusing{})), func(l *slog.Logger) { l.Info("x") }},
		"a processor that panics when asked":  {sdklog.NewLoggerProvider(sdklog.WithProcessor(&asking{})), func(l *slog.Logger) { l.Info("x") }},
	} {
		t.Run(name, func(t *testing.T) {
			reported = nil
			var out bytes.Buffer
			logger := slogbridge.Bridge(slog.New(slog.NewTextHandler(&out, nil)), slogbridge.Options{Provider: c.provider})
			c.logs(logger)
			c.logs(logger)
			require.Equal(t, 2, bytes.Count(out.Bytes(), []byte("msg=x")), "the program's own log has both")
			require.Len(t, reported, 1)
			require.ErrorContains(t, reported[0], "a log record was not bridged: panic: ")
		})
	}
}

// An error handler that logs to the bridged logger leads back into the bridge that fails.
func TestFailureThatIsLoggedToTheBridge(t *testing.T) {
	var out bytes.Buffer
	logger := slogbridge.Bridge(slog.New(slog.NewTextHandler(&out, nil)), slogbridge.Options{
		Provider: sdklog.NewLoggerProvider(sdklog.WithProcessor(&refusing{})),
	})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Error("telemetry", "error", err) }))
	t.Cleanup(func() { otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) })
	logger.Info("x")
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("msg=x")))
	require.Equal(t, 1, bytes.Count(out.Bytes(), []byte("msg=telemetry")))
}

// The rules of log/slog for handlers, by its own test.
func TestIsAHandler(t *testing.T) {
	var kept records
	handler := slogbridge.NewHandler(slogbridge.Options{Provider: kept.provider()})
	require.NoError(t, slogtest.TestHandler(handler, func() (out []map[string]any) {
		for _, record := range kept.list {
			line := attrs(record)
			line[slog.MessageKey] = record.Body().AsString()
			line[slog.LevelKey] = record.Severity().String()
			if !record.Timestamp().IsZero() {
				line[slog.TimeKey] = record.Timestamp()
			}
			out = append(out, line)
		}
		return out
	}))
	require.NotEmpty(t, kept.list)
}

func Example() {
	// Without a logger provider, only the program's own log is written.
	plain := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	logger := slogbridge.Bridge(slog.New(plain), slogbridge.Options{Scope: "trainer", Level: slog.LevelWarn, Provider: new(records).provider()})
	logger.Info("saved", "step", 100, "error", errors.Join(fmt.Errorf("none")))
	// Output: level=INFO msg=saved step=100 error=none
}
