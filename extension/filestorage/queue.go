// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package filestorage

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protowire"
)

// metadataKey is where exporterhelper's queue keeps which items there are, as the message PersistentMetadata of its meta.proto:
// fixed64 write_index = 4, repeated fixed64 currently_dispatched_items = 5. An item's key is its index.
const (
	metadataKey     = "qmv0"
	writeIndex      = protowire.Number(4)
	dispatchedItems = protowire.Number(5)
)

// putBack appends what was being sent when the process before ended to the queue, in one transaction.
func putBack(ctx context.Context, client storage.Client) error {
	metadata, err := client.Get(ctx, metadataKey)
	if err != nil || len(metadata) == 0 {
		return err
	}
	rest, next, dispatched, err := splitMetadata(metadata)
	if err != nil || len(dispatched) == 0 {
		return err
	}
	var gets, ops []*storage.Operation
	for _, index := range dispatched {
		gets = append(gets, storage.GetOperation(itemKey(index)))
	}
	if err := client.Batch(ctx, gets...); err != nil {
		return err
	}
	for _, item := range gets {
		if item.Value == nil {
			continue // It was sent, and that was not yet written down.
		}
		ops = append(ops, storage.DeleteOperation(item.Key), storage.SetOperation(itemKey(next), item.Value))
		next++
	}
	rest = protowire.AppendTag(rest, writeIndex, protowire.Fixed64Type)
	rest = protowire.AppendFixed64(rest, next)
	return client.Batch(ctx, append(ops, storage.SetOperation(metadataKey, rest))...)
}

func itemKey(index uint64) string { return strconv.FormatUint(index, 10) }

// splitMetadata takes the index of the next item and the items that are being sent out of the queue's metadata.
func splitMetadata(metadata []byte) (rest []byte, next uint64, dispatched []uint64, err error) {
	for len(metadata) > 0 {
		number, kind, n := protowire.ConsumeField(metadata)
		if n < 0 {
			return nil, 0, nil, protowire.ParseError(n)
		}
		field := metadata[:n]
		metadata = metadata[n:]
		value := field[protowire.SizeTag(number):]
		switch {
		case number == writeIndex && kind == protowire.Fixed64Type:
			next = binary.LittleEndian.Uint64(value)
		case number == dispatchedItems && kind == protowire.Fixed64Type:
			dispatched = append(dispatched, binary.LittleEndian.Uint64(value))
		case number == dispatchedItems && kind == protowire.BytesType:
			packed, _ := protowire.ConsumeBytes(value)
			for ; len(packed) >= 8; packed = packed[8:] {
				dispatched = append(dispatched, binary.LittleEndian.Uint64(packed))
			}
		case number == dispatchedItems || number == writeIndex:
			return nil, 0, nil, errors.New("the queue's metadata is not as this release writes it")
		default:
			rest = append(rest, field...)
		}
	}
	return rest, next, dispatched, nil
}

// queueClient is what exporterhelper's queue stores with.
type queueClient struct {
	storage.Client
	logger *zap.Logger

	mu   sync.Mutex
	held []*storage.Operation // what there was no room for, in its order; nil while all is written
}

// Batch does as the queue says. A new item that cannot be written is an error, and its sender has it. All else (that an item was taken out,
// or is done) is held back while it cannot be written: in the file the item waits on, so it is sent again at worst.
func (c *queueClient) Batch(ctx context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.Client.Batch(ctx, append(slices.Clone(c.held), ops...)...)
	if err == nil {
		if c.held != nil {
			c.logger.Info("The queue's storage takes what was held back")
			c.held = nil
		}
		return nil
	}
	var gets, changes []*storage.Operation
	for _, op := range ops {
		switch {
		case op.Type == storage.Get:
			gets = append(gets, op)
		case op.Type == storage.Set && op.Key != metadataKey:
			return err
		default:
			changes = append(changes, op)
		}
	}
	if len(gets) > 0 {
		if err := c.Client.Batch(ctx, gets...); err != nil {
			return err
		}
	}
	if c.held == nil && len(changes) > 0 {
		c.logger.Warn("The queue's storage has no room to say what was sent: it is sent again if the process ends before there is", zap.Error(err))
	}
	c.hold(changes)
	return nil
}

// hold keeps changes; of the metadata the newest alone.
func (c *queueClient) hold(changes []*storage.Operation) {
	c.held = slices.DeleteFunc(c.held, func(op *storage.Operation) bool {
		return op.Key == metadataKey && slices.ContainsFunc(changes, func(change *storage.Operation) bool { return change.Key == metadataKey })
	})
	c.held = append(c.held, changes...)
}

func (c *queueClient) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := c.Batch(ctx, op)
	return op.Value, err
}

func (c *queueClient) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

func (c *queueClient) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

// Close writes what was held back, if it can.
func (c *queueClient) Close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		if err := c.Client.Batch(ctx, c.held...); err != nil {
			c.logger.Warn("The queue's storage still has no room: what was sent meanwhile is sent again after the start", zap.Error(err))
		}
	}
	return c.Client.Close(ctx)
}
