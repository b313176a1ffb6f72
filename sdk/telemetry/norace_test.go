// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package telemetry_test

// As many as a rollout gateway has rollouts in flight.
const goroutines = 16384
