// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if builtIn != "" {
			_ = os.RemoveAll(builtIn)
		}
		os.Exit(code)
	}))
}
