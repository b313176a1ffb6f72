// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package instruments has the metrics of NeMo Lens and of those who use it, for Go, and a registry in which a framework declares
// its own. It imports OpenTelemetry's metric API and no SDK.
//
// Recording never fails: what cannot be recorded is left out, counted ([Registry.Skipped]) and logged once. While
// nobody collects, a record is a question and nothing else.
//
//	var rl = instruments.NewRL(otel.Meter(lens.ScopeName), instruments.NewNames)
//
//	rl.RewardMean.Record(ctx, 0.85)
//
// The same by keys, as record_rl_metrics has it:
//
//	instruments.Default().Record(ctx, meter, instruments.GroupRL, instruments.Values{"reward_mean": 0.85, "kl_divergence": kl})
package instruments // import "github.com/lenscol/lenscol/sdk/instruments"
