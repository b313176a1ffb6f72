// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"
)

// Exec sets up telemetry for a process, once: a test starts this program anew with the command as its arguments.
const childVariable = "LENSCOL_LAUNCH_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	os.Unsetenv(childVariable)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals)
	code, err := Exec(context.Background(), Session{Service: "test", RunID: "r-1", Out: os.Stdout}, Command{
		Args: os.Args[1:], Signals: signals, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, FlushTimeout: time.Minute,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "not sent:", err)
	}
	os.Exit(code)
}
