// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package java sends with OpenTelemetry's SDK for Java, as protobuf: `make e2e E2E=java`.
package java

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/e2e/clienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClient(t *testing.T) {
	jars := os.Getenv("LENSCOL_JAVA_JARS")
	require.NotEmpty(t, jars, "LENSCOL_JAVA_JARS names no SDK: run make e2e E2E=java, or set it to what test/e2e/java/java.sh prints")
	clienttest.Test(t, testbed.Protobuf, false, "java", "-cp", filepath.Join(jars, "*"), filepath.Join("client", "Client.java"))
}
