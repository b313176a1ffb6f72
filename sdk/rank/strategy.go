// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import "fmt"

// Names of the built-in strategies.
const (
	NameAllRanks         = "all_ranks"
	NameSingleRank       = "single_rank"
	NameSampled          = "sampled"
	NameFirstRankPerNode = "first_rank_per_node"
	NameRanks            = "ranks"
	NamePerGroup         = "per_group"
)

// Strategy decides whether a rank exports. It is a pure function of the identity and safe for concurrent use.
type Strategy interface {
	// Exports is the decision. It is false where Decides is false.
	Exports(id Identity) bool
	// Decides reports whether id holds what the rule needs: a rule about the last rank cannot decide while the world
	// size is unknown.
	Decides(id Identity) bool
}

// Func makes a strategy of a function that needs nothing but the rank.
type Func func(id Identity) bool

func (f Func) Exports(id Identity) bool { return f(id) }
func (Func) Decides(Identity) bool      { return true }

// AllRanks exports from every rank.
func AllRanks() Strategy { return Func(func(Identity) bool { return true }) }

// SingleRank exports from one rank; any negative one stands for the last rank of the world (NeMo Lens: -1).
func SingleRank(rank int) Strategy { return singleRank(rank) }

type singleRank int

func (s singleRank) Exports(id Identity) bool {
	if s >= 0 {
		return id.Rank == int(s)
	}
	return id.knowsWorld() && id.Rank == id.WorldSize-1
}

func (s singleRank) Decides(id Identity) bool { return s >= 0 || id.knowsWorld() }

// within refuses a rank that a world of that size does not have.
func (s singleRank) within(worldSize int) error {
	if int(s) >= worldSize {
		return fmt.Errorf("export_rank: %d is not below the world size %d", int(s), worldSize)
	}
	return nil
}

// FirstRankPerNode exports from local rank 0 of every node.
func FirstRankPerNode() Strategy { return firstRankPerNode{} }

type firstRankPerNode struct{}

func (firstRankPerNode) Exports(id Identity) bool { return id.LocalRank == 0 }
func (firstRankPerNode) Decides(id Identity) bool { return id.LocalRank >= 0 }
