// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"testing"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/ranktest"
)

func TestMain(m *testing.M) {
	ranktest.Main(m, func(spec ranktest.Spec) (lens.Transport, func(), error) {
		transport, err := New(Config{Member: spec.Member, Path: spec.Where})
		return transport, func() {}, err
	})
}

func TestFourProcesses(t *testing.T) {
	ranktest.Run(t, func(t *testing.T) string { return t.TempDir() })
}
