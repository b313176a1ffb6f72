// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
)

func protobufPartial(rejected uint8, message string) string {
	inner := string([]byte{1 << 3, rejected, 2<<3 | 2, byte(len(message))}) + message
	return string([]byte{1<<3 | 2, byte(len(inner))}) + inner
}

// Requirement 23: all forms that an answer has.
func TestRequirement23_AllForms(t *testing.T) {
	const json, protobuf = "application/json", "application/x-protobuf"
	for _, tt := range []struct {
		name, media, body string
		rejected          int
		message           string
	}{
		{"nothing", json, "", 0, ""},
		{"empty object", json, "{}", 0, ""},
		{"null", json, `{"partial_success":null}`, 0, ""},
		{"nested, snake", json, `{"partial_success":{"rejected_spans":3,"error_message":"why"}}`, 3, "why"},
		{"nested, camel", json, `{"partialSuccess":{"rejectedSpans":3,"errorMessage":"why"}}`, 3, "why"},
		{"nested, camel, quoted", json, `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"why"}}`, 3, "why"},
		{"flat, snake", json, `{"accepted_spans":1,"rejected_spans":3,"error_message":"why"}`, 3, "why"},
		{"flat, camel", json, `{"acceptedSpans":1,"rejectedSpans":3,"errorMessage":"why"}`, 3, "why"},
		{"flat, null message", json, `{"accepted_spans":1,"rejected_spans":3,"error_message":null}`, 3, ""},
		{"flat, broken message", json, `{"error_message":5,"rejected_spans":3}`, 3, ""},
		{"no media", "", `{"partial_success":{"rejected_spans":3,"error_message":"why"}}`, 3, "why"},
		{"negative", json, `{"rejected_spans":-3}`, 0, ""},
		{"huge", json, `{"rejected_spans":1e300}`, 1 << 30, ""},
		{"no number", json, `{"rejected_spans":"many"}`, 0, ""},
		{"no JSON", json, `OK`, 0, ""},
		{"protobuf", protobuf, protobufPartial(3, "why"), 3, "why"},
		{"protobuf, empty", protobuf, "", 0, ""},
		{"no protobuf", protobuf, "\xff\xff", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rejected, message := readPartialSuccess(tt.media, []byte(tt.body))
			require.Equal(t, tt.rejected, rejected)
			require.Equal(t, tt.message, message)
		})
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add(200, "application/json", `{"partial_success":{"rejected_spans":3,"error_message":"why"}}`, "")
	f.Add(200, "application/x-protobuf", protobufPartial(3, "why"), "")
	f.Add(400, "application/json", `{"reason":{"a":["`+weavetest.Key+`"]}}`, "")
	f.Add(302, "text/html", "<html>", "1e9")
	f.Add(429, "", "\xff"+strings.Repeat("x", maxShown), "NaN")
	clean, err := newCleaner(weavetest.Key)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, status int, media, body, retryAfter string) {
		a := readSuccess(answer{status: status}, media, []byte(body), clean)
		require.GreaterOrEqual(t, a.rejected, 0)
		require.LessOrEqual(t, a.rejected, 1<<30)
		for _, text := range []string{a.text, clean(readReason([]byte(body)))} {
			require.NotContains(t, text, weavetest.Key)
			require.LessOrEqual(t, len(text), maxShown+200)
			require.True(t, utf8.ValidString(text))
			require.NotContains(t, text, "\n")
		}
		wait := readRetryAfter(retryAfter, time.Unix(0, 0))
		require.GreaterOrEqual(t, wait, time.Duration(0))
		require.LessOrEqual(t, wait, maxRetryAfter)
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "1.5": 1500 * time.Millisecond, "-7": 0, "soon": 0, "NaN": 0,
		"Inf": maxRetryAfter, "99999999999999999999": maxRetryAfter,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		now.Add(math.MaxInt64).Format(http.TimeFormat):    maxRetryAfter,
	} {
		require.Equal(t, want, readRetryAfter(text, now), text)
	}
}

func TestReasons(t *testing.T) {
	for body, want := range map[string]string{
		`{"reason":"bad value"}`:           "bad value",
		`{"detail":"bad value"}`:           "bad value",
		`{"detail":[{"msg":"bad value"}]}`: `[{"msg":"bad value"}]`,
		`{"reason":null,"message":"x"}`:    "x",
		`{"other":1}`:                      `{"other":1}`,
		"upstream":                         "upstream",
		"":                                 "",
	} {
		require.Equal(t, want, readReason([]byte(body)), body)
	}
}
