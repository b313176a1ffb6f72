// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package folder // import "github.com/lenscol/lenscol/sdk/broadcast/folder"

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
)

// ticket is what a rank asks for: a broadcast, once.
type ticket struct {
	round        uint64
	source, rank int
	nonce        string // 16 hex digits
}

func newTicket(round uint64, source, rank int) ticket {
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // It never fails.
	return ticket{round, source, rank, hex.EncodeToString(nonce[:])}
}

func (t ticket) name() string { return fmt.Sprintf("%d-%d-%d-%s", t.round, t.source, t.rank, t.nonce) }

// want is the file by which the rank asks.
func (t ticket) want() string { return t.name() + ".want" }

// have is the file with the answer, temporary its name until it is whole.
func (t ticket) have() string      { return t.name() + ".have" }
func (t ticket) temporary() string { return t.name() + ".tmp" }

var fileName = regexp.MustCompile(`^(\d{1,20})-(\d{1,9})-(\d{1,9})-([0-9a-f]{16})\.(want|have|tmp)$`)

// parseName reads the ticket of a file and which of the three it is.
func parseName(name string) (t ticket, suffix string, ok bool) {
	parts := fileName.FindStringSubmatch(name)
	if parts == nil {
		return ticket{}, "", false
	}
	round, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return ticket{}, "", false
	}
	source, _ := strconv.Atoi(parts[2])
	rank, _ := strconv.Atoi(parts[3])
	t = ticket{round, source, rank, parts[4]}
	return t, parts[5], t.name()+"."+parts[5] == name // no other spelling, as with leading zeros
}
