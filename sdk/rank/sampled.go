// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sort"
	"strconv"
	"sync"
)

// Sampled exports from the ranks whose hash is below rate, a number from 0 to 1. The hash is NeMo Lens's: the MD5 of
// the rank's decimal text, as a number, modulo 10,000, over 10,000. A higher rate keeps every rank of a lower one.
//
// A small world may hold no such rank. With atLeastOne the rank with the lowest hash exports then, so a world of known
// size never goes silent; the world size must be known.
func Sampled(rate float64, atLeastOne bool) (Strategy, error) {
	if !(rate >= 0 && rate <= 1) { // so that NaN is refused too
		return nil, fmt.Errorf("rate: %v is outside [0, 1]", rate)
	}
	return sampled{rate: rate, atLeastOne: atLeastOne}, nil
}

type sampled struct {
	rate       float64
	atLeastOne bool
}

func (s sampled) Exports(id Identity) bool {
	if !s.Decides(id) {
		return false
	}
	// The lowest hash of the world is below the rate unless none is: exporting it always changes only that case.
	return float64(hash(id.Rank))/hashes < s.rate || s.atLeastOne && id.Rank == lowest(id.WorldSize)
}

func (s sampled) Decides(id Identity) bool { return !s.atLeastOne || id.knowsWorld() }

const hashes = 10000

// hash is int(md5(str(rank)).hexdigest(), 16) % 10000.
func hash(rank int) int {
	if table := hashTable(); rank >= 0 && rank < len(table) {
		return int(table[rank])
	}
	return computeHash(rank)
}

// hashTable holds the hashes of the ranks that most worlds have: looking one up costs a hundredth of computing it.
var hashTable = sync.OnceValue(func() []uint16 {
	table := make([]uint16, 4096)
	for rank := range table {
		table[rank] = uint16(computeHash(rank))
	}
	return table
})

func computeHash(rank int) int {
	var text [20]byte
	sum := md5.Sum(strconv.AppendInt(text[:0], int64(rank), 10))
	return int(bits.Rem64(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:]), hashes))
}

// lowest is the rank with the lowest hash in a world of that size, the first of equals.
func lowest(worldSize int) int {
	records := hashRecords()
	return records[sort.SearchInts(records, worldSize)-1]
}

// hashRecords are the ranks whose hash is lower than that of every rank before them, up to the first with hash 0, which
// none after it can undercut. They are few, and found within the first tens of thousands of ranks.
var hashRecords = sync.OnceValue(func() []int {
	var records []int
	for rank, low := 0, hashes; low > 0; rank++ {
		if h := hash(rank); h < low {
			low = h
			records = append(records, rank)
		}
	}
	return records
})
