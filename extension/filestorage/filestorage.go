// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package filestorage is contrib's file_storage, with its settings and its files, for queues that lose nothing of what they have acknowledged.
//
// exporterhelper's queue loses by the way in which it uses its storage, at three moments; the client that it gets here stands in between:
//
//   - At a start it takes what was being sent at the end of the process before, deletes it, and puts it back, one item after the other: a kill in
//     between loses items. They are put back here, in one transaction, before the queue looks.
//   - When it takes an item out it writes that down first, and throws the item away where that fails, as on a full disk. It is held back here until there is
//     room: what was sent meanwhile is sent again if the process ends before.
//   - A database that is torn in a place that is not looked at on opening ends the process whenever that place is reached. It is read through at the start, and
//     set aside where that fails, if `recreate` is on.
package filestorage // import "github.com/lenscol/lenscol/extension/filestorage"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	contrib "github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// NewFactory returns the factory of file_storage.
func NewFactory() extension.Factory {
	base := contrib.NewFactory()
	create := func(ctx context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
		ext, err := base.Create(ctx, set, cfg)
		if err != nil {
			return nil, err
		}
		return &fileStorage{Extension: ext.(storage.Extension), cfg: cfg.(*contrib.Config), logger: set.Logger}, nil
	}
	return extension.NewFactory(base.Type(), base.CreateDefaultConfig, create, base.Stability())
}

type fileStorage struct {
	storage.Extension
	cfg    *contrib.Config
	logger *zap.Logger
}

// GetClient opens the database of a component, that of an exporter's queue in the state in which the queue needs it.
func (s *fileStorage) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	if s.cfg.Recreate {
		if err := s.setAsideTorn(s.path(kind, id, name)); err != nil {
			return nil, err
		}
	}
	client, err := s.Extension.GetClient(ctx, kind, id, name)
	if err != nil || kind != component.KindExporter {
		return client, err
	}
	queue := &queueClient{Client: client, logger: s.logger.With(zap.Stringer("exporter", id))}
	if err := queue.putBack(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("queue of %s: put back what was being sent: %w", id, err), client.Close(ctx))
	}
	return queue, nil
}

// path is the file that contrib gives a client.
func (s *fileStorage) path(kind component.Kind, id component.ID, name string) string {
	raw := fmt.Sprintf("%s_%s_%s", strings.ToLower(kind.String()), id.Type(), id.Name())
	if name != "" {
		raw += "_" + name
	}
	return filepath.Join(s.cfg.Directory, unsafe.ReplaceAllStringFunc(raw, func(c string) string { return fmt.Sprintf("~%04X", []rune(c)[0]) }))
}

var unsafe = regexp.MustCompile(`[^a-zA-Z0-9._-]`)

// setAsideTorn renames a database that cannot be read to its end. contrib does that where opening panics; but bbolt opens much that is torn, and panics in
// goroutines of its own, or on each use.
func (s *fileStorage) setAsideTorn(path string) error {
	torn := readThrough(path, s.cfg.Timeout)
	if torn == nil {
		return nil
	}
	aside := path + "." + time.Now().UTC().Format("20060102T150405.000Z0700") + ".backup"
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("set aside %s, which is torn: %w", path, err)
	}
	s.logger.Error("A queue's database is torn and was set aside: what waited in it is not sent", zap.String("file", aside), zap.Error(torn))
	return nil
}

// readThrough returns why a database is torn. What hinders reading otherwise is for those who open it next.
func readThrough(path string, timeout time.Duration) (torn error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if info.Size() == 0 {
		return errors.New("the file is empty")
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // As where the file ends before its last page.
	defer func() {
		if r := recover(); r != nil {
			torn = fmt.Errorf("%v", r)
		}
	}()
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: timeout})
	if err != nil {
		for _, known := range []error{berrors.ErrInvalid, berrors.ErrVersionMismatch, berrors.ErrChecksum} {
			if errors.Is(err, known) {
				return err
			}
		}
		if strings.Contains(err.Error(), "file size too small") {
			return err
		}
		return nil
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, bucket *bbolt.Bucket) error {
			var before, end []byte
			room := info.Size()
			return bucket.ForEach(func(key, value []byte) error {
				if before != nil && bytes.Compare(before, key) >= 0 {
					return errors.New("keys are out of order")
				}
				before = key
				// A length of gigabytes may end in memory that is not the file's, and that contrib copies.
				if room -= int64(len(key) + len(value)); room < 0 {
					return errors.New("values are longer than the file")
				}
				end = append(end[:0], value[max(len(value)-1, 0):]...) // It is in the file.
				return nil
			})
		})
	})
}
