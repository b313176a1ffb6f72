// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package folder is a transport of lens.Broadcast over a folder that all ranks share, as clusters have one: no port, no address,
// and any rank may be the source.
//
//	member, err := broadcast.FromEnv()
//	transport, err := folder.New(folder.Config{Member: member, Path: "/shared/rendezvous"})
//	carrier, err := lens.Broadcast(ctx, transport, 0)
//
// A rank asks by an empty file, a ticket, whose name has a number that it draws by chance. The source answers each ticket by
// a file beside it, and the rank removes that one when it has read it, by which the source knows. So what an earlier run
// of the same job left behind answers nobody, and when all have come nothing is left. Below Path, for a job J and the
// N-th broadcast, from rank S, that rank R asks for:
//
//	sha256(J), 32 hex digits/N-S-R-<16 hex digits>.want   empty
//	                        /N-S-R-<16 hex digits>.have   what the source sent; written as .tmp and renamed
//
// Whoever can write there can stand in for a rank or the source: the folders made have mode 0700, the files 0600. Links and
// whatever else is no plain file are not followed. Over NFS, one node sees what another did as late as its
// attribute cache allows, by default up to a minute.
package folder // import "github.com/lenscol/lenscol/sdk/broadcast/folder"

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"
)

// Config is where a transport stands.
type Config struct {
	broadcast.Member
	Path string // absolute, the same folder on all ranks; it is made where it is missing
}

// Transport is one for [lens.Broadcast].
type Transport struct {
	config Config
	folder string // of the job
	round  atomic.Uint64
}

var _ lens.Transport = (*Transport)(nil)

// New makes a transport. It touches no file.
func New(config Config) (*Transport, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("broadcast by a folder: %w", err)
	}
	job := sha256.Sum256([]byte(config.Job))
	return &Transport{config: config, folder: filepath.Join(config.Path, hex.EncodeToString(job[:16]))}, nil
}

// Validate reports the first field that cannot be.
func (c Config) Validate() error {
	if !filepath.IsAbs(c.Path) {
		return fmt.Errorf("path %q: must be absolute, and the same folder on all ranks", c.Path)
	}
	return c.Member.Validate()
}

// Rank is the rank of this process.
func (t *Transport) Rank() int { return t.config.Rank }

// Broadcast hands data of rank source to all ranks.
func (t *Transport) Broadcast(ctx context.Context, source int, data []byte) ([]byte, error) {
	round := t.round.Add(1) - 1
	err := t.config.ValidateSource(source)
	if err != nil {
		return data, err
	}
	if t.config.Rank == source {
		_, err = bounded(ctx, func() ([]byte, error) { return nil, t.answer(ctx, round, data) })
	} else {
		data, err = bounded(ctx, func() ([]byte, error) { return t.ask(ctx, newTicket(round, source, t.config.Rank)) })
	}
	if err != nil {
		return data, fmt.Errorf("by way of %s: %w", t.folder, err)
	}
	return data, nil
}

// ask leaves a ticket and takes what answers it.
func (t *Transport) ask(ctx context.Context, mine ticket) ([]byte, error) {
	root, err := exchange.Retry(ctx, func() (*os.Root, error) { return t.leave(mine) })
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data, err := exchange.Retry(ctx, func() ([]byte, error) {
		data, err := read(root, mine.have())
		if errors.Is(err, os.ErrNotExist) {
			err = errors.New("the source did not answer")
		}
		return data, err
	})
	if err == nil {
		_ = root.Remove(mine.have()) // By this the source knows. Who gives up leaves it.
	}
	_ = root.Remove(mine.want())
	_ = os.Remove(t.folder) // of the last one to leave: a folder that is not empty stays
	return data, err
}

// leave puts a ticket into the job's folder, which it returns.
func (t *Transport) leave(mine ticket) (*os.Root, error) {
	root, err := open(t.folder)
	if err != nil {
		return nil, err
	}
	if err := create(root, mine.want(), nil); err != nil { // perhaps the folder has just been removed
		root.Close()
		return nil, err
	}
	return root, nil
}
