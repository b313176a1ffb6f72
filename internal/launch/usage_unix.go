// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package launch // import "github.com/lenscol/lenscol/internal/launch"

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxRSS is the most memory that the process, or one that it waited for, had at a time, in bytes (getrusage(2)).
func maxRSS(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) * 1024
}

// signalName is SIGKILL and so on.
func signalName(sig syscall.Signal) string { return unix.SignalName(sig) }
