// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Weave's limits of names, in characters.
const (
	maxOpName      = 128
	maxDisplayName = 1024
)

// opName is the name of the op that a span becomes.
func opName(span string) (string, error) {
	name := span
	if utf8.RuneCountInString(name) >= maxOpName {
		sum := sha256.Sum256([]byte(name))
		var err error
		if name, err = shorten(name, maxOpName, ":"+hex.EncodeToString(sum[:2]), false); err != nil {
			return "", err
		}
	}
	name = safeName(name)
	switch {
	case name == "":
		return "", fail(http.StatusUnprocessableEntity, "Object name cannot be empty")
	case strings.Contains(name, "i\u0307"): // Python's lower case of İ, whose dot the check that follows refuses.
		return "", fail(http.StatusUnprocessableEntity, "Invalid object name: %s", name)
	}
	return name, nil
}

// safeName is Weave's make_safe_name.
func safeName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == ' ' || r == '/':
			b.WriteByte('_')
		case r == 'İ':
			b.WriteString("i\u0307")
		case r == '.' || r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

var (
	delimiters   = []string{",", ";", "|", " ", "/", "?", "."}
	delimiterRun = regexp.MustCompile(`[,;| /?.]`)
)

// shorten is Weave's shorten_name, with its fault: a long name that ends in delimiters makes it read past the end of a list.
func shorten(name string, limit int, mark string, keepDelimiter bool) (string, error) {
	count := utf8.RuneCountInString
	if count(name) <= limit {
		return name, nil
	}
	parts := split(name)
	short := parts[0]
	if len(parts) == 1 || count(short) > limit-len(mark) {
		return string([]rune(parts[0])[:limit-len(mark)]) + mark, nil
	}
	for i := 1; i < len(parts); i++ {
		delimiter := ""
		for slices.Contains(delimiters, parts[i]) {
			delimiter += parts[i]
			if i++; i == len(parts) {
				return "", fail(http.StatusInternalServerError, "IndexError: list index out of range")
			}
		}
		end := delimiter + mark
		if strings.HasPrefix(mark, delimiter) || !keepDelimiter {
			end = mark
		}
		if count(short)+count(delimiter+parts[i]) >= limit-count(end) {
			return short + end, nil
		}
		short += delimiter + parts[i]
	}
	return short, nil
}

// split cuts a name at its delimiters and keeps them, without empty parts.
func split(name string) []string {
	var parts []string
	at := 0
	for _, d := range delimiterRun.FindAllStringIndex(name, -1) {
		if d[0] > at {
			parts = append(parts, name[at:d[0]])
		}
		parts = append(parts, name[d[0]:d[1]])
		at = d[1]
	}
	if at < len(name) {
		parts = append(parts, name[at:])
	}
	return parts
}

const redacted = "REDACTED"

var (
	credentialNames = []string{
		"authheaders", "authorization", "authtoken", "awsaccesskey", "awsaccesskeyid", "bearertoken", "vertexcredentials",
		"webhookkey", "webhooksecret",
	}
	credentialSuffix = regexp.MustCompile(`(accesstoken|apikey|apitoken|clientsecret|privatekey|refreshtoken|secretaccesskey|secretkey|sessiontoken)$`)
	unpunctuated     = strings.NewReplacer("_", "", "-", "")
)

// redactKeys is Weave's redact_sensitive_keys: text under a key that names a credential is replaced.
func redactKeys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			if s, ok := e.(string); ok && s != "" && namesCredential(k) {
				e = redacted
			}
			m[k] = redactKeys(e)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = redactKeys(e)
		}
		return list
	}
	return v
}

func namesCredential(key string) bool {
	key = strings.ToLower(unpunctuated.Replace(key))
	return slices.Contains(credentialNames, key) || credentialSuffix.MatchString(key)
}
