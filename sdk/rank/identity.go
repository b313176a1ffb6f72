// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"math"
	"strconv"
	"strings"
)

// Unknown stands for a world size or a local rank that nobody named.
const Unknown = -1

// maxRank is the highest rank that is read.
const maxRank = math.MaxInt32

// Identity is where a process stands in its run.
type Identity struct {
	Rank      int // 0 ≤ Rank
	WorldSize int // number of ranks, or Unknown; one that is not above Rank cannot be right and counts as unknown
	LocalRank int // rank within the node, 0 ≤ LocalRank, or Unknown
}

// knowsWorld reports whether the world size is known.
func (id Identity) knowsWorld() bool { return id.WorldSize > id.Rank }

// Parse reads a rank from decimal text: digits only, 0 to 2^31-1.
func Parse(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil
}

// FromInt accepts n as a rank when it is 0 to 2^31-1.
func FromInt(n int64) (int, bool) {
	if n < 0 || n > maxRank {
		return 0, false
	}
	return int(n), true
}

// FromInstanceID reads the rank from the `-rank<N>` end of a service.instance.id (NeMo Lens: `{run_id}-rank{rank}`).
func FromInstanceID(id string) (int, bool) {
	i := strings.LastIndex(id, "-rank")
	if i < 0 {
		return 0, false
	}
	return Parse(id[i+len("-rank"):])
}
