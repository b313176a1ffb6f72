// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBounded(t *testing.T) {
	value, err := bounded(t.Context(), func() (int, error) { return 7, io.EOF })
	require.Equal(t, 7, value)
	require.Equal(t, io.EOF, err)

	ctx, cancel := context.WithCancel(t.Context())
	value, err = bounded(ctx, func() (int, error) {
		cancel()
		return 7, errors.New("two ranks did not come")
	})
	require.Equal(t, 7, value)
	require.EqualError(t, err, "two ranks did not come", "what do says of the end")

	release, over := make(chan struct{}), make(chan struct{})
	_, err = bounded(ctx, func() (int, error) {
		defer close(over)
		<-release
		return 0, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errHangs)
	close(release)
	<-over
}
