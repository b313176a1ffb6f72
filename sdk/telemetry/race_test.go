// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package telemetry_test

// The race detector takes no more than 8,128 goroutines.
const goroutines = 4096
