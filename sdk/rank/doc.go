// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package rank decides which ranks of a training run export their telemetry.
package rank
