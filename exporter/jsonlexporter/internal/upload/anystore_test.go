// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

const anyStoreURL = "LENSCOL_UPLOAD_URL"

// TestAnyStore is for a store, or an emulator of one, that is there: it uploads small and large files, and reads them again.
func TestAnyStore(t *testing.T) {
	url := os.Getenv(anyStoreURL)
	if url == "" {
		t.Skip(anyStoreURL + " is not set to the URL of a store with an existing bucket")
	}
	archive, c := t.TempDir(), &counts{}
	cfg := NewDefaultConfig()
	cfg.URL = URL(url)
	cfg.DeleteAfter = true
	u, err := New(cfg, c.settings(archive, zap.NewNop()))
	require.NoError(t, err)
	contents := map[string][]byte{}
	for name, size := range map[string]int{"empty": 0, "small": 10_000, "parts": 20<<20 + 5, "run=a b/ü/odd": 10} {
		name += ".jsonl.zst"
		contents[name] = noise(size)
		writeFile(t, archive, name, string(contents[name]))
		u.Add(name)
	}
	require.NoError(t, u.Start(t.Context()))
	require.Eventually(t, func() bool { return u.Waiting() == 0 || len(c.failedTries()) > 0 }, time.Minute, time.Millisecond)
	require.Empty(t, c.failedTries())
	require.Equal(t, len(contents), c.deleted)
	for name, content := range contents {
		stored, err := u.bucket.ReadAll(t.Context(), u.dest.prefix+name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, stored), name)
		attrs, err := u.bucket.Attributes(t.Context(), u.dest.prefix+name)
		require.NoError(t, err)
		t.Logf("%s: %d bytes, MD5 %x, ETag %s", name, attrs.Size, attrs.MD5, attrs.ETag)
	}
	require.NoError(t, u.Shutdown(t.Context()))
}
