// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func get(t *testing.T) (header http.Header, html string) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Header(), w.Body.String()
}

// A browser runs an inline element only when the policy has the hash of the very text between its tags.
func TestPolicyHasHashesOfInlineElements(t *testing.T) {
	header, html := get(t)
	policy := header.Get("Content-Security-Policy")
	for tag, directive := range map[string]string{"script": "script-src", "style": "style-src"} {
		elements := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(html, -1)
		require.Len(t, elements, 1, tag)
		sum := sha256.Sum256([]byte(elements[0][1]))
		require.Contains(t, policy, directive+" 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
		require.Contains(t, policy, want)
	}
	require.NotContains(t, policy, "unsafe")
}

func TestPageLoadsNothing(t *testing.T) {
	_, html := get(t)
	for _, attribute := range regexp.MustCompile(`\s(?:src|srcset|href|action|data)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		require.Contains(t, []string{"data:,", "login"}, attribute[1])
	}
	require.NotRegexp(t, `@import|url\(`, html)
	require.NotRegexp(t, `\sstyle="|\son[a-z]+="`, html, "the policy forbids it")
}

// What clients send becomes text nodes and attribute values. Trusted Types make a browser that has them refuse the rest.
func TestScriptParsesNoHTML(t *testing.T) {
	require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|\beval\(|new Function|javascript:`, joined())
}

func TestIDsOfScriptAndLabelsAreInThePage(t *testing.T) {
	_, html := get(t)
	ids := map[string]bool{}
	for _, id := range regexp.MustCompile(`\sid="([^"]+)"`).FindAllStringSubmatch(html, -1) {
		require.False(t, ids[id[1]], "twice: %s", id[1])
		ids[id[1]] = true
	}
	uses := regexp.MustCompile(`\$\("([^"]+)"\)|\s(?:for|aria-labelledby|aria-describedby)="([^"]+)"`).FindAllStringSubmatch(html, -1)
	require.NotEmpty(t, uses)
	for _, use := range uses {
		require.Contains(t, ids, use[1]+use[2])
	}
}

func TestAllAssetsAreServed(t *testing.T) {
	entries, err := assets.ReadDir("assets")
	require.NoError(t, err)
	_, html := get(t)
	for _, entry := range entries {
		if path.Ext(entry.Name()) == ".js" {
			require.Equal(t, 1, strings.Count(html, "// ---- "+entry.Name()+": "), entry.Name())
		}
	}
	require.NotContains(t, html, "{{")
}
