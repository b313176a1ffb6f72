// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package launch // import "github.com/lenscol/lenscol/internal/launch"

import (
	"os"
	"syscall"
)

// maxRSS is not known here.
func maxRSS(*os.ProcessState) int64 { return 0 }

func signalName(sig syscall.Signal) string { return sig.String() }
