// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package testbed // import "github.com/lenscol/lenscol/internal/testbed"

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Capture is one request of testdata/captures: what a real program sent.
type Capture struct {
	Name   string // its path below testdata/captures
	Signal string // traces, metrics or logs
	JSON   bool   // Body is OTLP/JSON, else the protobuf message
	Body   []byte
}

// Captures returns all captured requests, those of one run in the order of their arrival.
func Captures(tb testing.TB) []Capture {
	tb.Helper()
	root, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	root = filepath.Join(root, "testdata", "captures")
	indexes, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "index.jsonl"))
	if err != nil || len(indexes) == 0 {
		tb.Fatalf("no captures in %s: %v", root, err)
	}
	var captures []Capture
	for _, index := range indexes {
		text, err := os.ReadFile(index)
		if err != nil {
			tb.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var entry struct{ File, Signal string }
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				tb.Fatalf("%s: %v", index, err)
			}
			path := filepath.Join(filepath.Dir(index), entry.File)
			body, err := os.ReadFile(path)
			if err != nil {
				tb.Fatal(err)
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				tb.Fatal(err)
			}
			captures = append(captures, Capture{name, entry.Signal, filepath.Ext(path) == ".json", body})
		}
	}
	return captures
}
