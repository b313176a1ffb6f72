// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package weavetest is a strict fake of W&B Weave's OTLP ingest.
//
// A [Handler] does to each request what Weave does: it routes, authenticates and parses it, loses what Weave loses, with the status
// that Weave gives, and tells by [Handler.Calls] and [Handler.AgentSpans] what a user would see. [Handler.Script] has it throttle, refuse, hang or cut
// connections instead. [New] listens on loopback for a test; [Judge] says the same of one request without HTTP, for fuzzing.
//
// What it does is not guessed: [Rules] lists it, case by case, and test/interop/weave replays that list against Weave's own ingest code
// (PyPI weave 0.53.12). Where Weave's answer cannot be known from outside, the fake takes the stricter reading, and the rule says so.
//
// It reads requests with the generated protobuf types, and shares no code with the exporter that it judges.
package weavetest // import "github.com/lenscol/lenscol/exporter/weaveexporter/weavetest"
