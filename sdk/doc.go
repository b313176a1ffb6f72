// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package lens is what NeMo Lens does inside a process, for Go: span groups that can be switched, spans that cost nothing
// while their group is off, and trace context that travels with messages.
//
// It imports OpenTelemetry's API and neither its SDK nor an exporter: a library can instrument itself with it, and a
// program decides whether and where anything is sent by the tracer provider that it sets (go.opentelemetry.io/otel).
//
//	var step = lens.Group("step")
//
//	func train(ctx context.Context) {
//		ctx, span := step.Start(ctx, "train.step", lens.Int("step", 7))
//		defer span.End()
//		…
//	}
//
//	lens.SetGroups("per_step") // a preset, groups, or both, as in NEMO_LENS_SPAN_GROUPS
package lens // import "github.com/lenscol/lenscol/sdk"
