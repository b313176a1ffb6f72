// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package oracle judges the compact lines of the jsonl exporter against the OTLP requests that they came from.
//
// [Request.Expect] computes what the lines must say, [Reader] reads what they do say, and the Same functions hold one
// against the other, field by field and in the order of the fields. It is an implementation of its own, after
// docs/format.md and on the generated protobuf types and encoding/json alone: it shares no code with what it judges.
package oracle // import "github.com/lenscol/lenscol/test/e2e/oracle"
