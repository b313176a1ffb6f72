// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package filestorage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	contrib "github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A process that ends at any moment of its start leaves every item that was being sent in the database: each state that the file has had is a moment.
func TestNothingIsLostByAKillAtTheStart(t *testing.T) {
	folder := t.TempDir()
	hung := make(chan struct{})
	e := newQueue(t, newExtension(t, folder), func(context.Context, ptrace.Traces) error { <-hung; return errors.New("no") })
	for i := range 8 {
		require.NoError(t, e.ConsumeTraces(t.Context(), spans(i)))
	}
	path := filepath.Join(folder, "exporter_test__traces")
	var killed []byte
	require.Eventually(t, func() bool {
		var err error
		killed, err = os.ReadFile(path)
		require.NoError(t, err)
		return bytes.Count(killed, []byte("span 7")) > 0 && waiting(t, killed) == 8 && dispatched(t, killed) == 8
	}, time.Minute, time.Millisecond)

	// The queue starts, and the file is looked at after each transaction.
	begun := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(begun, filepath.Base(path)), killed, 0o600))
	var states atomic.Int64
	var started atomic.Bool
	ext := newExtension(t, begun)
	ext.Extension = &watched{Extension: ext.Extension, after: func() {
		if started.Load() {
			return
		}
		state, err := os.ReadFile(filepath.Join(begun, filepath.Base(path)))
		require.NoError(t, err)
		require.Equal(t, 8, waiting(t, state), "after transaction %d", states.Add(1))
	}}
	again := newQueue(t, ext, func(context.Context, ptrace.Traces) error { <-hung; return errors.New("no") })
	started.Store(true)
	require.GreaterOrEqual(t, states.Load(), int64(2))

	// It starts on a disk without room too, sends them all, and takes note of that once there is room.
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, filepath.Base(path)), killed, 0o600))
	ext = newExtension(t, full)
	noRoom := &watched{Extension: ext.Extension, full: &atomic.Bool{}, after: func() {}}
	noRoom.full.Store(true)
	ext.Extension = noRoom
	var mu sync.Mutex
	sent := map[string]int{}
	third := newQueue(t, ext, func(_ context.Context, td ptrace.Traces) error {
		mu.Lock()
		defer mu.Unlock()
		sent[name(td)]++
		return nil
	})
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(sent) == 8 }, time.Minute, time.Millisecond)
	state, err := os.ReadFile(filepath.Join(full, filepath.Base(path)))
	require.NoError(t, err)
	require.Equal(t, 8, waiting(t, state), "the disk takes nothing")
	noRoom.full.Store(false)
	require.NoError(t, third.Shutdown(t.Context()))
	state, err = os.ReadFile(filepath.Join(full, filepath.Base(path)))
	require.NoError(t, err)
	require.Zero(t, waiting(t, state))

	close(hung)
	require.NoError(t, e.Shutdown(t.Context()))
	require.NoError(t, again.Shutdown(t.Context()))
}

// What is in a queue whose storage has no room is sent, and what is refused is not.
func TestNothingIsLostByAFullDisk(t *testing.T) {
	folder := t.TempDir()
	var full atomic.Bool
	ext := newExtension(t, folder)
	ext.Extension = &watched{Extension: ext.Extension, full: &full, after: func() {}}
	release := make(chan struct{})
	var mu sync.Mutex
	sent := map[string]int{}
	e := newQueue(t, ext, func(_ context.Context, td ptrace.Traces) error {
		<-release
		if td.SpanCount() == 0 {
			return nil // What the queue makes of an item that it could not write.
		}
		mu.Lock()
		defer mu.Unlock()
		sent[name(td)]++
		return nil
	})
	for i := range 30 {
		require.NoError(t, e.ConsumeTraces(t.Context(), spans(i)))
	}
	full.Store(true)
	require.ErrorIs(t, e.ConsumeTraces(t.Context(), spans(30)), storage.ErrStorageFull)
	close(release)
	all := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(sent)
	}
	require.Eventually(t, func() bool { return all() == 30 }, time.Minute, time.Millisecond)
	full.Store(false)
	require.NoError(t, e.ConsumeTraces(t.Context(), spans(31)))
	require.Eventually(t, func() bool { return all() == 31 }, time.Minute, time.Millisecond)
	require.NoError(t, e.Shutdown(t.Context()))
	for name, n := range sent {
		require.Equal(t, 1, n, name)
	}
	state, err := os.ReadFile(filepath.Join(folder, "exporter_test__traces"))
	require.NoError(t, err)
	require.Zero(t, waiting(t, state), "what was held back is written")
}

// Whoever is refused again and again, for hours, fills no memory.
func TestRefusedItemsAreNotHeld(t *testing.T) {
	ext := newExtension(t, t.TempDir())
	var full atomic.Bool
	ext.Extension = &watched{Extension: ext.Extension, full: &full, after: func() {}}
	client, err := ext.GetClient(t.Context(), component.KindExporter, component.MustNewID("test"), "traces")
	require.NoError(t, err)
	metadata := storage.SetOperation(metadataKey, []byte{1})
	require.NoError(t, client.Batch(t.Context(), metadata, storage.SetOperation("0", []byte("item"))))
	full.Store(true)
	require.NoError(t, client.Batch(t.Context(), metadata, storage.DeleteOperation("0")))
	for i := range 100 {
		key := itemKey(uint64(i + 1))
		require.ErrorIs(t, client.Batch(t.Context(), metadata, storage.SetOperation(key, []byte("item"))), storage.ErrStorageFull)
		require.NoError(t, client.Batch(t.Context(), metadata, storage.GetOperation(key)))
		require.NoError(t, client.Batch(t.Context(), metadata, storage.DeleteOperation(key)))
	}
	require.Len(t, client.(*queueClient).held, 2, "that 0 is done, and the metadata")
	require.NoError(t, client.Close(t.Context()))
}

// A database that is torn anywhere is set aside, and that is said; one that is whole is not touched.
func TestTornDatabase(t *testing.T) {
	for _, tt := range []struct {
		name string
		tear func(b []byte) []byte
		torn bool
	}{
		{"whole", func(b []byte) []byte { return b }, false},
		{"empty", func([]byte) []byte { return nil }, true},
		{"a page", func(b []byte) []byte { return b[:4096] }, true},
		{"half", func(b []byte) []byte { return b[:len(b)/2] }, true},
		{"no meta pages", func(b []byte) []byte { clear(b[:8192]); return b }, true},
		{"meta pages alone", func(b []byte) []byte { clear(b[8192:]); return b }, true},
		{"something else", func([]byte) []byte { return make([]byte, 1<<20) }, true},
		{"keys out of order", func(b []byte) []byte { return swapKeys(b) }, true},
		{"values longer than the file", func(b []byte) []byte { return append(stretch(b[:len(b)/2]), b[len(b)/2:]...) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "exporter_test__traces")
			ext := newExtension(t, folder)
			core, logs := observer.New(zapcore.ErrorLevel)
			ext.logger = zap.New(core)
			client, err := ext.GetClient(t.Context(), component.KindExporter, component.MustNewID("test"), "traces")
			require.NoError(t, err)
			for i := range 100 {
				require.NoError(t, client.Set(t.Context(), fmt.Sprintf("key%03d", i), make([]byte, 3000)))
			}
			require.NoError(t, client.Close(t.Context()))
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, tt.tear(b), 0o600))

			client, err = ext.GetClient(t.Context(), component.KindExporter, component.MustNewID("test"), "traces")
			require.NoError(t, err)
			value, err := client.Get(t.Context(), "key007")
			require.NoError(t, err)
			require.Equal(t, tt.torn, value == nil)
			require.NoError(t, client.Close(t.Context()))
			aside, err := filepath.Glob(path + ".*.backup")
			require.NoError(t, err)
			require.Equal(t, tt.torn, len(aside) == 1)
			require.Equal(t, tt.torn, logs.Len() == 1)
		})
	}
}

// The file that is read through is the one that contrib gives a client.
func TestPath(t *testing.T) {
	for _, tt := range []struct {
		id   component.ID
		name string
	}{
		{component.MustNewID("otlp_http"), "traces"},
		{component.MustNewIDWithName("weave", "a/b ~ä"), "logs"},
		{component.MustNewIDWithName("weave", "../.."), ""},
	} {
		folder := t.TempDir()
		ext := newExtension(t, folder)
		client, err := ext.GetClient(t.Context(), component.KindExporter, tt.id, tt.name)
		require.NoError(t, err)
		require.NoError(t, client.Close(t.Context()))
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		require.NoError(t, err)
		require.Equal(t, []string{ext.path(component.KindExporter, tt.id, tt.name)}, files)
	}
}

// swapKeys makes two neighbours of a leaf change places.
func swapKeys(b []byte) []byte {
	for _, pair := range [][2]string{{"key040", "KEY041"}, {"key041", "key040"}, {"KEY041", "key041"}} {
		b = bytes.ReplaceAll(b, []byte(pair[0]), []byte(pair[1]))
	}
	return b
}

// stretch adds 64 KiB to the length of each value. In an element of a leaf it stands behind that of the key.
func stretch(b []byte) []byte {
	lengths := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 6), 3000)
	return bytes.ReplaceAll(b, lengths, binary.LittleEndian.AppendUint32(lengths[:4:4], 3000+64<<10))
}

func newExtension(t *testing.T, folder string) *fileStorage {
	t.Helper()
	factory := NewFactory()
	cfg := factory.CreateDefaultConfig().(*contrib.Config)
	cfg.Directory, cfg.Recreate = folder, true
	ext, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	return ext.(*fileStorage)
}

// newQueue starts an exporter of the core's own with a queue in the storage.
func newQueue(t *testing.T, ext *fileStorage, push func(context.Context, ptrace.Traces) error) exporter.Traces {
	t.Helper()
	id := component.MustNewID("file_storage")
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.StorageID = &id
	set := exportertest.NewNopSettings(component.MustNewType("test"))
	set.ID = component.MustNewID("test")
	e, err := exporterhelper.NewTraces(t.Context(), set, struct{}{}, push, exporterhelper.WithQueue(configoptional.Some(queue)))
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host{id: ext}))
	return e
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

func spans(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(fmt.Sprint("span ", n))
	return td
}

func name(td ptrace.Traces) string {
	return td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Name()
}

// watched is a storage that is looked at after each transaction, and that has no room for changes while it is full.
type watched struct {
	storage.Extension
	full  *atomic.Bool
	after func()
}

func (w *watched) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	client, err := w.Extension.GetClient(ctx, kind, id, name)
	return &watchedClient{client, w}, err
}

type watchedClient struct {
	storage.Client
	*watched
}

// Batch has no room as bbolt has none: it finds out when it commits, even what only reads.
func (w *watchedClient) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if w.full != nil && w.full.Load() {
		for _, op := range ops {
			if op.Type == storage.Get {
				if err := w.Client.Batch(ctx, op); err != nil {
					return err
				}
			}
		}
		return storage.ErrStorageFull
	}
	defer w.after()
	return w.Client.Batch(ctx, ops...)
}

// waiting counts the items of a database that a queue would send: those that are not yet taken out, and those that are being sent.
func waiting(t *testing.T, state []byte) (n int) {
	t.Helper()
	metadata, items := content(t, state)
	for item := range items {
		if item >= binary.LittleEndian.Uint64(fixed(metadata, 3)) || slices.Contains(beingSent(t, metadata), item) {
			n++
		}
	}
	return n
}

func dispatched(t *testing.T, state []byte) int {
	t.Helper()
	metadata, _ := content(t, state)
	return len(beingSent(t, metadata))
}

func beingSent(t *testing.T, metadata []byte) []uint64 {
	t.Helper()
	_, _, dispatched, err := splitMetadata(metadata)
	require.NoError(t, err)
	return dispatched
}

// fixed is a fixed64 field of a message.
func fixed(message []byte, want protowire.Number) []byte {
	for len(message) > 0 {
		number, _, n := protowire.ConsumeField(message)
		if number == want {
			return message[n-8 : n]
		}
		message = message[n:]
	}
	return make([]byte, 8)
}

func content(t *testing.T, state []byte) (metadata []byte, items map[uint64]bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(path, state, 0o600))
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	items = map[uint64]bool{}
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("default")).ForEach(func(key, value []byte) error {
			if index, err := strconv.ParseUint(string(key), 10, 64); err == nil {
				items[index] = true
			} else if string(key) == metadataKey {
				metadata = bytes.Clone(value)
			}
			return nil
		})
	}))
	return metadata, items
}
