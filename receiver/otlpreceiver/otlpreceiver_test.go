// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package otlpreceiver

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	core "go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A connection that says nothing, or half of what it should, does not hold up the end; one that speaks is served by all signals' server until then.
func TestSilentConnectionsDoNotHoldUpTheEnd(t *testing.T) {
	handshakeTimeout = 100 * time.Millisecond
	factory := NewFactory()
	cfg := factory.CreateDefaultConfig().(*core.Config)
	address := freeAddress(t)
	cfg.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = address
	before := *cfg.Protocols.GRPC.Get()

	set := receivertest.NewNopSettings(factory.Type())
	sink := &consumertest.TracesSink{}
	traces, err := factory.CreateTraces(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	logs, err := factory.CreateLogs(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	require.Equal(t, before, *cfg.Protocols.GRPC.Get(), "what a reload compares is as it was")

	for _, beginning := range []string{"", "PRI * HTTP/2.0\r\n"} {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte(beginning))
		require.NoError(t, err)
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	_, err = ptraceotlp.NewGRPCClient(conn).Export(t.Context(), ptraceotlp.NewExportRequestFromTraces(td))
	require.NoError(t, err)
	require.Equal(t, 1, sink.SpanCount())
	require.NoError(t, conn.Close())

	ended := make(chan error, 2)
	go func() {
		ended <- traces.Shutdown(context.Background())
		ended <- logs.Shutdown(context.Background())
	}()
	for range 2 {
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(time.Minute): // The core's takes two.
			require.Fail(t, "it does not end")
		}
	}
}

// A request that waits for somebody who does not come, from a sender who waits for ever, does not hold up the end: it is answered, so that it is
// sent again. What was refused for good before is refused for good.
func TestWaitingRequestsDoNotHoldUpTheEnd(t *testing.T) {
	endTimeout = 100 * time.Millisecond
	factory := NewFactory()
	cfg := factory.CreateDefaultConfig().(*core.Config)
	address, web := freeAddress(t), freeAddress(t)
	cfg.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = address
	cfg.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = web
	waiting := make(chan struct{}, 2)
	next, err := consumer.NewTraces(func(ctx context.Context, _ ptrace.Traces) error {
		waiting <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	require.NoError(t, err)
	r, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))

	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	request := ptraceotlp.NewExportRequestFromTraces(td)
	body, err := request.MarshalJSON()
	require.NoError(t, err)
	answers := make(chan string, 2)
	go func() {
		_, err := ptraceotlp.NewGRPCClient(conn).Export(context.Background(), request)
		answers <- err.Error()
	}()
	go func() {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Post("http://"+web+"/v1/traces", "application/json", bytes.NewReader(body))
		if err != nil {
			answers <- err.Error()
			return
		}
		defer answer.Body.Close()
		answers <- answer.Status
	}()
	<-waiting
	<-waiting
	ended := make(chan error, 1)
	go func() { ended <- r.Shutdown(context.Background()) }()
	for range 2 {
		select {
		case said := <-answers:
			require.Regexp(t, `^503 |code = Unavailable desc = the collector ends`, said)
		case <-time.After(time.Minute):
			require.Fail(t, "it is not answered")
		}
	}
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it does not end")
	}
}

func TestErrorsAtTheEnd(t *testing.T) {
	s := &server{}
	s.ended, s.end = context.WithCancel(t.Context())
	var says error
	consume := until(s, func(context.Context, int) error { return says })
	says = errors.New("full")
	require.Equal(t, says, consume(t.Context(), 1))
	s.end()
	require.Equal(t, errEnding, consume(t.Context(), 1))
	says = consumererror.NewPermanent(errors.New("bad"))
	require.Equal(t, says, consume(t.Context(), 1))
	says = nil
	require.NoError(t, consume(t.Context(), 1))
}

// Every signal of the core's is there.
func TestSignals(t *testing.T) {
	ours, upstream := NewFactory().(xreceiver.Factory), core.NewFactory().(xreceiver.Factory)
	require.Equal(t, upstream.TracesStability(), ours.TracesStability())
	require.Equal(t, upstream.MetricsStability(), ours.MetricsStability())
	require.Equal(t, upstream.LogsStability(), ours.LogsStability())
	require.Equal(t, upstream.ProfilesStability(), ours.ProfilesStability())
	profiles, err := ours.CreateProfiles(t.Context(), receivertest.NewNopSettings(ours.Type()), ours.CreateDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, profiles.Shutdown(t.Context()))
}

// What the receiver reports reaches the host.
func TestStatusReachesTheHost(t *testing.T) {
	reported := &reporter{Host: componenttest.NewNopHost()}
	componentstatus.ReportStatus(host{reported}, componentstatus.NewEvent(componentstatus.StatusOK))
	require.EqualValues(t, 1, reported.events.Load())
}

type reporter struct {
	component.Host
	events atomic.Int32
}

func (r *reporter) Report(*componentstatus.Event) { r.events.Add(1) }

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}
