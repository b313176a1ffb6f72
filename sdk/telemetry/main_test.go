// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs a child's program where a test started this binary as one.
func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		runChild(name)
		return
	}
	goleak.VerifyTestMain(m)
}
