// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestLogIsPlain(t *testing.T) {
	written, logs := observer.New(zap.WarnLevel)
	sampled := zapcore.NewSamplerWithOptions(written, time.Hour, 2, 0)
	logger := zap.New(plainCore{sampled}).With(zap.String("with", "a\u009b2J"))
	const evil, shown = "ä\u0085b\u2028c\u202ed", `ä\u0085b\u2028c\u202ed`
	fields := []zap.Field{zap.String("text", evil), zap.Error(errors.New(evil)), zap.Stringer("url", &url.URL{Opaque: evil}), zap.Stringer("nil", (*url.URL)(nil)), zap.Int("n", 1)}
	for range 3 {
		logger.Warn(evil, fields...)
	}
	logger.Error("debug's:\n\tName: \x1b]0;title\a\r\x7f")
	logger.Info("below the level")
	require.Equal(t, 3, logs.Len(), "what is written is decided as before")
	require.Equal(t, "debug's:\n\tName: \\u001b]0;title\\u0007\\u000d\\u007f", logs.All()[2].Message)
	got := logs.All()[0]
	require.Equal(t, shown, got.Message)
	require.Equal(t, map[string]any{"with": `a\u009b2J`, "text": shown, "error": shown, "url": shown, "nil": "<nil>", "n": int64(1)}, got.ContextMap())
	require.Equal(t, evil, fields[0].String, "the caller's fields are the caller's")
}
