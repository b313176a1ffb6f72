// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"encoding/json"
	"net/http"
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
		require.Equal(t, want, plain(t, v))
	})
}
