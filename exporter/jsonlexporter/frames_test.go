// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
)

var compressions = []Compression{CompressionGzip, CompressionZstd}

// unpack decompresses with the library's stock readers, up to the first error.
func unpack(t *testing.T, c Compression, data []byte) ([]byte, error) {
	t.Helper()
	if c == CompressionGzip {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}
	r, err := zstd.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer r.Close()
	return io.ReadAll(r)
}

// TestStockToolsReadAnActiveFile reads with zcat and zstd -dc what was acknowledged, while the file is being written.
func TestStockToolsReadAnActiveFile(t *testing.T) {
	for _, c := range compressions {
		t.Run(string(c), func(t *testing.T) {
			folder := t.TempDir()
			cfg := testConfig(folder)
			cfg.Compression = c
			e := startTraces(t, cfg, componenttest.NewNopHost())
			file := filepath.Join(folder, "traces.jsonl"+c.extension())
			tool := map[Compression][]string{CompressionGzip: {"zcat"}, CompressionZstd: {"zstd", "-dc"}}[c]
			for i := range 3 {
				require.NoError(t, e.ConsumeTraces(t.Context(), numbered(0, i*10, 10)))
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				text, err := unpack(t, c, data)
				require.NoError(t, err)
				require.Equal(t, spanNames(0, (i+1)*10), checkFile(t, file, text))
				if _, err := exec.LookPath(tool[0]); err == nil {
					out, err := exec.Command(tool[0], append(tool[1:], file)...).Output()
					require.NoError(t, err)
					require.Equal(t, string(text), string(out))
				} else {
					t.Logf("%s is not installed: read with the library alone", tool[0])
				}
			}
		})
	}
}

// TestDecompressedEqualsPlain writes the same requests with every compression.
func TestDecompressedEqualsPlain(t *testing.T) {
	var plain string
	for _, c := range append([]Compression{CompressionNone}, compressions...) {
		folder := t.TempDir()
		cfg := testConfig(folder)
		cfg.Compression = c
		e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), cfg)
		require.NoError(t, err)
		require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
		for i := range 5 {
			require.NoError(t, e.ConsumeTraces(t.Context(), numbered(int64(i%2), i*100, 100)))
		}
		require.NoError(t, e.Shutdown(t.Context()))
		data, err := os.ReadFile(filepath.Join(folder, "traces.jsonl"+c.extension()))
		require.NoError(t, err)
		if c == CompressionNone {
			plain = string(data)
			continue
		}
		text, err := unpack(t, c, data)
		require.NoError(t, err)
		require.Equal(t, plain, string(text))
		require.Less(t, len(data), len(plain)/2)
	}
}

// TestTornFrame cuts a file at every byte of its last frame, as a kill may, and goes on writing to it.
func TestTornFrame(t *testing.T) {
	for _, c := range compressions {
		t.Run(string(c), func(t *testing.T) {
			fr, err := newFraming(c, 0)
			require.NoError(t, err)
			first := `{"type":"resource","id":1}` + "\n" + `{"type":"scope","id":1,"resource":1}` + "\n" + `{"type":"span","name":"old","scope":1}` + "\n"
			whole := bytes.Clone(fr.frame([]byte(first)))
			last := bytes.Clone(fr.frame([]byte(strings.Repeat(`{"type":"span","name":"torn","scope":1}`+"\n", 50))))
			for cut := range last {
				data := append(bytes.Clone(whole), last[:cut]...)
				end, err := lastFrameEnd(fr, bytes.NewReader(data), int64(len(data)))
				require.NoError(t, err, "cut at %d", cut)
				require.EqualValues(t, len(whole), end, "cut at %d", cut)
			}
			both := append(bytes.Clone(whole), last...)
			end, err := lastFrameEnd(fr, bytes.NewReader(both), int64(len(both)))
			require.NoError(t, err)
			require.EqualValues(t, len(both), end)

			folder := t.TempDir()
			path := filepath.Join(folder, "traces.jsonl"+c.extension())
			require.NoError(t, os.WriteFile(path, both[:len(both)-3], 0o600))
			cfg := testConfig(folder)
			cfg.Compression = c
			e := startTraces(t, cfg, componenttest.NewNopHost())
			require.NoError(t, e.ConsumeTraces(t.Context(), numbered(0, 1, 1)))
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			text, err := unpack(t, c, data)
			require.NoError(t, err)
			require.Equal(t, []string{"old", "span-000001"}, checkFile(t, path, text))
		})
	}
}

// TestDamagedFrames has corruptions that are not a torn end.
func TestDamagedFrames(t *testing.T) {
	for _, c := range compressions {
		fr, err := newFraming(c, 0)
		require.NoError(t, err)
		random := rand.New(rand.NewPCG(1, 2))
		var text []byte
		for range 200 {
			text = fmt.Appendf(text, `{"type":"span","name":"%x"}`+"\n", random.Uint64())
		}
		frame := bytes.Clone(fr.frame(text))
		two := append(bytes.Clone(frame), frame...)
		for _, tt := range []struct {
			name    string
			corrupt func() []byte
			end     int
			err     error
		}{
			{"zeros behind a frame", func() []byte { return append(bytes.Clone(frame), make([]byte, 100_000)...) }, len(frame), nil},
			{"zeros within the last frame", func() []byte {
				b := bytes.Clone(two)
				clear(b[len(frame)+25 : len(two)-1])
				return b
			}, len(frame), nil},
			{"garbage between frames", func() []byte {
				return append(append(bytes.Clone(frame), "garbage, and quite a lot of it, between two frames"...), frame...)
			}, 0, errDamaged},
			{"a length that points beyond the file", func() []byte {
				b := append(bytes.Clone(two), frame...)
				damageLength(c, b[len(frame):])
				return b
			}, 0, errDamaged},
			{"nothing but zeros", func() []byte { return make([]byte, 100_000) }, 0, nil},
			{"plain lines", func() []byte { return []byte(strings.Repeat("{}\n", 1000)) }, 0, errNotOurs},
			{"empty", func() []byte { return nil }, 0, nil},
		} {
			t.Run(string(c)+" "+tt.name, func(t *testing.T) {
				data := tt.corrupt()
				end, err := lastFrameEnd(fr, bytes.NewReader(data), int64(len(data)))
				require.ErrorIs(t, err, tt.err)
				require.EqualValues(t, tt.end, end)
			})
		}
	}
}

// damageLength has a frame say that it is longer than its file.
func damageLength(c Compression, frame []byte) {
	if c == CompressionGzip {
		frame[gzipLengthAt+2] = 0x7f
		return
	}
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		panic(err) // The frame is one of ours.
	}
	frame[h.HeaderSize+2] = 0x0f // the high byte of its first block's length
}

// TestDamagedFileIsSetAside keeps what may still be read of it, and goes on.
func TestDamagedFileIsSetAside(t *testing.T) {
	fr, err := newFraming(CompressionZstd, 0)
	require.NoError(t, err)
	frame := fr.frame([]byte("{}\n"))
	damaged := append(append(bytes.Clone(frame), "garbage, and quite a lot of it, between two frames"...), frame...)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "traces.jsonl.zst"), damaged, 0o600))
	cfg := testConfig(folder)
	cfg.Compression = CompressionZstd
	e := startTraces(t, cfg, componenttest.NewNopHost())
	require.NoError(t, e.ConsumeTraces(t.Context(), numbered(0, 0, 1)))
	aside, err := filepath.Glob(filepath.Join(folder, "traces-*.jsonl.zst"))
	require.NoError(t, err)
	require.Len(t, aside, 1)
	data, err := os.ReadFile(aside[0])
	require.NoError(t, err)
	require.Equal(t, damaged, data)
}

func FuzzFrames(f *testing.F) {
	for _, c := range compressions {
		fr, err := newFraming(c, 0)
		if err != nil {
			f.Fatal(err)
		}
		frame := bytes.Clone(fr.frame([]byte("{\"type\":\"span\"}\n")))
		f.Add(frame)
		f.Add(append(bytes.Clone(frame), frame[:len(frame)/2]...))
		f.Add(append(bytes.Clone(frame), make([]byte, 40)...))
	}
	f.Add([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range compressions {
			fr, err := newFraming(c, 0)
			require.NoError(t, err)
			end, err := lastFrameEnd(fr, bytes.NewReader(data), int64(len(data)))
			if err != nil {
				continue
			}
			require.LessOrEqual(t, end, int64(len(data)))
			if end > 0 {
				again, err := lastFrameEnd(fr, bytes.NewReader(data[:end]), end)
				require.NoError(t, err)
				require.Equal(t, end, again, "what was cut is whole")
			}
		}
	})
}
