// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/ranks"
)

// places says for each message in which field of which other it stands, so that a request can be built around it.
var places = map[message]struct {
	in    message
	field int
}{
	mSpan:                      {mScopeSpans, 2},
	mEvent:                     {mSpan, 11},
	mLink:                      {mSpan, 13},
	mStatus:                    {mSpan, 15},
	mLogRecord:                 {mScopeLogs, 2},
	mMetric:                    {mScopeMetrics, 2},
	mGauge:                     {mMetric, 5},
	mSum:                       {mMetric, 7},
	mHistogram:                 {mMetric, 9},
	mExponentialHistogram:      {mMetric, 10},
	mSummary:                   {mMetric, 11},
	mNumberPoint:               {mGauge, 1},
	mHistogramPoint:            {mHistogram, 1},
	mExponentialHistogramPoint: {mExponentialHistogram, 1},
	mSummaryPoint:              {mSummary, 1},
	mScope:                     {mScopeLogs, 1},
	mEntityRef:                 {mResource, 3},
	mKeyValue:                  {mResource, 1},
	mAnyValue:                  {mLogRecord, 5},
	mArray:                     {mAnyValue, 5},
	mMap:                       {mAnyValue, 6},
	mExemplar:                  {mNumberPoint, 5},
	mBuckets:                   {mExponentialHistogramPoint, 8},
	mQuantile:                  {mSummaryPoint, 6},
}

// around is the request that has content in the place of that message.
func around(of message, content []byte) (ranks.Signal, []byte) {
	for {
		switch of {
		case mScopeSpans, mScopeMetrics, mScopeLogs:
			return ranks.Signal(of - mScopeSpans), appendField(nil, fieldResourceItems, appendField(nil, fieldScope, content))
		case mResource:
			inPieces := appendField(appendField(nil, fieldResource, nil), fieldResource, content)
			return ranks.Traces, appendField(nil, fieldResourceItems, inPieces)
		}
		place := places[of]
		of, content = place.in, appendField(nil, place.field, content)
	}
}

// contents are what may follow a tag of a wire type, good and bad.
func contents(wire int) [][]byte {
	sized := func(sizes ...int) (out [][]byte) {
		for _, n := range sizes {
			out = append(out, append(binary.AppendUvarint(nil, uint64(n)), make([]byte, n)...), append(binary.AppendUvarint(nil, uint64(n)), bytes.Repeat([]byte{0x80}, n)...))
		}
		return out
	}
	switch wire {
	case wireVarint:
		return [][]byte{{0}, {0x80, 0}, {0x80}, {}, bytes.Repeat([]byte{0xff}, 9), append(bytes.Repeat([]byte{0xff}, 9), 0x7f), append(bytes.Repeat([]byte{0xff}, 10), 1)}
	case wireFixed64:
		return [][]byte{make([]byte, 8), make([]byte, 7), {}}
	case wireFixed32:
		return [][]byte{make([]byte, 4), make([]byte, 3), {}}
	case wireLen:
		return append(sized(0, 1, 2, 7, 8, 9, 16, 17), []byte{5, 1}, []byte{}, []byte{0x80}, []byte{0x82, 0, 9, 9},
			append(bytes.Repeat([]byte{0xff}, 9), 1), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	default:
		// A group of field 1: its end; nested; with a field in it; ends of others; at the end of the buffer and not.
		return [][]byte{{}, {0x0c}, {0x0c, 0x98, 0x06, 0}, {0x0b, 0x0c, 0x0c, 0x98, 0x06, 0}, {0x08, 1}, {0x08, 1, 0x0c}, {0x0a, 1, 7, 0x98, 0x06, 0}, {0x0b, 0x0c}, {0x0e, 0}}
	}
}

// Every field number of every message with every wire type: the gate refuses what pdata refuses, and nothing else.
func TestSchemaIsPdatas(t *testing.T) {
	g, _ := newTestGate(t, "{strategy: ranks, ranks: '999', missing: drop}")
	numbers := []uint64{0, 1000, 1<<28 + 1, 1 << 29, 1<<31 + 1, 1<<32 + 1, 1<<32 + 5, 1<<60 + 2}
	for n := range uint64(40) {
		numbers = append(numbers, n)
	}
	refused, accepted := 0, 0
	check := func(of message, content []byte) {
		signal, request := around(of, content)
		_, err := decode(signal, request)
		s := g.sifters.Get().(*sifter)
		_, ok := s.sift(signal, request, g.reporter.Tally())
		require.Equal(t, err == nil, ok, "message %d, content %x: %v", of, content, err)
		if ok {
			accepted++
		} else {
			refused++
		}
	}
	for of := firstMessage; of < endMessages; of++ {
		check(of, nil)
		for _, number := range numbers {
			for wire := range 8 {
				tag := binary.AppendUvarint(nil, number<<3|uint64(wire))
				check(of, tag)
				for _, content := range contents(wire) {
					check(of, append(tag[:len(tag):len(tag)], content...))
				}
			}
		}
	}
	require.Greater(t, accepted, 1000)
	require.Greater(t, refused, 1000)
}

// The same around the messages that sift reads by hand.
func TestOuterFieldsArePdatas(t *testing.T) {
	g, _ := newTestGate(t, "{strategy: ranks, ranks: '999', missing: drop}")
	for signal := range ranks.Signals {
		for _, number := range []uint64{0, 1, 2, 3, 4, 15, 16, 999, 1000, 1001, 1 << 29, 1<<32 + 1, 1<<32 + 1000} {
			for wire := range 8 {
				for _, content := range contents(wire) {
					field := append(binary.AppendUvarint(nil, number<<3|uint64(wire)), content...)
					for _, request := range [][]byte{field, appendField(nil, fieldResourceItems, field)} {
						_, err := decode(signal, request)
						s := g.sifters.Get().(*sifter)
						_, ok := s.sift(signal, request, g.reporter.Tally())
						require.Equal(t, err == nil, ok, "signal %d, request %x: %v", signal, request, err)
					}
				}
			}
		}
	}
}
