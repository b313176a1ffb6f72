// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource // import "github.com/lenscol/lenscol/sdk/resource"

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Decode reads OTEL_RESOURCE_ATTRIBUTES: key=value pairs between commas, values percent-encoded. Of a key that is there twice
// the last holds. A pair that cannot be read is left out and named by an error.
func Decode(text string) (attrs []Attribute, errs []error) {
	at := map[string]int{}
	for segment := range strings.SplitSeq(text, ",") {
		key, value, err := decodeSegment(segment)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if key == "" {
			continue
		}
		if i, there := at[key]; there {
			attrs[i].Value = value
			continue
		}
		at[key] = len(attrs)
		attrs = append(attrs, Attribute{Key: key, Value: value, Source: "env:OTEL_RESOURCE_ATTRIBUTES"})
	}
	return attrs, errs
}

func decodeSegment(segment string) (key, value string, err error) {
	if strings.TrimSpace(segment) == "" {
		return "", "", nil
	}
	key, value, ok := strings.Cut(segment, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" || !utf8.ValidString(key) {
		return "", "", fmt.Errorf("read resource attribute %q: must be key=value, in UTF-8", key)
	}
	value, err = url.PathUnescape(strings.TrimSpace(value))
	if err != nil || !utf8.ValidString(value) {
		return "", "", fmt.Errorf("read resource attribute %q: its value is not percent-encoded UTF-8", key)
	}
	return key, value, nil
}

// Encode writes attributes as OTEL_RESOURCE_ATTRIBUTES has them. A key that is empty, no UTF-8, or has a comma, an equals sign or a
// space at an end cannot be written; it is left out and named by an error.
func Encode(attrs []Attribute) (text string, errs []error) { return Merge("", attrs, false) }

// Merge adds attributes to what is inherited. A key that is there keeps its value unless overwrite is set; what is not
// touched stays as it is, byte for byte.
func Merge(inherited string, attrs []Attribute, overwrite bool) (text string, errs []error) {
	var segments []string
	if inherited != "" {
		segments = strings.Split(inherited, ",")
	}
	for _, a := range attrs {
		if a.Key == "" || strings.ContainsAny(a.Key, ",=") || strings.TrimSpace(a.Key) != a.Key || !utf8.ValidString(a.Key) {
			errs = append(errs, fmt.Errorf("write resource attribute %q: the key must be UTF-8 without commas, equals signs and outer spaces", a.Key))
			continue
		}
		segment := a.Key + "=" + escape(a.Text())
		there := false
		for i, have := range segments {
			if key, _, err := decodeSegment(have); err == nil && key == a.Key {
				there = true
				if overwrite {
					segments[i] = segment
				}
			}
		}
		if !there {
			segments = append(segments, segment)
		}
	}
	return strings.Join(segments, ","), errs
}

// escape percent-encodes all that is not unreserved (RFC 3986, 2.3), a slash or a colon.
func escape(value string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(value) {
		c := value[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~/:", c) >= 0 {
			out.WriteByte(c)
		} else {
			out.WriteByte('%')
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		}
	}
	return out.String()
}
