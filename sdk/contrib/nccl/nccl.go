// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package nccl is NeMo Lens's contrib.nccl for Go: trace context as bytes that travel beside a tensor. The two read each
// other's bytes. The names are Lens's; [lens.MarshalContext] and its neighbours are the same under names of no transport.
package nccl // import "github.com/lenscol/lenscol/sdk/contrib/nccl"

import (
	"context"

	lens "github.com/lenscol/lenscol/sdk"
)

// SerializeContext writes the trace and baggage of ctx as a JSON object, "{}" without either.
func SerializeContext(ctx context.Context) []byte { return lens.MarshalContext(ctx) }

// DeserializeContext reads a carrier, of what SerializeContext writes here or in Lens. It is nil where data is none.
func DeserializeContext(data []byte) map[string]string { return lens.UnmarshalCarrier(data) }

// ExtractContext returns ctx with the trace and baggage of data; of bad data it is ctx (Lens, extract_nccl_context).
func ExtractContext(ctx context.Context, data []byte) context.Context {
	return lens.UnmarshalContext(ctx, data)
}
