// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package js sends with opentelemetry-js, as JSON in chunks: `make e2e E2E=js`.
package js

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/clienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClient(t *testing.T) {
	client := os.Getenv("LENSCOL_JS_CLIENT")
	require.NotEmpty(t, client, "LENSCOL_JS_CLIENT names no client: run make e2e E2E=js, or set it to what test/e2e/js/js.sh prints")
	clienttest.Test(t, testbed.JSON, true, "node", client)
}
