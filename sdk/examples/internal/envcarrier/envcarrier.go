// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package envcarrier hands a trace to a process that is started, in its environment: TRACEPARENT, TRACESTATE and BAGGAGE
// (OpenTelemetry specification, environment variables as context propagation carriers).
package envcarrier // import "github.com/lenscol/lenscol/sdk/examples/internal/envcarrier"

import (
	"context"
	"os"
	"strings"

	lens "github.com/lenscol/lenscol/sdk"
)

var keys = []string{"traceparent", "tracestate", "baggage"}

// Environ are the variables that hand the trace of ctx on, NAME=VALUE.
func Environ(ctx context.Context) []string {
	carrier := map[string]string{}
	lens.Inject(ctx, carrier)
	var env []string
	for _, key := range keys {
		if value := carrier[key]; value != "" {
			env = append(env, strings.ToUpper(key)+"="+value)
		}
	}
	return env
}

// Context is ctx in the trace that this process was handed, or ctx.
func Context(ctx context.Context) context.Context {
	carrier := map[string]string{}
	for _, key := range keys {
		if value := os.Getenv(strings.ToUpper(key)); value != "" {
			carrier[key] = value
		}
	}
	return lens.Extract(ctx, carrier)
}
