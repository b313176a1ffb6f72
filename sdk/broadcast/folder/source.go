// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package folder // import "github.com/lenscol/lenscol/sdk/broadcast/folder"

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lenscol/lenscol/sdk/broadcast"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"
)

// answer serves the tickets of a broadcast until all ranks have data or ctx ends.
func (t *Transport) answer(ctx context.Context, round uint64, data []byte) error {
	if err := exchange.CheckSize(data); err != nil || t.config.WorldSize == 1 {
		return err
	}
	s := newSource(t.config.Member, round, data)
	_, err := exchange.Retry(ctx, func() (struct{}, error) {
		// Opened each time: ranks that leave an earlier broadcast remove the folder when they find it empty.
		err := t.within(s.look)
		if err == nil {
			err = s.roll.Missing()
		}
		return struct{}{}, err
	})
	_ = t.within(s.clean)
	_ = os.Remove(t.folder)
	return err
}

func (t *Transport) within(do func(*os.Root) error) error {
	root, err := open(t.folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root)
}

// source is the one side of a broadcast.
type source struct {
	round           uint64
	rank, worldSize int
	data            []byte
	roll            *exchange.Roll
	answered        map[ticket]bool // and whether the answer has been taken
}

func newSource(m broadcast.Member, round uint64, data []byte) *source {
	return &source{round, m.Rank, m.WorldSize, data, exchange.NewRoll(m.WorldSize, m.Rank), map[ticket]bool{}}
}

// look goes through the folder once: it notes who took an answer away, and answers new tickets.
func (s *source) look(root *os.Root) error {
	for ticket, taken := range s.answered {
		if taken {
			continue
		}
		if _, err := root.Lstat(ticket.have()); errors.Is(err, os.ErrNotExist) {
			s.answered[ticket] = true
			s.roll.Served(ticket.rank)
		}
	}
	return s.files(root, func(asked ticket, suffix string) error {
		if _, answered := s.answered[asked]; suffix != "want" || answered {
			return nil
		}
		// A rank has one ticket, others are of processes that have ended.
		if limit := 1024 + 16*s.worldSize; len(s.answered) >= limit {
			return exchange.Final(fmt.Errorf("more than %d tickets are there, of earlier runs: remove the folder", limit))
		}
		if err := replace(root, asked.have(), asked.temporary(), s.data); err != nil {
			return err
		}
		s.answered[asked] = false
		return nil
	})
}

// clean removes what nobody will ask for: where all ranks have been served, all of this broadcast, as only processes that
// have ended asked for it; else the answers whose ranks gave up.
func (s *source) clean(root *os.Root) error {
	all := s.roll.Missing() == nil
	return s.files(root, func(t ticket, suffix string) error {
		if !all {
			if _, err := root.Lstat(t.want()); suffix == "want" || err == nil {
				return nil
			}
		}
		return root.Remove(t.name() + "." + suffix)
	})
}

// files calls do with the files of this broadcast.
func (s *source) files(root *os.Root, do func(t ticket, suffix string) error) error {
	return names(root, func(name string) error {
		t, suffix, ok := parseName(name)
		if !ok || t.round != s.round || t.source != s.rank || t.rank >= s.worldSize {
			return nil
		}
		return do(t, suffix)
	})
}
