// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"set", "", 3}, {"", "set", 3}, {"set", "set", 0}, {"confg", "config", 1}, {"prot", "port", 2}, {"kitten", "sitting", 3}} {
		require.Equal(t, tt.want, Distance(tt.a, tt.b), "%s, %s", tt.a, tt.b)
	}
}
