// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"
)

// traffic is what the processes of a job send, encoded once. A request is one resource and its spans: the resources of all
// processes are there, of the spans a few variants, in which ids and times are written anew each time. So a request costs the sender
// some nanoseconds a span, and there may be 100,000 ranks.
type traffic struct {
	streams []stream
	pattern []int // which stream each of so many requests in turn belongs to
}

// stream is what processes of one kind send.
type stream struct {
	resources [][]byte // of each process, the field of ResourceSpans
	spans     []spans  // variants
}

// spans is the field scope_spans of ResourceSpans, and where in it stands what is new in each request.
type spans struct {
	encoded []byte
	places  []place
}

// place is where the fields of a span stand, and what stood there at first.
type place struct {
	trace, id, parent int // of the 16 and 8 bytes; parent is 0 where there is none
	start, end        int // of the fixed64

	root, span, parentSpan uint64 // numbers within the request
	startNS, endNS         uint64
}

// megatron is ranks of Megatron-LM with NeMo Lens 0.2 and most span groups on, which send as soon as they have 512 spans.
func megatron(ranks int) traffic { return blend([]int{0}, megatronStream(ranks, 512)) }

// small is the same with requests of 64 spans, as at per_step detail.
func small(ranks int) traffic { return blend([]int{0}, megatronStream(ranks, 64)) }

// job is a mix: of 10 requests 8 are of ranks of Megatron-LM, one is of NeMo RL's driver and workers, one of a server of NeMo Gym.
func job(ranks int) traffic {
	return blend([]int{0, 0, 0, 0, 1, 0, 0, 0, 0, 2}, megatronStream(ranks, 512), rlStream(max(1, ranks/8)), gymStream(16))
}

func blend(pattern []int, streams ...stream) traffic { return traffic{streams, pattern} }

// request is what the nth request is made of. The same n gives the same process and variant.
func (t *traffic) request(n int) (resource []byte, kind, variant int) {
	round, at := n/len(t.pattern), n%len(t.pattern)
	kind = t.pattern[at]
	share, before := 0, 0
	for i, k := range t.pattern {
		if k == kind {
			share++
			if i < at {
				before++
			}
		}
	}
	s := &t.streams[kind]
	nth := round*share + before
	return s.resources[nth%len(s.resources)], kind, nth % len(s.spans)
}

// count is how many spans the requests from..to-1 have.
func (t *traffic) count(from, to int) (total int) {
	for n := from; n < to; n++ {
		_, kind, variant := t.request(n)
		total += len(t.streams[kind].spans[variant].places)
	}
	return total
}

const (
	variants = 8
	began    = 1_795_971_377_000_000_000 // ns
)

func megatronStream(ranks, size int) (s stream) {
	for rank := range ranks {
		s.resources = append(s.resources, resource(func(a pcommon.Map) {
			a.PutStr("telemetry.sdk.language", "python")
			a.PutStr("telemetry.sdk.name", "opentelemetry")
			a.PutStr("telemetry.sdk.version", "1.44.0")
			a.PutStr("service.name", "megatron")
			a.PutStr("service.version", "0.2.0")
			a.PutStr("service.instance.id", fmt.Sprint("4021337-rank", rank))
			a.PutInt("dl.rank", int64(rank))
			a.PutInt("dl.world_size", int64(ranks))
			a.PutStr("nemo.run.id", "4021337")
			a.PutStr("host.name", fmt.Sprintf("node%05d", rank/8))
			a.PutInt("process.pid", int64(10_000+rank%4096))
			a.PutStr("deployment.environment", "production")
			a.PutStr("slurm.job.id", "4021337")
			a.PutStr("slurm.partition", "batch")
		}))
	}
	for variant := range uint64(variants) {
		s.spans = append(s.spans, encodeSpans("nemo.lens", func(b *builder) { megatronSteps(b, size, variant) }))
	}
	return s
}

// megatronSteps adds whole steps of a rank, children before their parents as they end, until there are as many spans as wanted.
func megatronSteps(b *builder, size int, variant uint64) {
	r := rand.New(rand.NewPCG(1, variant))
	for step := int64(1200 + 100*variant); ; step++ {
		iteration, pass := b.new(), b.new()
		for micro := range int64(4) {
			for layer := range int64(4) {
				for _, name := range []string{"megatron.layer.self_attention", "megatron.layer.mlp"} {
					b.add(name, 2_000_000+r.Uint64N(500_000), b.new(), pass, func(a pcommon.Map) {
						a.PutInt("megatron.layer_number", layer)
						a.PutInt("megatron.iteration", step)
						group(a, "layer")
					})
				}
			}
			for _, name := range []string{"megatron.microbatch.forward", "megatron.microbatch.backward"} {
				b.add(name, 20_000_000+r.Uint64N(5_000_000), b.new(), pass, func(a pcommon.Map) {
					a.PutInt("megatron.microbatch", micro)
					a.PutInt("megatron.iteration", step)
					group(a, "microbatch")
				})
			}
			b.add("megatron.p2p.recv_forward", 100_000+r.Uint64N(900_000), b.new(), pass, func(a pcommon.Map) {
				group(a, "communication")
			})
		}
		b.add("megatron.grad_sync.finish", 5_000_000+r.Uint64N(1_000_000), b.new(), iteration, func(a pcommon.Map) {
			group(a, "communication")
		})
		b.add("megatron.train.iteration.forward_backward", 700_000_000+r.Uint64N(9_000_000), pass, iteration, func(a pcommon.Map) {
			a.PutInt("megatron.num_microbatches", 4)
			group(a, "forward_backward")
		})
		b.add("megatron.train.iteration.optimizer", 40_000_000+r.Uint64N(9_000_000), b.new(), iteration, func(a pcommon.Map) {
			a.PutBool("megatron.update_successful", true)
			group(a, "optimizer")
		})
		b.add("megatron.train.log", 400_000+r.Uint64N(90_000), b.new(), iteration, func(a pcommon.Map) {
			a.PutDouble("megatron.loss", 2+r.Float64())
			a.PutDouble("megatron.grad_norm", r.Float64())
			a.PutDouble("megatron.learning_rate", 0.0003)
			group(a, "step")
		})
		b.add("megatron.train.iteration", 800_000_000+r.Uint64N(90_000_000), iteration, 0, func(a pcommon.Map) {
			a.PutInt("megatron.iteration", step)
			a.PutBool("megatron.skipped", false)
			group(a, "step")
		})
		if b.spans.Len() >= size {
			n := 0
			b.spans.RemoveIf(func(ptrace.Span) bool { n++; return n > size })
			return
		}
	}
}

// group is what Lens says of each span, for routing.
func group(a pcommon.Map, name string) {
	a.PutStr("lens.span_category", "goodput")
	a.PutStr("lens.group", name)
}

func rlStream(processes int) (s stream) {
	for process := range processes {
		s.resources = append(s.resources, resource(func(a pcommon.Map) {
			a.PutStr("telemetry.sdk.language", "python")
			a.PutStr("telemetry.sdk.name", "opentelemetry")
			a.PutStr("telemetry.sdk.version", "1.44.0")
			a.PutStr("service.name", "nemo-rl")
			a.PutStr("service.version", "0.2.0")
			a.PutStr("service.instance.id", fmt.Sprint("4021337-rl-rank", process))
			a.PutInt("dl.rank", int64(process))
			a.PutInt("dl.world_size", int64(processes))
			a.PutStr("nemo.run.id", "4021337")
			a.PutStr("host.name", fmt.Sprintf("node%05d", process))
			a.PutInt("process.pid", int64(20_000+process%4096))
			a.PutStr("slurm.job.id", "4021337")
		}))
	}
	for variant := range uint64(variants) {
		r := rand.New(rand.NewPCG(2, variant))
		s.spans = append(s.spans, encodeSpans("nemo.lens", func(b *builder) {
			for step := int64(40 + 10*variant); b.spans.Len() < 480; step++ {
				whole := b.new()
				for i := range 100 {
					name := []string{"rl.data_plane.put", "rl.data_plane.get", "rl.data_plane.claim_meta"}[i%3]
					b.add(name, 300_000+r.Uint64N(2_000_000), b.new(), whole, func(a pcommon.Map) {
						a.PutInt("rl.step", step)
						a.PutStr("rl.bucket", "overhead")
						group(a, "data_plane")
						a.PutInt("rl.data_plane.bytes", int64(r.Uint64N(4_000_000)))
					})
				}
				for _, phase := range []string{"data_processing", "generation", "reward_calculation", "policy_and_reference_logprobs", "policy_training"} {
					b.add("rl.grpo."+phase, 3_000_000_000+r.Uint64N(900_000_000), b.new(), whole, func(a pcommon.Map) {
						a.PutInt("rl.iteration", step)
						a.PutInt("rl.step", step)
						a.PutInt("rl.weight_version", step-1)
						a.PutInt("rl.num_prompt_groups", 64)
						a.PutStr("rl.bucket", "productive")
						a.PutStr("rl.efficiency.category", "compute")
						group(a, phase)
					})
				}
				b.add("rl.grpo.step", 20_000_000_000+r.Uint64N(900_000_000), whole, 0, func(a pcommon.Map) {
					a.PutInt("rl.iteration", step)
					a.PutInt("rl.epoch", 0)
					a.PutInt("rl.num_generations_per_prompt", 16)
					group(a, "step")
				})
			}
		}))
	}
	return s
}

func gymStream(servers int) (s stream) {
	for server := range servers {
		s.resources = append(s.resources, resource(func(a pcommon.Map) {
			a.PutStr("telemetry.sdk.language", "python")
			a.PutStr("telemetry.sdk.name", "opentelemetry")
			a.PutStr("telemetry.sdk.version", "1.44.0")
			a.PutStr("service.name", fmt.Sprint("nemo-gym/server", server))
			a.PutStr("service.instance.id", fmt.Sprint("gym-", server))
			a.PutStr("nemo.run.id", "4021337")
			a.PutStr("host.name", fmt.Sprintf("gym%03d", server))
			a.PutInt("process.pid", int64(30_000+server))
		}))
	}
	for variant := range uint64(variants) {
		r := rand.New(rand.NewPCG(3, variant))
		s.spans = append(s.spans, encodeSpans("nemo.lens", func(b *builder) {
			for b.spans.Len() < 490 {
				rollout := b.new()
				id := fmt.Sprintf("%016x-%d", r.Uint64(), r.IntN(16))
				for turn := range int64(5) {
					served := b.new()
					b.add("gym.model.chat_completions", 900_000_000+r.Uint64N(900_000_000), b.new(), served, func(a pcommon.Map) {
						a.PutStr("gen_ai.operation.name", "chat")
						a.PutStr("gen_ai.request.model", "nemotron-70b")
						a.PutInt("gen_ai.usage.input_tokens", int64(r.IntN(8000)))
						a.PutInt("gen_ai.usage.output_tokens", int64(r.IntN(2000)))
						a.PutStr("nemo.gym.rollout.id", id)
					})
					b.add("HTTP POST", 950_000_000+r.Uint64N(900_000_000), b.new(), served, func(a pcommon.Map) {
						a.PutStr("http.request.method", "POST")
						a.PutStr("url.full", fmt.Sprintf("http://node%05d:8000/v1/chat/completions", r.IntN(64)))
						a.PutInt("http.response.status_code", 200)
					}).SetKind(ptrace.SpanKindClient)
					b.add("POST /run", 2_000_000_000+r.Uint64N(900_000_000), served, rollout, func(a pcommon.Map) {
						a.PutStr("http.request.method", "POST")
						a.PutStr("http.route", "/run")
						a.PutInt("http.response.status_code", 200)
						a.PutInt("nemo.gym.turn", turn)
						a.PutStr("nemo.gym.rollout.id", id)
					}).SetKind(ptrace.SpanKindServer)
				}
				b.add("gym.verify", 90_000_000+r.Uint64N(90_000_000), b.new(), rollout, func(a pcommon.Map) {
					a.PutDouble("nemo.gym.reward", r.Float64())
					a.PutStr("nemo.gym.rollout.id", id)
				})
				b.add("gym.rollout", 12_000_000_000+r.Uint64N(900_000_000), rollout, 0, func(a pcommon.Map) {
					a.PutStr("nemo.gym.rollout.id", id)
				})
			}
		}))
	}
	return s
}

// builder makes spans whose ids are numbers until they are sent: new gives one, 0 is no parent.
type builder struct {
	spans ptrace.SpanSlice
	given uint64
	root  uint64 // of the spans that are added, until the next root was
}

func (b *builder) new() uint64 { b.given++; return b.given }

func (b *builder) add(name string, duration, id, parent uint64, attributes func(pcommon.Map)) ptrace.Span {
	s := b.spans.AppendEmpty()
	s.SetName(name)
	s.SetKind(ptrace.SpanKindInternal)
	s.SetFlags(0x103)
	var trace [16]byte
	binary.BigEndian.PutUint64(trace[8:], b.root+1)
	s.SetTraceID(trace)
	var own, above [8]byte
	binary.BigEndian.PutUint64(own[:], id)
	binary.BigEndian.PutUint64(above[:], parent)
	s.SetSpanID(own)
	s.SetParentSpanID(above)
	s.SetStartTimestamp(pcommon.Timestamp(began + 1_000_000*uint64(b.spans.Len())))
	s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(duration))
	attributes(s.Attributes())
	if parent == 0 {
		b.root++
	}
	return s
}

func resource(fill func(pcommon.Map)) []byte {
	td := ptrace.NewTraces()
	fill(td.ResourceSpans().AppendEmpty().Resource().Attributes())
	return fieldOf(td, resourceSpansResource)
}

func encodeSpans(scope string, fill func(*builder)) spans {
	td := ptrace.NewTraces()
	ss := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	ss.Scope().SetName(scope)
	fill(&builder{spans: ss.Spans()})
	s := spans{encoded: fieldOf(td, resourceSpansScopeSpans)}
	if err := s.find(); err != nil {
		panic(err)
	}
	if len(s.places) != ss.Spans().Len() {
		panic("not all spans were found")
	}
	return s
}

// fieldOf is a field of the ResourceSpans in td, tag and length included.
func fieldOf(td ptrace.Traces, wanted protowire.Number) []byte {
	encoded, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		panic(err)
	}
	_, _, n := protowire.ConsumeTag(encoded)
	message, _ := protowire.ConsumeBytes(encoded[n:])
	for len(message) > 0 {
		number, _, n := protowire.ConsumeField(message)
		if number == wanted {
			return message[:n]
		}
		message = message[n:]
	}
	panic("the field is not there")
}

// The fields of OTLP that are looked for (opentelemetry/proto/trace/v1/trace.proto).
const (
	resourceSpansResource   = 1
	resourceSpansScopeSpans = 2
	scopeSpansSpans         = 2

	spanTraceID, spanSpanID, spanParentID, spanStart, spanEnd = 1, 2, 4, 7, 8
)

// find walks the encoded spans for what is written anew in each request.
func (s *spans) find() error {
	b := s.encoded
	return eachSpan(b, 0, len(b), func(from, to int) error {
		var p place
		err := fields(b, from, to, func(number protowire.Number, from, to int) error {
			switch number {
			case spanTraceID:
				p.trace, p.root = from, binary.BigEndian.Uint64(b[from+8:])
			case spanSpanID:
				p.id, p.span = from, binary.BigEndian.Uint64(b[from:])
			case spanParentID:
				if to > from {
					p.parent, p.parentSpan = from, binary.BigEndian.Uint64(b[from:])
				}
			case spanStart:
				p.start, p.startNS = from, binary.LittleEndian.Uint64(b[from:])
			case spanEnd:
				p.end, p.endNS = from, binary.LittleEndian.Uint64(b[from:])
			}
			return nil
		})
		s.places = append(s.places, p)
		return err
	})
}

// eachSpan calls f with where each span of the ResourceSpans in b[from:to] begins and ends.
func eachSpan(b []byte, from, to int, f func(from, to int) error) error {
	return fields(b, from, to, func(number protowire.Number, from, to int) error {
		if number != resourceSpansScopeSpans {
			return nil
		}
		return fields(b, from, to, func(number protowire.Number, from, to int) error {
			if number != scopeSpansSpans {
				return nil
			}
			return f(from, to)
		})
	})
}

// fields calls f with where the value of each field of a message begins and ends, without its tag and length.
func fields(message []byte, at, end int, f func(number protowire.Number, from, to int) error) error {
	for at < end {
		number, kind, n := protowire.ConsumeTag(message[at:end])
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		length := protowire.ConsumeFieldValue(number, kind, message[at:end])
		if length < 0 {
			return protowire.ParseError(length)
		}
		from := at
		if kind == protowire.BytesType {
			_, n := protowire.ConsumeVarint(message[at:end])
			from += n
		}
		at += length
		if err := f(number, from, at); err != nil {
			return err
		}
	}
	if at != end {
		return errors.New("a field goes beyond its message")
	}
	return nil
}

// renew writes the ids and times of request n, which look random: what compresses must not find one request in another. No id comes
// twice: mix gives no number twice, and there are fewer than 65,536 spans in a request.
func (s *spans) renew(n uint64) {
	first, shift := n<<16, n*7_919_000
	var root, high, low uint64
	for i := range s.places {
		p := &s.places[i]
		if p.root != root {
			root = p.root
			high, low = mix(first+root^0xaaaa<<48), mix(first+root^0x5555<<48)
		}
		id := p.spanID(n)
		binary.BigEndian.PutUint64(s.encoded[p.trace:], high)
		binary.BigEndian.PutUint64(s.encoded[p.trace+8:], low)
		binary.BigEndian.PutUint64(s.encoded[p.id:], id)
		if p.parent != 0 {
			binary.BigEndian.PutUint64(s.encoded[p.parent:], mix(first+p.parentSpan))
		}
		binary.LittleEndian.PutUint64(s.encoded[p.start:], p.startNS+shift+id&0xffff)
		binary.LittleEndian.PutUint64(s.encoded[p.end:], p.endNS+shift+0x10000+id>>16&0xffff)
	}
}

// spanID is the id of the span in request n.
func (p *place) spanID(n uint64) uint64 { return mix(n<<16 + p.span) }

// mix is the finalizer of splitmix64, a bijection.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
