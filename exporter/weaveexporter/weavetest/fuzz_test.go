// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzJudge lets any bytes be judged, and holds each verdict to account for every span.
func FuzzJudge(f *testing.F) {
	for _, r := range Rules {
		if body := r.Body(); len(body) < 10_000 {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{CallsPath, AgentsPath} {
			v := Judge(path, body)
			if v.Status != http.StatusOK {
				require.NotEmpty(t, v.Reason)
				require.NotEmpty(t, v.Problem())
				continue
			}
			require.Equal(t, v.Spans, len(v.Calls)+len(v.Agents)+v.Rejected+v.Unrouted)
			if v.OK() {
				require.Zero(t, v.Lost())
			}
		}
	})
}

// FuzzJSON holds the reader of JSON text against the standard library's, where both take the text for JSON.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"\u00e9\n"],"b":{}}`, `[null,true,false]`, `{"a"`, `[1 2]`, `[NaN,-Infinity]`, `["\ud800"]`, ` []`, `[01]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := decodeJSON(s)
		if err != nil {
			return
		}
		var want any
		if s == "" || !strings.ContainsAny(s[:1], "[{") || json.Unmarshal([]byte(s), &want) != nil {
			return
		}
		if lower := strings.ToLower(s); strings.Contains(lower, `\ud`) && (strings.Contains(lower, `\ufffd`) || strings.Contains(strings.ToValidUTF8(s, "\uFFFD"), "\uFFFD")) {
			return // Two keys may be one for the standard library.
		}
		require.Equal(t, want, plain(t, paired(v)))
	})
}

// paired is a value with U+FFFD for half a surrogate pair, as the standard library reads it.
func paired(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, half, "\uFFFD")
	case []any:
		for i, e := range v {
			v[i] = paired(e)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			e := v[k]
			delete(v, k)
			v[paired(k).(string)] = paired(e)
		}
	}
	return v
}
