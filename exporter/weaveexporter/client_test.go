// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configcompression"
)

// Each level that may be set compresses, to what others read; 0 is one that is not set.
func TestCompressionLevels(t *testing.T) {
	body := bytes.Repeat([]byte("spans are alike "), 1000)
	for _, level := range []configcompression.Level{-1, 0, 1, 9} {
		cfg := validConfig()
		cfg.ClientConfig.CompressionParams.Level = level
		c := &client{cfg: cfg}
		require.NoError(t, c.start(t.Context(), nil, componenttest.NewNopTelemetrySettings()))
		compressed := c.compress(body)
		require.Less(t, len(compressed), len(body)/10, level)
		r, err := gzip.NewReader(bytes.NewReader(compressed))
		require.NoError(t, err)
		read, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, body, read)
	}
}
