// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenstest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/lenstest"
)

var checkpoint = lens.Group("checkpoint")

func save(ctx context.Context, path string) {
	_, span := checkpoint.Start(ctx, "checkpoint.save", lens.String("path", path))
	defer span.End()
}

// The test of docs/sdk.md.
func TestSave(t *testing.T) {
	tel := lenstest.New(t, lenstest.Options{})
	save(t.Context(), "/ckpt/7")
	require.Equal(t, "/ckpt/7", tel.Span("checkpoint.save").Attributes["path"])
}

func TestSaveOfADisabledProcess(t *testing.T) {
	tel := lenstest.New(t, lenstest.Options{Disabled: true})
	save(t.Context(), "/ckpt/7")
	require.Empty(t, tel.Spans())
}
