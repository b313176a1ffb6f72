// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package exchange is what the transports of a broadcast share: what a rank asks of the source, what the source answers, which
// ranks have been served, and how often is asked again.
package exchange // import "github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
)

// Request is what a rank asks of the source, and, at the source, what the source has: then Rank is its own.
type Request struct {
	Job       [sha256.Size]byte // of the job's name
	Round     uint64            // number of broadcasts before this one
	Rank      uint32
	WorldSize uint32
	Source    uint32
}

// NewRequest is the request of m in a round.
func NewRequest(m broadcast.Member, round uint64, source int) Request {
	return Request{sha256.Sum256([]byte(m.Job)), round, uint32(m.Rank), uint32(m.WorldSize), uint32(source)}
}

// magic begins a request, and with it an answer over TCP. Its last byte is the version.
var magic = []byte("lens\x00bc\x01")

// RequestSize is the length of a request in bytes: magic, job, round, rank, world size, source; numbers are big-endian.
const RequestSize = 8 + sha256.Size + 8 + 3*4

// Encode writes a request.
func (r Request) Encode() []byte {
	b := append(make([]byte, 0, RequestSize), magic...)
	b = append(b, r.Job[:]...)
	b = binary.BigEndian.AppendUint64(b, r.Round)
	b = binary.BigEndian.AppendUint32(b, r.Rank)
	b = binary.BigEndian.AppendUint32(b, r.WorldSize)
	return binary.BigEndian.AppendUint32(b, r.Source)
}

// ErrNoRequest is the error of bytes that are no request.
var ErrNoRequest = errors.New("not a request of this version")

// Parse reads a request.
func Parse(b []byte) (r Request, err error) {
	if len(b) != RequestSize || !bytes.HasPrefix(b, magic) {
		return Request{}, ErrNoRequest
	}
	b = b[len(magic):]
	copy(r.Job[:], b)
	b = b[len(r.Job):]
	r.Round = binary.BigEndian.Uint64(b)
	r.Rank = binary.BigEndian.Uint32(b[8:])
	r.WorldSize = binary.BigEndian.Uint32(b[12:])
	r.Source = binary.BigEndian.Uint32(b[16:])
	return r, nil
}

// Verdict is what a source answers to a request.
type Verdict byte

const (
	Here       Verdict = iota // what was asked for follows
	Early                     // the source is not at that round yet
	Late                      // the source is past that round
	OtherJob                  // the source is of another job
	OtherWorld                // the source knows another world size, in which the rank may not be
	OtherRank                 // the source is another rank than was thought
	verdicts                  // how many there are
)

// Judge is the verdict of a source, which has, on what was asked.
func (has Request) Judge(asked Request) Verdict {
	switch {
	case asked.Job != has.Job:
		return OtherJob
	case asked.WorldSize != has.WorldSize || asked.Rank >= has.WorldSize:
		return OtherWorld
	case asked.Source != has.Source:
		return OtherRank
	case asked.Round > has.Round:
		return Early
	case asked.Round < has.Round:
		return Late
	}
	return Here
}

// Err is what a verdict means to the rank that asked; nil for [Here]. Some are [Final].
func (v Verdict) Err() error {
	switch v {
	case Here:
		return nil
	case Early:
		return errors.New("the source is not there yet")
	case Late:
		return Final(errors.New("the source is past this broadcast: all ranks must call it equally often"))
	case OtherJob: // An earlier one, perhaps, that is about to end.
		return errors.New("a source of another job answers: the job must have the same name on all ranks")
	case OtherWorld:
		return Final(errors.New("the source knows another world size: it must be the same on all ranks"))
	case OtherRank:
		return Final(errors.New("another rank is the source: all ranks must name the same one, which must be where they ask"))
	}
	return fmt.Errorf("answer %d is not known", byte(v))
}

// CheckSize refuses what is longer than a transport moves.
func CheckSize(data []byte) error {
	if len(data) > lens.MaxBroadcast {
		return fmt.Errorf("%d bytes to hand on: must be at most %d", len(data), lens.MaxBroadcast)
	}
	return nil
}
