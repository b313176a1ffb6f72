// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package repair makes all texts of telemetry UTF-8: an exporter refuses a whole batch for one that is not, and a prompt that is cut
// in the middle of a character is enough. What is no UTF-8 becomes U+FFFD, in names, keys and values alike; all else is returned
// as it came, and nothing of it is copied.
package repair // import "github.com/lenscol/lenscol/sdk/telemetry/internal/repair"

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
)

// Text is s in UTF-8. As of all functions here, bad reports whether it was not.
func Text(s string) (mended string, bad bool) {
	if utf8.ValidString(s) {
		return s, false
	}
	return strings.ToValidUTF8(s, "\uFFFD"), true
}

// list mends the items of a list, in a copy where one is bad.
func list[T any](items []T, mend func(T) (T, bool)) (mended []T, bad bool) {
	mended = items
	for i := range items {
		item, isBad := mend(items[i])
		if !isBad {
			continue
		}
		if !bad {
			mended, bad = slices.Clone(items), true
		}
		mended[i] = item
	}
	return mended, bad
}

// Attributes are kvs in UTF-8.
func Attributes(kvs []attribute.KeyValue) (mended []attribute.KeyValue, bad bool) {
	return list(kvs, keyValue)
}

func keyValue(kv attribute.KeyValue) (mended attribute.KeyValue, bad bool) {
	key, badKey := Text(string(kv.Key))
	v, badValue := value(kv.Value)
	return attribute.KeyValue{Key: attribute.Key(key), Value: v}, badKey || badValue
}

func value(v attribute.Value) (mended attribute.Value, bad bool) {
	switch v.Type() {
	case attribute.STRING:
		if text, bad := Text(v.AsString()); bad {
			return attribute.StringValue(text), true
		}
	case attribute.STRINGSLICE:
		if texts, bad := list(v.AsStringSlice(), Text); bad {
			return attribute.StringSliceValue(texts), true
		}
	case attribute.SLICE:
		if values, bad := list(v.AsSlice(), value); bad {
			return attribute.SliceValue(values...), true
		}
	case attribute.MAP:
		if kvs, bad := Attributes(v.AsMap()); bad {
			return attribute.MapValue(kvs...), true
		}
	}
	return v, false
}

func set(s attribute.Set) (mended attribute.Set, bad bool) {
	for iter := s.Iter(); iter.Next(); {
		if _, bad := keyValue(iter.Attribute()); bad {
			kvs, _ := Attributes(s.ToSlice())
			return attribute.NewSet(kvs...), true
		}
	}
	return s, false
}

func scope(s instrumentation.Scope) (mended instrumentation.Scope, bad bool) {
	name, badName := Text(s.Name)
	version, badVersion := Text(s.Version)
	url, badURL := Text(s.SchemaURL)
	attributes, badAttributes := set(s.Attributes)
	return instrumentation.Scope{Name: name, Version: version, SchemaURL: url, Attributes: attributes},
		badName || badVersion || badURL || badAttributes
}
