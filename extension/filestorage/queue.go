// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package filestorage

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
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

// putBack appends what was being sent when the process before ended to the queue, in one transaction. Where there is no room for that, the queue
// starts all the same: it is held.
func (c *queueClient) putBack(ctx context.Context) error {
	metadata, err := c.Get(ctx, metadataKey)
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
	if err := c.read(ctx, gets...); err != nil {
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
	ops = append(ops, storage.SetOperation(metadataKey, rest))
	if err := c.Client.Batch(ctx, ops...); err != nil {
		c.warn(err)
		c.keep(ops...)
	}
	return nil
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
	held map[string]*storage.Operation // what there was no room for, by its key
}

// Batch does as the queue says. A new item that cannot be written is an error, and its sender has it. All else (that an item was taken out,
// or is done) is held back while it cannot be written: in the file the item waits on, so it is sent again at worst. What is held is tried
// again with each new item and at the end, not with each item that is sent: bbolt reads all of its pages after a transaction that failed.
func (c *queueClient) Batch(ctx context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	isNew := slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Type == storage.Set && op.Key != metadataKey })
	isChange := slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Type != storage.Get })
	if isNew || isChange && len(c.held) == 0 {
		err := c.Client.Batch(ctx, slices.AppendSeq(slices.Collect(maps.Values(c.held)), slices.Values(ops))...)
		if err == nil {
			if len(c.held) > 0 {
				c.logger.Info("The queue's storage takes what was held back")
				c.held = nil
			}
			return nil
		}
		if isNew {
			return err
		}
		c.warn(err)
	}
	for _, op := range ops {
		if op.Type == storage.Get {
			if err := c.read(ctx, op); err != nil {
				return err
			}
			continue
		}
		// The queue takes out and deletes an item for each that was refused, too: whoever sends again and again would fill the memory with them.
		if op.Type == storage.Delete {
			there := storage.GetOperation(op.Key)
			if err := c.read(ctx, there); err != nil {
				return err
			}
			if there.Value == nil {
				continue
			}
		}
		c.keep(op)
	}
	return nil
}

func (c *queueClient) warn(err error) {
	c.logger.Warn("The queue's storage has no room to say what was sent: it is sent again if the process ends before there is", zap.Error(err))
}

func (c *queueClient) keep(changes ...*storage.Operation) {
	if c.held == nil {
		c.held = map[string]*storage.Operation{}
	}
	for _, op := range changes {
		c.held[op.Key] = op
	}
}

// unread is the value of what was not looked at.
var unread = []byte("unread")

// read looks into what is held, and then into the file. contrib commits a transaction that only reads, too, and a disk may have no room for that, or take
// no writes any more; what was read before is right all the same, and an error would have the queue throw the item away.
func (c *queueClient) read(ctx context.Context, gets ...*storage.Operation) error {
	var file []*storage.Operation
	for _, get := range gets {
		if op, ok := c.held[get.Key]; ok {
			get.Value = op.Value
			continue
		}
		get.Value = unread
		file = append(file, get)
	}
	if len(file) == 0 {
		return nil
	}
	err := c.Client.Batch(ctx, file...)
	if slices.ContainsFunc(file, func(get *storage.Operation) bool { return len(get.Value) > 0 && &get.Value[0] == &unread[0] }) {
		return err
	}
	return nil
}

func (c *queueClient) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	if err := c.Batch(ctx, op); err != nil {
		return nil, err
	}
	return op.Value, nil
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
	if len(c.held) > 0 {
		if err := c.Client.Batch(ctx, slices.Collect(maps.Values(c.held))...); err != nil {
			c.logger.Warn("The queue's storage still has no room: what was sent meanwhile is sent again after the start", zap.Error(err))
		}
	}
	return c.Client.Close(ctx)
}
