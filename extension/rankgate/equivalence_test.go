// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/sdk/rank"
)

// equivalence compares the gate in front of the decoder with rank_filter behind it, for one config.
type equivalence struct {
	gate   *gate
	filter *reference
	counts func(t testing.TB) (gate, filter map[string]int64)
}

func newEquivalence(t testing.TB, yaml string) *equivalence {
	g, tel := newTestGate(t, yaml)
	f := newReference(t, yaml)
	return &equivalence{g, f, func(t testing.TB) (map[string]int64, map[string]int64) { return counts(t, tel), counts(t, f.tel) }}
}

// check: gate then decode is decode then filter, item for item. What pdata refuses, it refuses with the gate in front of
// it too, with the same words.
func (e *equivalence) check(t testing.TB, signal ranks.Signal, request []byte) {
	before := bytes.Clone(request)
	_, refusal := decode(signal, request)
	if refusal != nil {
		o := func() (kept []byte) {
			e.gate.sift(signal, pieces(request), func(b []byte, o outcome) {
				kept = bytes.Clone(b)
				e.gate.settle(t.Context(), o, false)
			})
			return kept
		}()
		_, err := decode(signal, o)
		require.Error(t, err, "made acceptable: %x", request)
		require.Equal(t, refusal.Error(), err.Error())
	} else {
		got, err := decode(signal, sift(e.gate, signal, request))
		require.NoError(t, err, "made refusable: %x", request)
		require.Equal(t, e.filter.consume[signal](t, request), got, "%x", request)
	}
	require.Equal(t, before, request, "the request was changed")
}

// checkCounts: both have counted the same up to now.
func (e *equivalence) checkCounts(t testing.TB) {
	ofGate, ofFilter := e.counts(t)
	require.Equal(t, ofFilter, ofGate)
}

func TestRulesUseEveryStrategy(t *testing.T) {
	for _, name := range rank.Names() {
		if name != rank.NameSingleRank { // the default
			require.Contains(t, ruleNames(), "strategy: "+name)
		}
	}
}

func TestEquivalence(t *testing.T) {
	requests := map[ranks.Signal][][]byte{}
	for signal := range ranks.Signals {
		requests[signal] = append(requests[signal], nil, request(t, signal, 1), request(t, signal, 8))
		for _, special := range special(t, signal) {
			requests[signal] = append(requests[signal], special)
		}
	}
	for _, c := range captures(t) {
		if !c.json {
			requests[c.signal] = append(requests[c.signal], c.body)
		}
	}
	for _, yaml := range rules {
		t.Run(yaml, func(t *testing.T) {
			e := newEquivalence(t, yaml)
			for signal, bodies := range requests {
				for _, body := range bodies {
					e.check(t, signal, body)
					e.checkCounts(t)
				}
			}
			ofGate, _ := e.counts(t)
			require.NotEmpty(t, ofGate)
		})
	}
}

// special are requests as no SDK makes them, though pdata reads them.
func special(t testing.TB, signal ranks.Signal) map[string][]byte {
	plain := request(t, signal, 4)
	var containers [][]byte
	each(plain, func(_ int32, _, content []byte) { containers = append(containers, bytes.Clone(content)) })
	rewrite := func(f func(dst []byte, field int32, whole, content []byte) []byte) (out []byte) {
		for _, c := range containers {
			var inner []byte
			each(c, func(field int32, whole, content []byte) { inner = f(inner, field, whole, content) })
			out = appendField(out, fieldResourceItems, inner)
		}
		return out
	}
	overlong := func(content []byte) []byte { // tag and length in more bytes than they need
		n := len(content)
		return append([]byte{0x8a, 0x80, 0, byte(n) | 0x80, byte(n>>7) | 0x80, byte(n >> 14)}, content...)
	}
	unknown := []byte{0x98, 0x06, 0x2a, 0xa3, 0x06, 0xa4, 0x06, 0x9a, 0x06, 2, 'h', 'i'} // number 99 varint, number 100 group, number 99 text
	out := map[string][]byte{
		"unknown fields everywhere": append(rewrite(func(dst []byte, field int32, whole, content []byte) []byte {
			return append(append(append(dst, unknown...), whole...), unknown...)
		}), unknown...),
		"scopes in the old field": rewrite(func(dst []byte, field int32, whole, content []byte) []byte {
			if field == fieldScope {
				return appendField(dst, fieldScopeOfOldSender, content)
			}
			return append(dst, whole...)
		}),
		"scopes in both fields": rewrite(func(dst []byte, field int32, whole, content []byte) []byte {
			if field == fieldScope {
				dst = appendField(dst, fieldScopeOfOldSender, content)
			}
			return append(dst, whole...)
		}),
		"the resource last": rewrite(func(dst []byte, field int32, whole, content []byte) []byte {
			if field == fieldResource {
				return append(dst, unknown...)
			}
			return append(dst, whole...)
		}),
		"a resource in pieces": rewrite(func(dst []byte, field int32, whole, content []byte) []byte {
			if field != fieldResource {
				return append(dst, whole...)
			}
			each(content, func(_ int32, whole, _ []byte) { dst = appendField(dst, fieldResource, whole) })
			return dst
		}),
		"resources alone": rewrite(func(dst []byte, field int32, whole, content []byte) []byte {
			if field == fieldResource {
				return append(dst, whole...)
			}
			return dst
		}),
		"no resources": rewrite(func(dst []byte, field int32, whole, content []byte) []byte {
			if field == fieldResource {
				return dst
			}
			return append(dst, whole...)
		}),
		"two of them": append(bytes.Clone(plain), plain...),
	}
	var long []byte
	for _, c := range containers {
		long = append(long, overlong(c)...)
	}
	out["overlong varints"] = long
	if signal == ranks.Metrics {
		// Two kinds of data in one metric: the last holds.
		number := appendField(nil, 1, nil)
		metric := appendField(appendField(appendField(nil, 5, append(number, number...)), 7, number), 7, nil)
		metric = appendField(metric, 9, append(number, number...))
		out["several kinds of data"] = appendField(nil, 1, appendField(nil, 2, append(appendField(nil, 2, metric), appendField(nil, 2, appendField(nil, 5, number))...)))
	}
	if signal == ranks.Traces {
		// A status in pieces, two names: the last holds.
		span := appendField(appendField(nil, 5, []byte("a.checkpoint.save")), 5, []byte("x"))
		span = appendField(appendField(span, 15, []byte{0x18, 2}), 15, []byte{0x12, 1, 'm'})
		other := appendField(appendField(nil, 15, []byte{0x18, 2}), 15, []byte{0x18, 0x81, 0x80, 0x80, 0x80, 0x10}) // 1 after the cut to 32 bits
		out["facts that come twice"] = appendField(nil, 1, appendField(nil, 2, append(appendField(nil, 2, span), appendField(nil, 2, other)...)))
	}
	return out
}

// Truncated at every byte, and with every byte of a few thousand turned: the same answer as the receiver's, always.
func TestHostileRequests(t *testing.T) {
	for _, yaml := range []string{"{strategy: ranks, ranks: '0', missing: drop}", "{strategy: ranks, ranks: '0', missing: drop, keep_errors: true, keep_names: ['*checkpoint*']}"} {
		for signal := range ranks.Signals {
			t.Run(yaml+" "+signalNames[signal], func(t *testing.T) {
				e := newEquivalence(t, yaml)
				plain := request(t, signal, 2)
				for n := range plain {
					e.check(t, signal, plain[:n])
				}
				random := rand.New(rand.NewPCG(1, 2))
				for range 3000 {
					b := bytes.Clone(plain)
					for range 1 + random.IntN(3) {
						b[random.IntN(len(b))] = byte(random.Uint32())
					}
					e.check(t, signal, b)
				}
				e.checkCounts(t)
			})
		}
	}
}

// Lists in lists, some 100,000 deep: the stack of the walk is its own, and one that grew that far is not kept.
func TestDeepNesting(t *testing.T) {
	nested := make([]byte, 1<<20)
	at := len(nested) // built from the inside, in front of what is there
	for at > 16 {
		for _, field := range []byte{1, 5} { // a value of a list, a list as a value
			header := appendField(nil, int(field), nil)[:1]
			header = binary.AppendUvarint(header, uint64(len(nested)-at))
			at -= len(header)
			copy(nested[at:], header)
		}
	}
	signal, body := around(mAnyValue, nested[at:])
	e := newEquivalence(t, "{strategy: ranks, ranks: '0', missing: drop}")
	e.check(t, signal, body)

	s := &sifter{decider: e.gate.decisions.decider, decisions: e.gate.decisions}
	_, ok := s.sift(signal, body, e.gate.reporter.Tally())
	require.True(t, ok)
	require.Greater(t, cap(s.walker.stack), 100_000)
	s.walker.stack = make([]frame, 0, maxKept)
	require.False(t, s.trim())
}

// More than a million scopes in a request, in the field of old senders and in both: each is looked at a fixed number of
// times. Were it as many times as there are scopes, the test would not end. What was that large is not kept, and
// nothing that is kept points into the request.
func TestMillionScopes(t *testing.T) {
	old := appendField(nil, fieldScopeOfOldSender, nil)
	healthy := appendField(nil, fieldItem, nil)
	failed := appendField(nil, fieldItem, appendField(nil, fieldSpanStatus, []byte{0x18, 2}))
	item := appendField(nil, fieldScopeOfOldSender, append(healthy, failed...))
	tests := []struct {
		name  string
		scope []byte // the last one
		kept  int64
	}{
		{"all in the old field", item, 1},
		{"the last in the field of today", appendField(item, fieldScope, nil), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resource := append(bytes.Repeat(old, 4<<20/len(old)), tt.scope...)
			request := appendField(nil, fieldResourceItems, resource)
			g, tel := newTestGate(t, "{missing: drop, keep_errors: true}")
			kept := sift(g, ranks.Traces, request)
			require.Equal(t, tt.kept, counts(t, tel)["kept_spans reason=error,strategy=single_rank"])
			require.Less(t, len(kept), 64)

			s := &sifter{decider: g.decisions.decider, decisions: g.decisions}
			_, ok := s.sift(ranks.Traces, request, g.reporter.Tally())
			require.True(t, ok)
			require.False(t, s.trim())
			require.Equal(t, make([]scope, cap(s.scopes)), s.scopes[:cap(s.scopes)])
		})
	}
}

func TestTenThousandResources(t *testing.T) {
	for _, yaml := range []string{"{}", "{strategy: ranks, ranks: 0-9999/2}"} {
		e := newEquivalence(t, yaml)
		for signal := range ranks.Signals {
			e.check(t, signal, request(t, signal, 10_000))
			e.checkCounts(t)
		}
	}
}

func FuzzEquivalence(f *testing.F) {
	for signal := range ranks.Signals {
		f.Add(uint8(signal), uint8(1), request(f, signal, 3))
		for _, body := range special(f, signal) {
			f.Add(uint8(signal), uint8(5), body)
		}
	}
	for i, c := range captures(f) {
		if !c.json && len(c.body) < 4<<10 {
			f.Add(uint8(c.signal), uint8(i), c.body)
		}
	}
	all := make([]*equivalence, len(rules))
	for i, yaml := range rules {
		all[i] = newEquivalence(f, yaml)
	}
	f.Fuzz(func(t *testing.T, signal, rule uint8, request []byte) {
		e := all[int(rule)%len(all)]
		e.check(t, ranks.Signal(signal%uint8(ranks.Signals)), request)
		e.checkCounts(t)
	})
}
