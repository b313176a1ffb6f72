// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/lenscol/lenscol/internal/ranks"
)

// station is an unmodified otlp receiver with a gate in it, or without one, and a pipeline that keeps what arrives.
type station struct {
	tel      *componenttest.Telemetry // the gate's
	grpcAddr string
	httpAddr string
	conn     *grpc.ClientConn

	arrived chan []byte // requests, as pdata encodes them
	refuse  atomic.Pointer[error]
}

const token = "secret"

type stationOptions struct {
	gate     string // its config; empty: no gate
	settings string // more settings of both servers
}

func newStation(t testing.TB, o stationOptions) *station {
	s := &station{grpcAddr: freeAddress(t), httpAddr: freeAddress(t), arrived: make(chan []byte, 100)}
	extensions := map[component.ID]component.Component{component.MustNewID("token"): authenticator{}}
	middlewares := ""
	if o.gate != "" {
		var g *gate
		g, s.tel = newTestGate(t, o.gate)
		extensions[component.MustNewID("rank_gate")] = g
		middlewares = "middlewares: [{id: rank_gate}]"
		t.Cleanup(func() { require.NoError(t, g.Shutdown(context.Background())) })
	}
	yaml := fmt.Sprintf(`
protocols:
  grpc:
    endpoint: %s
    max_recv_msg_size_mib: 1
    %s
    %s
  http:
    endpoint: %s
    max_request_body_size: 1048576
    %s
    %s
`, s.grpcAddr, middlewares, o.settings, s.httpAddr, middlewares, o.settings)
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, conf(t, yaml).Unmarshal(cfg))
	set := receivertest.NewNopSettings(factory.Type())

	take := func(b []byte, err error) error {
		if refusal := s.refuse.Load(); refusal != nil && *refusal != nil {
			return *refusal
		}
		s.arrived <- b
		return err
	}
	spans, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		return take(ptraceotlp.NewExportRequestFromTraces(td).MarshalProto())
	})
	require.NoError(t, err)
	points, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		return take(pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto())
	})
	require.NoError(t, err)
	records, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
		return take(plogotlp.NewExportRequestFromLogs(ld).MarshalProto())
	})
	require.NoError(t, err)

	traces, err := factory.CreateTraces(t.Context(), set, cfg, spans)
	require.NoError(t, err)
	metrics, err := factory.CreateMetrics(t.Context(), set, cfg, points)
	require.NoError(t, err)
	logs, err := factory.CreateLogs(t.Context(), set, cfg, records)
	require.NoError(t, err)
	host := host{extensions}
	for _, c := range []component.Component{traces, metrics, logs} {
		require.NoError(t, c.Start(t.Context(), host))
		t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
	}
	s.conn, err = grpc.NewClient(s.grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallSendMsgSize(64<<20), grpc.WaitForReady(true)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.conn.Close()) })
	return s
}

type host struct {
	extensions map[component.ID]component.Component
}

func (h host) GetExtensions() map[component.ID]component.Component { return h.extensions }

// authenticator lets the token in.
type authenticator struct {
	component.StartFunc
	component.ShutdownFunc
}

var (
	_ extensionauth.Server = authenticator{}
	_ extension.Extension  = authenticator{}
)

func (authenticator) Authenticate(ctx context.Context, sources map[string][]string) (context.Context, error) {
	for _, key := range []string{"authorization", "Authorization"} {
		if v := sources[key]; len(v) == 1 && v[0] == token {
			return ctx, nil
		}
	}
	return ctx, errors.New("not authorised")
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// rawCodec sends and receives bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var methods = [ranks.Signals]string{
	"/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	"/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

// reply is what a client sees.
type reply struct {
	status string
	body   string
}

func (s *station) sendGRPC(t testing.TB, signal ranks.Signal, body []byte, compression, auth string) reply {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if auth != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", auth)
	}
	var options []grpc.CallOption
	if compression != "" {
		options = append(options, grpc.UseCompressor(compression))
	}
	var out []byte
	err := s.conn.Invoke(ctx, methods[signal], body, &out, options...)
	return reply{status.Code(err).String() + ": " + status.Convert(err).Message(), string(out)}
}

func (s *station) sendHTTP(t testing.TB, signal ranks.Signal, contentType string, body []byte, compression, auth string) reply {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.httpAddr+"/v1/"+signalNames[signal], bytes.NewReader(compress(t, body, compression)))
	require.NoError(t, err)
	r.Header.Set("Content-Type", contentType)
	if compression != "" {
		r.Header.Set("Content-Encoding", compression)
	}
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	return do(t, r)
}

func compress(t testing.TB, body []byte, compression string) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch compression {
	case "":
		return body
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		var err error
		w, err = zstd.NewWriter(&out)
		require.NoError(t, err)
	case "snappy":
		return snappy.Encode(nil, body)
	default:
		require.Fail(t, "no such compression", compression)
	}
	_, err := w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// send sends over one transport: grpc or http.
func (s *station) send(t testing.TB, transport string, signal ranks.Signal, body []byte, compression, auth string) reply {
	if transport == "grpc" {
		return s.sendGRPC(t, signal, body, compression, auth)
	}
	return s.sendHTTP(t, signal, "application/x-protobuf", body, compression, auth)
}

// got is what the pipeline got since the last call: nothing, or one request.
func (s *station) got(t testing.TB) []byte {
	select {
	case b := <-s.arrived:
		require.Empty(t, s.arrived)
		return b
	default:
		return nil
	}
}

// dropped waits for the count of dropped items to be n.
func (s *station) dropped(t testing.TB, signal ranks.Signal, n int64) {
	require.EventuallyWithT(t, func(c *assert.CollectT) { require.Equal(c, n, s.sum(t, "dropped", signal)) }, 10*time.Second, 5*time.Millisecond)
}

func (s *station) sum(t testing.TB, which string, signal ranks.Signal) (n int64) {
	items := [ranks.Signals]string{"spans", "points", "records"}[signal]
	for name, value := range counts(t, s.tel) {
		if bytes.HasPrefix([]byte(name), []byte(which+"_"+items+" ")) {
			n += value
		}
	}
	return n
}

var transports = []string{"grpc", "http"}

const (
	oneOfFour = "{strategy: ranks, ranks: '2'}"
	nobody    = "{strategy: ranks, ranks: '99'}"
)

// items of request in a resource.
var itemsOf = [ranks.Signals]int64{3, 6, 3}

// The codec of the gRPC server is the gate's, and the handler of the HTTP server too: were they not asked, the whole
// request would arrive and nothing be counted.
func TestTheReceiverAsksTheGate(t *testing.T) {
	s, without := newStation(t, stationOptions{gate: oneOfFour}), newStation(t, stationOptions{})
	f := newReference(t, oneOfFour)
	for signal := range ranks.Signals {
		for i, transport := range transports {
			for j, compression := range []string{"", "gzip", "zstd", "snappy"} {
				t.Run(signalNames[signal]+" "+transport+" "+compression, func(t *testing.T) {
					body := request(t, signal, 4)
					want := without.send(t, transport, signal, body, compression, "")
					without.got(t)
					require.Contains(t, []string{"OK: ", "200 OK"}, want.status)
					require.Equal(t, want, s.send(t, transport, signal, body, compression, ""))
					require.Equal(t, f.consume[signal](t, body), s.got(t))
					sent := int64(i*4 + j + 1)
					s.dropped(t, signal, 3*sent*itemsOf[signal])
					require.Equal(t, sent*itemsOf[signal], s.sum(t, "kept", signal))
				})
			}
		}
	}
}

// When everything of a request goes, the client is answered and the pipeline never asked, not even one that refuses.
func TestAnEmptiedRequestDoesNotReachThePipeline(t *testing.T) {
	s := newStation(t, stationOptions{gate: nobody})
	refusal := errors.New("full")
	s.refuse.Store(&refusal)
	for signal := range ranks.Signals {
		for i, transport := range transports {
			r := s.send(t, transport, signal, request(t, signal, 4), "gzip", "")
			require.Contains(t, []string{"OK: ", "200 OK"}, r.status)
			require.Nil(t, s.got(t))
			s.dropped(t, signal, int64(i+1)*4*itemsOf[signal])
		}
	}
}

func TestUnauthorisedCountsNothing(t *testing.T) {
	s := newStation(t, stationOptions{gate: nobody, settings: "auth: {authenticator: token}"})
	for signal := range ranks.Signals {
		for _, transport := range transports {
			r := s.send(t, transport, signal, request(t, signal, 4), "", "wrong")
			require.Regexp(t, "Unauthenticated|401", r.status)
		}
	}
	for signal := range ranks.Signals {
		for i, transport := range transports {
			r := s.send(t, transport, signal, request(t, signal, 4), "", token)
			require.Contains(t, []string{"OK: ", "200 OK"}, r.status)
			s.dropped(t, signal, int64(i+1)*4*itemsOf[signal])
		}
	}
	for signal := range ranks.Signals {
		require.Equal(t, 2*4*itemsOf[signal], s.sum(t, "dropped", signal), "what the authorised ones count is all there is")
	}
}

// A pipeline that refuses: the client gets the receiver's answer, nothing is counted, and the retry counts once.
func TestRefusedCountsNothingAndTheRetryOnce(t *testing.T) {
	with, without := newStation(t, stationOptions{gate: oneOfFour}), newStation(t, stationOptions{})
	for signal := range ranks.Signals {
		for i, transport := range transports {
			for _, refusal := range []error{errors.New("try again"), consumererror.NewPermanent(errors.New("never"))} {
				with.refuse.Store(&refusal)
				without.refuse.Store(&refusal)
				body := request(t, signal, 4)
				r := with.send(t, transport, signal, body, "zstd", "")
				require.Equal(t, without.send(t, transport, signal, body, "zstd", ""), r)
				require.Regexp(t, "Unavailable|Internal|InvalidArgument|503|500|400", r.status)
			}
			with.refuse.Store(nil)
			r := with.send(t, transport, signal, request(t, signal, 4), "zstd", "")
			require.Contains(t, []string{"OK: ", "200 OK"}, r.status)
			with.dropped(t, signal, int64(i+1)*3*itemsOf[signal])
			require.NotNil(t, with.got(t))
		}
	}
}

// Whatever is sent, the answer is that of a receiver without the gate.
func TestAnswersAreTheReceivers(t *testing.T) {
	with, without := newStation(t, stationOptions{gate: nobody}), newStation(t, stationOptions{})
	plain := request(t, ranks.Traces, 2)
	var deep []byte // malformed within a span of a resource that goes
	each(plain, func(_ int32, _, content []byte) {
		deep = appendField(deep, fieldResourceItems, append(bytes.Clone(content), appendField(nil, fieldScope, appendField(nil, fieldItem, []byte{0x0a, 3, 1, 2, 3}))...))
	})
	bodies := map[string][]byte{
		"plain":              plain,
		"empty":              {},
		"truncated":          plain[:len(plain)-1],
		"no protobuf":        []byte("hello, world"),
		"a trace id of 3":    deep,
		"oversize":           bytes.Repeat(plain, 1+(2<<20)/len(plain)),
		"an unfinished tag":  append(bytes.Clone(plain), 0xff),
		"a group's end":      append(bytes.Clone(plain), 0x0c),
		"an unknown field":   append(bytes.Clone(plain), 0x98, 0x06, 1),
		"a wrong wire type":  append(bytes.Clone(plain), 0x08, 1),
		"the wrong signal's": request(t, ranks.Metrics, 2),
	}
	drain := func() {
		for _, s := range []*station{with, without} {
			for len(s.arrived) > 0 {
				<-s.arrived
			}
		}
	}
	for name, body := range bodies {
		for _, transport := range transports {
			for _, compression := range []string{"", "gzip"} {
				t.Run(fmt.Sprint(name, " ", transport, " ", compression), func(t *testing.T) {
					want := without.send(t, transport, ranks.Traces, body, compression, "")
					require.Equal(t, want, with.send(t, transport, ranks.Traces, body, compression, ""))
					drain()
				})
			}
		}
	}

	// What the HTTP handler alone refuses.
	for name, send := range map[string]func(s *station) reply{
		"bad gzip": func(s *station) reply {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.httpAddr+"/v1/traces", bytes.NewReader([]byte("no gzip")))
			require.NoError(t, err)
			r.Header.Set("Content-Type", "application/x-protobuf")
			r.Header.Set("Content-Encoding", "gzip")
			return do(t, r)
		},
		"another method": func(s *station) reply {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.httpAddr+"/v1/traces", bytes.NewReader(plain))
			require.NoError(t, err)
			return do(t, r)
		},
		"another path": func(s *station) reply {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.httpAddr+"/v1/trace", bytes.NewReader(plain))
			require.NoError(t, err)
			return do(t, r)
		},
		"another content type": func(s *station) reply {
			return s.sendHTTP(t, ranks.Traces, "text/plain", plain, "", "")
		},
		"parameters of the content type": func(s *station) reply {
			return s.sendHTTP(t, ranks.Traces, "application/x-protobuf; charset=utf-8", plain, "", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, send(without), send(with))
			drain()
		})
	}
}

func do(t testing.TB, r *http.Request) reply {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return reply{answer.Status, string(b)}
}

// Every request that was captured from a real program, through every strategy, over gRPC and HTTP. JSON passes whole.
func TestCaptures(t *testing.T) {
	all := captures(t)
	for _, yaml := range rules {
		t.Run(yaml, func(t *testing.T) {
			s, f := newStation(t, stationOptions{gate: yaml}), newReference(t, yaml)
			for _, c := range all {
				if c.json {
					r := s.sendHTTP(t, c.signal, "application/json", c.body, "", "")
					require.Equal(t, "200 OK", r.status, c.name)
					require.NotNil(t, s.got(t), c.name)
					continue
				}
				want := f.consume[c.signal](t, c.body)
				for _, transport := range transports {
					r := s.send(t, transport, c.signal, c.body, "", "")
					require.Contains(t, []string{"OK: ", "200 OK"}, r.status, c.name)
					require.Equal(t, string(want), string(s.got(t)), "%s over %s", c.name, transport)
				}
			}
		})
	}
}
