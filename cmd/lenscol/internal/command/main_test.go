// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
