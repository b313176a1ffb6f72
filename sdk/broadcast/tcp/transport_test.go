// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/ranktest"
)

func TestMain(m *testing.M) {
	ranktest.Main(m, func(spec ranktest.Spec) (lens.Transport, func(), error) {
		transport, err := New(Config{Member: spec.Member, Address: spec.Where})
		return transport, func() {}, err
	})
}

// freeAddress is one where nobody listens.
func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func TestFourProcesses(t *testing.T) { ranktest.Run(t, freeAddress) }
