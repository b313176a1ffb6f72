// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package configs starts every embedded config in the built binary, between real senders and strict stand-ins of its backends, and
// holds it to what its head comment says.
package configs // import "github.com/lenscol/lenscol/test/configs"

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/configs"
	"github.com/lenscol/lenscol/internal/testbed"
)

// started holds the names of the configs that a test has started.
var started sync.Map

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" {
		for _, name := range configs.Names() {
			if _, ok := started.Load(name); !ok {
				fmt.Fprintf(os.Stderr, "no test starts lenscol:%s\n", name)
				code = 1
			}
		}
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// start starts an embedded config on free ports of loopback. What opts sets comes after that.
func start(t *testing.T, name string, opts testbed.Options) *testbed.Collector {
	t.Helper()
	started.Store(name, true)
	opts.Args = append([]string{"--config", "lenscol:" + name}, opts.Args...)
	opts.Env = append([]string{
		"LENSCOL_HOST=127.0.0.1",
		"LENSCOL_HEALTH_PORT=" + testbed.FreePort(t), "LENSCOL_PROMETHEUS_PORT=" + testbed.FreePort(t), "LENSCOL_PEER_PORT=" + testbed.FreePort(t),
	}, opts.Env...)
	collector := testbed.Start(t, opts)
	require.NotRegexp(t, `(?i)\twarn\t.*(deprecated|future release)`, collector.Stderr())
	return collector
}

// eventually waits for what other processes do.
func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 20*time.Millisecond, append([]any{what}, args...)...)
}
