// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
)

// s3Server is a process that speaks S3. What it holds is gone when it ends.
type s3Server struct {
	t       *testing.T
	program string
	port    string
	process *exec.Cmd
}

func newS3Server(t *testing.T) *s3Server {
	t.Helper()
	program := os.Getenv("LENSCOL_MOTO_SERVER")
	if program == "" {
		t.Skip("LENSCOL_MOTO_SERVER is not set to a moto_server program: make test-archive installs one")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return &s3Server{t: t, program: program, port: port}
}

func (s *s3Server) address() string { return "http://127.0.0.1:" + s.port }

func (s *s3Server) url() URL {
	return URL("s3://archive/runs/host-7?region=us-east-1&use_path_style=true&endpoint=" + s.address())
}

// start starts the server, with an empty bucket.
func (s *s3Server) start() {
	s.t.Helper()
	s.process = exec.CommandContext(s.t.Context(), s.program, "-H", "127.0.0.1", "-p", s.port)
	require.NoError(s.t, s.process.Start())
	s.t.Cleanup(s.stop)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	require.Eventually(s.t, func() bool {
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPut, s.address()+"/archive", http.NoBody)
		require.NoError(s.t, err)
		res, err := client.Do(req)
		return err == nil && errors.Join(res.Body.Close()) == nil && res.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
}

func (s *s3Server) stop() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// bucket is the store as somebody else sees it.
func (s *s3Server) bucket() *blob.Bucket {
	s.t.Helper()
	b, err := blob.OpenBucket(s.t.Context(), strings.Replace(string(s.url()), "/runs/host-7", "", 1))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, b.Close()) })
	return b
}

func (s *s3Server) uploader(archive string, deleteAfter bool, c *counts) *Uploader {
	s.t.Helper()
	cfg := NewDefaultConfig()
	cfg.URL = s.url()
	cfg.DeleteAfter = deleteAfter
	u, err := New(cfg, c.settings(archive, zap.NewNop()))
	require.NoError(s.t, err)
	u.retry = retry{first: 10 * time.Millisecond, all: 100 * time.Millisecond, file: 100 * time.Millisecond}
	return u
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// TestS3VerifiesByChecksum uploads files that go in one piece and in parts, each verified by what the server has as their
// sum, without reading them back.
func TestS3VerifiesByChecksum(t *testing.T) {
	s := newS3Server(t)
	s.start()
	for name, test := range map[string]struct {
		size int
		etag string // a part of it
	}{
		"empty":                  {0, ""},
		"small":                  {10_000, ""},
		"just below the parts":   {16<<20 - 1, ""},
		"two parts, both whole":  {16 << 20, "-2"},
		"three parts, one short": {20<<20 + 5, "-3"},
	} {
		t.Run(name, func(t *testing.T) {
			archive, c := t.TempDir(), &counts{}
			file := "run=a b/ü/" + name + ".jsonl.zst"
			content := noise(test.size)
			writeFile(t, archive, file, string(content))
			u := s.uploader(archive, true, c)
			var sums []driver.Attributes
			u.bucket = (&hooked{
				inner: u.bucket,
				attrs: func(_ string, a *driver.Attributes) { sums = append(sums, *a) },
				read:  func(string) { t.Error("was read back") },
			}).bucket()
			u.Add(file)
			require.NoError(t, u.Start(t.Context()))
			require.Eventually(t, func() bool { return u.Waiting() == 0 }, time.Minute, time.Millisecond)
			require.NoError(t, u.Shutdown(t.Context()))

			require.Empty(t, c.failedTries())
			require.Equal(t, 1, c.uploaded)
			require.NoFileExists(t, filepath.Join(archive, file))
			require.Len(t, sums, 1)
			if test.etag == "" {
				require.NotEmpty(t, sums[0].MD5)
			} else {
				require.Contains(t, sums[0].ETag, test.etag)
			}
			stored, err := s.bucket().ReadAll(t.Context(), "runs/host-7/"+file)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, stored))
		})
	}
}

// TestS3AwayForAWhile starts before the server is there, and takes it away, with all it held, in between.
func TestS3AwayForAWhile(t *testing.T) {
	s := newS3Server(t)
	archive, c := t.TempDir(), &counts{}
	var all []string
	add := func(u *Uploader, n int) {
		for range n {
			name := fmt.Sprintf("run/traces-%03d.jsonl", len(all))
			writeFile(t, archive, name, name+"\n")
			all = append(all, name)
			u.Add(name)
		}
	}
	failed := func(n int) func() bool { return func() bool { return len(c.failedTries()) >= n } }

	u := s.uploader(archive, false, c)
	require.NoError(t, u.Start(t.Context()))
	add(u, 5)
	require.Eventually(t, failed(1), time.Minute, 10*time.Millisecond)
	require.Equal(t, 5, u.Waiting())
	s.start()
	require.Eventually(t, func() bool { return u.Waiting() == 0 }, time.Minute, 10*time.Millisecond)
	first := s.bucket()
	for _, name := range all {
		stored, err := first.ReadAll(t.Context(), "runs/host-7/"+name)
		require.NoError(t, err)
		require.Equal(t, name+"\n", string(stored))
	}

	s.stop()
	before := len(c.failedTries())
	add(u, 5)
	require.Eventually(t, failed(before+1), time.Minute, 10*time.Millisecond)
	require.NoError(t, u.Shutdown(t.Context()), "with files that wait")
	for _, err := range c.failedTries() {
		require.NotContains(t, err.Error(), secret)
		require.NotContains(t, err.Error(), "?x-id")
	}

	s.start()
	c = &counts{}
	u = s.uploader(archive, false, c)
	u.Scan(all)
	require.NoError(t, u.Start(t.Context()))
	require.Eventually(t, func() bool { return u.Waiting() == 0 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, u.Shutdown(t.Context()))
	require.Equal(t, 5, c.uploaded, "only what the first run did not")
	for _, name := range all[5:] {
		stored, err := s.bucket().ReadAll(t.Context(), "runs/host-7/"+name)
		require.NoError(t, err)
		require.Equal(t, name+"\n", string(stored))
	}
}

// TestS3WithoutItsBucketKeepsTheFiles has a server that refuses for good.
func TestS3WithoutItsBucketKeepsTheFiles(t *testing.T) {
	s := newS3Server(t)
	s.start()
	archive, c := t.TempDir(), &counts{}
	writeFile(t, archive, "a", "a")
	cfg := NewDefaultConfig()
	cfg.URL = URL(strings.Replace(string(s.url()), "s3://archive", "s3://no-such-bucket", 1))
	cfg.DeleteAfter = true
	u, err := New(cfg, c.settings(archive, zap.NewNop()))
	require.NoError(t, err)
	u.Add("a")
	require.NoError(t, u.Start(t.Context()))
	require.Eventually(t, func() bool { return len(c.failedTries()) > 0 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, u.Shutdown(t.Context()))
	require.ErrorContains(t, c.failedTries()[0], "NoSuchBucket")
	require.FileExists(t, filepath.Join(archive, "a"))
}
