// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The filter lets all keys of its set through, of any length, and keeps most others back.
func TestFilter(t *testing.T) {
	var f filter
	require.False(t, f.may(""))
	for _, n := range []int{1, 11, 63, 64, 65, 128, 300} {
		key := strings.Repeat("k", n)
		require.False(t, f.may(key), n)
		f = filter{}
		f.add(key)
		require.True(t, f.may(key), n)
		require.False(t, f.may("l"+key[1:]), n)
		require.False(t, f.may(key+"k"), n)
		require.False(t, f.may(""), n)
		f = filter{}
	}
}
