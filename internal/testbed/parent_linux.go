// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package testbed // import "github.com/lenscol/lenscol/internal/testbed"

import "syscall"

// DieWithParent, in a command, ends it also when the test process is killed or times out.
func DieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
