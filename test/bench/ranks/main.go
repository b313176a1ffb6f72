// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command ranks measures what dropping the ranks that do not export costs a collector, end to end: lenscol with rank_gate
// beside a stock collector with contrib's filter, both in front of the nop exporter. It is run by ../ranks.sh.
//
// It starts each collector in turn, sends it the same requests over gRPC, and reads the CPU time of its process. Requests
// are encoded once; only their trace and span ids are new each time, patched in place, so the sender costs little.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

const (
	ranksInRequest = 8
	spansOfRank    = 64
	spansInRequest = ranksInRequest * spansOfRank
	senders        = 4
	warmUp         = 200 // requests before the clock starts
)

// cases are worlds of which the last rank is kept.
var cases = []struct {
	name  string
	world int
}{{"1_of_8", 8}, {"1_of_1000", 1000}}

func main() {
	ours := flag.String("ours", "bin/lenscol", "lenscol")
	stock := flag.String("stock", "build/stock/stock", "the stock collector")
	spans := flag.Int("spans", 1_000_000, "spans a round")
	rounds := flag.Int("rounds", 3, "rounds, each of both collectors in turn")
	flag.Parse()
	for _, c := range cases {
		var cpu [2]time.Duration
		for range *rounds {
			for i, binary := range []string{*ours, *stock} {
				d, err := measure(binary, i == 0, c.world, *spans/spansInRequest)
				if err != nil {
					fmt.Fprintf(os.Stderr, "ranks: %s: %v\n", binary, err)
					os.Exit(1)
				}
				cpu[i] += d
			}
		}
		million := float64(*rounds) * float64(*spans/spansInRequest*spansInRequest) / 1e6
		o, s := cpu[0].Seconds()/million, cpu[1].Seconds()/million
		fmt.Printf("%s ours %.3f stock %.3f ratio %.2f\n", c.name, o, s, o/s)
	}
}

const config = `
%s
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: %s
        %s
processors:
  %s
exporters:
  nop:
service:
  %s
  telemetry:
    logs: {level: error}
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %s, without_type_suffix: true}}}}]
  pipelines:
    traces:
      receivers: [otlp]
      processors: [%s]
      exporters: [nop]
`

// configOf keeps the last rank of the world, by rank_gate or by contrib's filter.
func configOf(ours bool, world int, endpoint, metricsPort string) string {
	if ours {
		return fmt.Sprintf(config, "extensions: {rank_gate: {strategy: single_rank}}", endpoint, "middlewares: [{id: rank_gate}]", "", "extensions: [rank_gate]", metricsPort, "")
	}
	filter := fmt.Sprintf(`filter: {error_mode: ignore, traces: {resource: ['attributes["dl.rank"] != %d']}}`, world-1)
	return fmt.Sprintf(config, "", endpoint, "", filter, "", metricsPort, "filter")
}

// measure is the CPU time that a collector takes for that many requests.
func measure(binary string, ours bool, world, requests int) (cpu time.Duration, err error) {
	endpoint, metrics := freeAddress(), freeAddress()
	_, metricsPort, _ := net.SplitHostPort(metrics)
	dir, err := os.MkdirTemp("", "ranks")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(configOf(ours, world, endpoint, metricsPort)), 0o600); err != nil {
		return 0, err
	}
	var log bytes.Buffer
	cmd := exec.Command(binary, "--config", "file:"+file)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		cancel() // what is sent to a collector that died ends
	}()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if end := <-ended; err == nil {
			err = end
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, log.Bytes())
		}
	}()

	all, err := encode(world)
	if err != nil {
		return 0, err
	}
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.WaitForReady(true)))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := send(ctx, conn, all, warmUp); err != nil {
		return 0, err
	}
	before, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	if err := send(ctx, conn, all, requests); err != nil {
		return 0, err
	}
	after, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	return after - before, check(metrics, ours, world, warmUp, requests)
}

// check: the collector dropped what it was to drop of so many requests each time, all of it and nothing else.
func check(metrics string, ours bool, world int, sent ...int) error {
	name := "otelcol_processor_filter_spans.filtered"
	if ours {
		name = "otelcol_extension_rank_gate_dropped_spans"
	}
	want := 0
	for _, requests := range sent {
		for i := range requests * ranksInRequest {
			if rankOf(0, i, world) != world-1 {
				want += spansOfRank
			}
		}
	}
	response, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	got := 0.0
	for line := range strings.Lines(string(body)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if base, _, _ := strings.Cut(series, "{"); strings.TrimSuffix(base, "_total") == name || strings.TrimSuffix(base, "_total") == strings.ReplaceAll(name, ".", "_") {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			got += n
		}
	}
	if int(got) != want {
		return fmt.Errorf("%s is %v, want %d", name, got, want)
	}
	return nil
}

// rankOf is the rank of a resource in a request.
func rankOf(request, resource, world int) int { return (request*ranksInRequest + resource) % world }

// template is an encoded request and where its ids stand.
type template struct {
	body []byte
	ids  []int // of span ids, 8 bytes each; a trace id's second half counts as one
}

// marker stands for an id until the encoded request has been searched for it.
var marker = [8]byte{0xfe, 0xed, 0xfa, 0xce, 0xca, 0xfe, 0xbe, 0xef}

// encode makes the requests that between them have every rank of the world.
func encode(world int) ([]template, error) {
	out := make([]template, max(1, world/ranksInRequest))
	for i := range out {
		td := ptrace.NewTraces()
		for j := range ranksInRequest {
			fill(td.ResourceSpans().AppendEmpty(), rankOf(i, j, world), world)
		}
		body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
		if err != nil {
			return nil, err
		}
		out[i].body = body
		for at := 0; ; {
			n := bytes.Index(body[at:], marker[:])
			if n < 0 {
				break
			}
			out[i].ids = append(out[i].ids, at+n)
			at += n + len(marker)
		}
		if len(out[i].ids) != 2*spansInRequest {
			return nil, errors.New("ids were not found")
		}
	}
	return out, nil
}

// fill has the resource attributes that NeMo Lens 0.2 sends and spans of six attributes.
func fill(rs ptrace.ResourceSpans, rank, world int) {
	a := rs.Resource().Attributes()
	a.PutStr("telemetry.sdk.language", "python")
	a.PutStr("telemetry.sdk.name", "opentelemetry")
	a.PutStr("telemetry.sdk.version", "1.45.1")
	a.PutStr("service.name", "megatron")
	a.PutStr("service.version", "0.2.0")
	a.PutInt("dl.rank", int64(rank))
	a.PutInt("dl.world_size", int64(world))
	a.PutStr("nemo.run.id", "123456")
	a.PutStr("service.instance.id", fmt.Sprint("123456-rank", rank))
	a.PutStr("host.name", fmt.Sprint("node", rank/8))
	a.PutInt("process.pid", 4242)
	a.PutStr("slurm.job.id", "123456")
	a.PutStr("slurm.partition", "batch")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("nemo.lens")
	for i := range spansOfRank {
		s := ss.Spans().AppendEmpty()
		trace := pcommon.TraceID{1, byte(rank >> 8), byte(rank)}
		copy(trace[8:], marker[:])
		s.SetTraceID(trace)
		s.SetSpanID(marker)
		s.SetParentSpanID(pcommon.SpanID{1, 2, 3, 4, 5, 6, 7, 8})
		s.SetName("megatron.train.iteration.forward_backward")
		s.SetKind(ptrace.SpanKindInternal)
		s.SetStartTimestamp(1_750_000_000_000_000_000)
		s.SetEndTimestamp(1_750_000_000_250_000_000)
		s.SetFlags(0x103)
		s.Attributes().PutInt("megatron.iteration", int64(1000+i))
		s.Attributes().PutInt("megatron.num_microbatches", 16)
		s.Attributes().PutStr("megatron.model_type", "encoder_or_decoder")
		s.Attributes().PutDouble("megatron.loss", 2.25)
		s.Attributes().PutBool("megatron.skipped", false)
		s.Attributes().PutStr("nemo.span.group", "forward_backward")
	}
}

// send sends n requests, in the order of rankOf, a few at a time.
func send(ctx context.Context, conn *grpc.ClientConn, all []template, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	for worker := range senders {
		group.Go(func() error {
			own := make([]template, len(all)) // patched in place, so each sender has its own
			id := uint64(worker+1) << 56
			for i := worker; i < n; i += senders {
				t := &own[i%len(all)]
				if t.body == nil {
					*t = template{bytes.Clone(all[i%len(all)].body), all[i%len(all)].ids}
				}
				for _, at := range t.ids {
					id++
					binary.BigEndian.PutUint64(t.body[at:], id)
				}
				var answer []byte
				if err := conn.Invoke(ctx, "/opentelemetry.proto.collector.trace.v1.TraceService/Export", t.body, &answer); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
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

// cpuTime is the user and system time of a process (proc(5): fields 14 and 15 of stat, in ticks of 10 ms).
func cpuTime(pid int) (time.Duration, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	var ticks time.Duration
	for _, text := range fields[11:13] {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, err
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond, nil
}

func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}
