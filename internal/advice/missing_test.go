// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplain(t *testing.T) {
	require.NoError(t, Explain(nil))
	other := errors.New("no such file")
	require.Equal(t, other, Explain(other))

	missing := errors.New("failed to get config:\n\n'connectors' unknown type: \"routing\" for id: \"routing/a\" (valid values: [count forward])\n" +
		"'processors' unknown type: \"geoip\" for id: \"geoip\" (valid values: [batch])")
	explained := Explain(missing)
	require.ErrorIs(t, explained, missing)
	require.Equal(t, missing.Error()+
		"\nthere is no routing connector in lenscol: the forward connector with a filter behind it does that: lenscol configs show goodput-routing; docs/ocb.md says how to build a collector with both"+
		"\nthere is no geoip processor in lenscol; docs/ocb.md says how to build a collector with both", explained.Error())

	typed := Explain(errors.New(`'processors' unknown type: "memory_limter" for id: "memory_limter/a" (valid values: [filter memory_limiter batch])`))
	require.True(t, strings.HasSuffix(typed.Error(), "\nthere is no memory_limter processor in lenscol, did you mean memory_limiter?"), typed)
}
