// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var member = broadcast.Member{Job: "job 7", Rank: 3, WorldSize: 4}

// wire is the request of member in round 258 of rank 1, written by hand: the hash is that of sha256sum.
const wire = "6c656e7300626301" + // lens\0bc\1
	"9baabbff386ff3aa5450a1bdb3a43f1027e503da7f9c22cd7cc4f1bddfd9c720" +
	"0000000000000102" + "00000003" + "00000004" + "00000001"

func TestRequestOnTheWire(t *testing.T) {
	want, err := hex.DecodeString(wire)
	require.NoError(t, err)
	request := NewRequest(member, 258, 1)
	require.Equal(t, want, request.Encode())
	require.Len(t, want, RequestSize)
	got, err := Parse(want)
	require.NoError(t, err)
	require.Equal(t, request, got)
}

func TestParseRefuses(t *testing.T) {
	good := NewRequest(member, 0, 0).Encode()
	for name, bad := range map[string][]byte{
		"nothing": nil, "cut off": good[:len(good)-1], "more": append(bytes.Clone(good), 0),
		"another version": append([]byte("lens\x00bc\x02"), good[8:]...), "HTTP": []byte(strings.Repeat("GET / HTTP/1.1\r\n", 4)[:RequestSize]),
	} {
		_, err := Parse(bad)
		require.ErrorIs(t, err, ErrNoRequest, name)
	}
}

func TestJudge(t *testing.T) {
	has := NewRequest(broadcast.Member{Job: "job 7", Rank: 1, WorldSize: 4}, 5, 1)
	for _, c := range []struct {
		name   string
		change func(*broadcast.Member, *uint64, *int)
		want   Verdict
		final  bool
	}{
		{"what it has", func(*broadcast.Member, *uint64, *int) {}, Here, false},
		{"a later one", func(_ *broadcast.Member, round *uint64, _ *int) { *round = 6 }, Early, false},
		{"an earlier one", func(_ *broadcast.Member, round *uint64, _ *int) { *round = 4 }, Late, true},
		{"another job", func(m *broadcast.Member, _ *uint64, _ *int) { m.Job = "job 8" }, OtherJob, false},
		{"a larger world", func(m *broadcast.Member, _ *uint64, _ *int) { m.WorldSize = 8 }, OtherWorld, true},
		{"a rank beyond the world", func(m *broadcast.Member, _ *uint64, _ *int) { m.Rank = 4 }, OtherWorld, true},
		{"another source", func(_ *broadcast.Member, _ *uint64, source *int) { *source = 0 }, OtherRank, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, round, source := member, uint64(5), 1
			c.change(&m, &round, &source)
			got := has.Judge(NewRequest(m, round, source))
			require.Equal(t, c.want, got)
			tries := 0
			_, err := Retry(t.Context(), func() (int, error) {
				if tries++; tries == 2 {
					return 0, nil
				}
				return 0, got.Err()
			})
			require.Equal(t, c.final, err != nil, "asked again unless it is final")
		})
	}
	require.ErrorContains(t, verdicts.Err(), "is not known")
}

func TestReadAnswer(t *testing.T) {
	good := EncodeAnswer(Here, []byte("data"))
	require.Equal(t, "lens\x00bc\x01\x00\x00\x00\x00\x04data", string(good))
	huge := EncodeAnswer(Here, nil)
	copy(huge[9:], "\xff\xff\xff\xff")
	for _, c := range []struct {
		name, from, want, err string
	}{
		{"whole", string(good), "data", ""},
		{"empty", string(EncodeAnswer(Here, nil)), "", ""},
		{"nothing", "", "", "read the answer: EOF"},
		{"cut off in the head", string(good[:12]), "", "unexpected EOF"},
		{"cut off in the data", string(good[:15]), "", "read 4 bytes of data"},
		{"another protocol", "SSH-2.0-OpenSSH_9.9\r\n", "", "something else answers"},
		{"a refusal", string(EncodeAnswer(OtherWorld, nil)), "", "another world size"},
		{"a verdict of another version", string(EncodeAnswer(verdicts, nil)), "", "answer 6 is not known"},
		{"more than may be", string(huge), "", "an answer of 4294967295 bytes is announced: at most 262144"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadAnswer(strings.NewReader(c.from))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
}

func TestCheckSize(t *testing.T) {
	require.NoError(t, CheckSize(make([]byte, lens.MaxBroadcast)))
	require.ErrorContains(t, CheckSize(make([]byte, lens.MaxBroadcast+1)), "262145 bytes to hand on: must be at most 262144")
}

func TestRoll(t *testing.T) {
	roll := NewRoll(11, 0)
	ended, end := context.WithCancel(t.Context())
	end()
	require.EqualError(t, roll.Wait(ended), "context canceled: 10 of 11 ranks did not come for it (1, 2, 3, 4, 5, 6, 7, 8, …)")
	for rank := range 10 {
		roll.Served(rank)
		roll.Served(rank) // again
	}
	require.EqualError(t, roll.Missing(), "1 of 11 ranks did not come for it (10)")
	roll.Served(10)
	require.NoError(t, roll.Missing())
	require.NoError(t, roll.Wait(t.Context()))
	require.NoError(t, roll.Wait(ended), "that all have it is told first")
	require.NoError(t, NewRoll(1, 0).Wait(ended))
}

func TestRetry(t *testing.T) {
	refused := errors.New("refused")
	t.Run("until it succeeds", func(t *testing.T) {
		left := 3
		got, err := Retry(t.Context(), func() (string, error) {
			if left--; left > 0 {
				return "", refused
			}
			return "there", nil
		})
		require.NoError(t, err)
		require.Equal(t, "there", got)
	})
	t.Run("until it fails finally", func(t *testing.T) {
		_, err := Retry(t.Context(), func() (int, error) { return 0, Final(refused) })
		require.Equal(t, refused, err)
	})
	t.Run("until the context ends", func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		_, err := Retry(ctx, func() (int, error) {
			if ctx.Err() == nil {
				end()
				return 0, refused
			}
			return 0, ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("with what was wrong before the context ended", func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		tries := 0
		_, err := Retry(ctx, func() (int, error) {
			if tries++; tries == 1 {
				return 0, refused
			}
			end()
			return 0, ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, refused)
	})
}

func FuzzParse(f *testing.F) {
	f.Add(NewRequest(member, 7, 0).Encode())
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if request, err := Parse(data); err == nil {
			require.Equal(t, data, request.Encode())
		}
	})
}

func FuzzReadAnswer(f *testing.F) {
	f.Add(EncodeAnswer(Here, []byte("{}")))
	f.Add(EncodeAnswer(Late, nil))
	f.Add([]byte("lens\x00bc\x01\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		got, err := ReadAnswer(r)
		if err != nil {
			return
		}
		rest, _ := io.ReadAll(r)
		require.Equal(t, data, append(EncodeAnswer(Here, got), rest...))
	})
}
