// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestRetryable(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"acknowledged":       {nil, false},
		"grpc unavailable":   {status.Error(codes.Unavailable, ""), true},
		"grpc invalid":       {status.Error(codes.InvalidArgument, ""), false},
		"grpc internal":      {status.Error(codes.Internal, ""), false},
		"grpc unknown":       {status.Error(codes.Unknown, ""), false},
		"http 503":           {&HTTPError{Code: 503}, true},
		"http 500":           {&HTTPError{Code: 500}, false},
		"http 400":           {&HTTPError{Code: 400}, false},
		"connection refused": {errors.New("connection refused"), true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.want, Retryable(row.err)) })
	}
}

func TestPartialSuccessIsAnError(t *testing.T) {
	require.NoError(t, wholeSuccess(nil))
	require.NoError(t, wholeSuccess([]byte{0x0a, 0}))
	require.Error(t, wholeSuccess([]byte{0x0a, 2, 0x08, 1}), "one rejected span")
	require.Error(t, wholeSuccess([]byte(`{"partialSuccess":{"rejectedSpans":"1"}}`)))
}

// TestCapturesAreComplete finds every file of the captures in an index.
func TestCapturesAreComplete(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	root = filepath.Join(root, "testdata", "captures")
	var files, listed []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); ext == ".pb" || ext == ".json" {
			name, _ := filepath.Rel(root, path)
			files = append(files, name)
		}
		return err
	}))
	for _, c := range Captures(t) {
		require.NotEmpty(t, c.Body, c.Name)
		listed = append(listed, c.Name)
	}
	require.ElementsMatch(t, files, listed)
	require.Len(t, listed, 128)
}
