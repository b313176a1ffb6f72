// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package refinery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// msgpack reads one value, as Refinery's events have them: text, numbers, booleans, maps, lists. Binary and extensions stay bytes.
// https://github.com/msgpack/msgpack/blob/master/spec.md
type msgpack struct {
	rest []byte
}

var errShort = errors.New("msgpack ends too early")

func (m *msgpack) bytes(n uint64) ([]byte, error) {
	if uint64(len(m.rest)) < n {
		return nil, errShort
	}
	var b []byte
	b, m.rest = m.rest[:n], m.rest[n:]
	return b, nil
}

// uint is a big-endian number of 1, 2, 4 or 8 bytes.
func (m *msgpack) uint(size int) (n uint64, err error) {
	b, err := m.bytes(uint64(size))
	for _, digit := range b {
		n = n<<8 | uint64(digit)
	}
	return n, err
}

func (m *msgpack) value() (any, error) {
	first, err := m.uint(1)
	if err != nil {
		return nil, err
	}
	switch {
	case first <= 0x7f, first >= 0xe0:
		return int64(int8(first)), nil
	case first <= 0x8f:
		return m.mapping(first & 0x0f)
	case first <= 0x9f:
		return m.list(first & 0x0f)
	case first <= 0xbf:
		return m.text(first & 0x1f)
	}
	switch first {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return first == 0xc3, nil
	case 0xca:
		n, err := m.uint(4)
		return float64(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := m.uint(8)
		return math.Float64frombits(n), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		n, err := m.uint(1 << (first - 0xcc))
		return int64(n), err
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (first - 0xd0)
		n, err := m.uint(size)
		shift := 64 - 8*size
		return int64(n) << shift >> shift, err
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8: // fixext: a type, then the data
		return m.bytes(1 + 1<<(first-0xd4))
	}
	// What is left has its length before it.
	size, ok := map[uint64]int{
		0xc4: 1, 0xc5: 2, 0xc6: 4, 0xc7: 1, 0xc8: 2, 0xc9: 4, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4,
	}[first]
	if !ok {
		return nil, fmt.Errorf("msgpack has no %#x", first)
	}
	n, err := m.uint(size)
	if err != nil {
		return nil, err
	}
	switch first {
	case 0xc4, 0xc5, 0xc6:
		return m.bytes(n)
	case 0xc7, 0xc8, 0xc9:
		return m.bytes(1 + n)
	case 0xd9, 0xda, 0xdb:
		return m.text(n)
	case 0xdc, 0xdd:
		return m.list(n)
	default:
		return m.mapping(n)
	}
}

func (m *msgpack) text(n uint64) (any, error) {
	b, err := m.bytes(n)
	return string(b), err
}

func (m *msgpack) list(n uint64) (any, error) {
	list := []any{}
	for range n {
		v, err := m.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (m *msgpack) mapping(n uint64) (any, error) {
	mapping := map[string]any{}
	for range n {
		k, err := m.value()
		if err != nil {
			return nil, err
		}
		if mapping[fmt.Sprint(k)], err = m.value(); err != nil {
			return nil, err
		}
	}
	return mapping, nil
}

// The bytes are written by hand, after the specification.
func TestMsgpack(t *testing.T) {
	long := binary.BigEndian.AppendUint64([]byte{0xcb}, math.Float64bits(1.5))
	for want, in := range map[any][]byte{
		int64(5): {5}, int64(-1): {0xff}, "a": {0xa1, 'a'}, "b": {0xd9, 1, 'b'}, true: {0xc3}, nil: {0xc0}, 1.5: long,
		int64(300): {0xcd, 1, 44}, int64(-2): {0xd1, 0xff, 0xfe}, int64(-300): {0xd2, 0xff, 0xff, 0xfe, 0xd4},
	} {
		m := msgpack{in}
		got, err := m.value()
		require.NoError(t, err, "%x", in)
		require.Equal(t, want, got, "%x", in)
		require.Empty(t, m.rest)
		_, err = (&msgpack{in[:len(in)-1]}).value()
		require.ErrorIs(t, err, errShort, "%x", in)
	}
	m := msgpack{[]byte{0x92, 0x81, 0xa1, 'k', 0x90, 0xd6, 0xff, 1, 2, 3, 4}}
	got, err := m.value()
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"k": []any{}}, []byte{0xff, 1, 2, 3, 4}}, got)
}
