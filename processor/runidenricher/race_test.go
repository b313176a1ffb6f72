// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package runidenricher

const raceEnabled = true
