// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"context"

	"github.com/lenscol/lenscol/extension/lenshealth/internal/runs"
)

// runsPart serves what the runs do.
type runsPart struct{ api *runs.API }

// Mount implements [Part].
func (p *runsPart) Mount(m *Mux, v View) {
	p.api = runs.New(func(ctx context.Context) any { return v.Health(ctx) }, func(ctx context.Context) any { return v.Pipelines(ctx) })
	for pattern, handler := range p.api.Handlers() {
		m.Handle(pattern, handler)
	}
}

// Shutdown implements [Part].
func (p *runsPart) Shutdown(context.Context) error {
	if p.api != nil {
		p.api.Shutdown()
	}
	return nil
}
