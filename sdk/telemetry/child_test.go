// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

const childVariable = "LENS_TEST_CHILD"

func runChild(string) {}
