// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testbed // import "github.com/lenscol/lenscol/internal/testbed"

import "syscall"

// DieWithParent is of Linux alone.
func DieWithParent() *syscall.SysProcAttr { return nil }
