// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DefaultOrder is the order in which Megatron-LM lays ranks out: neighbours differ in their tensor parallel rank first.
const DefaultOrder = "tp-cp-dp-pp"

// restDimension takes what the other sizes leave of the world.
const restDimension = "dp"

// Group says how the world is split and by what it is sampled.
type Group struct {
	// Per names the dimensions of which every index exports once: [pp] is one rank of each pipeline stage, [dp, pp] one
	// rank of each group that differs in neither, as is a tensor parallel group. All other indices are 0.
	Per []string
	// Order lists the dimensions, the fastest running first, joined with "-". Empty is DefaultOrder.
	Order string
	// Sizes are the sizes of the dimensions. One that is not named has size 1, except dp: the rest of the world.
	Sizes map[string]int
}

// PerGroup exports from one rank of each group, the first: the one whose index is 0 in every dimension not in Per.
func PerGroup(g Group) (Strategy, error) {
	order := g.Order
	if order == "" {
		order = DefaultOrder
	}
	names := strings.Split(order, "-")
	var s perGroup
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("order: %q must list each dimension once, joined with -, as %s does", order, DefaultOrder)
		}
		d := dimension{size: g.Sizes[name], keepAll: slices.Contains(g.Per, name)}
		_, named := g.Sizes[name]
		switch {
		case named && (d.size < 1 || d.size > maxRank):
			return nil, fmt.Errorf("sizes: %s is %d, must be 1 to %d", name, d.size, maxRank)
		case !named && name != restDimension:
			d.size = 1
		}
		if d.size != rest {
			if s.product = max(s.product, 1) * d.size; s.product > maxRank {
				return nil, fmt.Errorf("sizes: their product is beyond %d", maxRank)
			}
		} else {
			s.needsWorld = true
		}
		s.dims = append(s.dims, d)
	}
	s.product = max(s.product, 1)
	for _, name := range slices.Sorted(maps.Keys(g.Sizes)) {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("sizes: %s is not a dimension of the order %s", name, order)
		}
	}
	if len(g.Per) == 0 {
		return nil, fmt.Errorf("per: names no dimension of the order %s", order)
	}
	for _, name := range g.Per {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("per: %q is not a dimension of the order %s", name, order)
		}
	}
	return s, nil
}

// rest is the size of the dimension that takes what the others leave of the world.
const rest = 0

type dimension struct {
	size    int // number of indices, or rest
	keepAll bool
}

type perGroup struct {
	dims       []dimension // the fastest first
	product    int         // of all sizes but the rest's
	needsWorld bool        // one size is the rest
}

func (s perGroup) Exports(id Identity) bool {
	if !s.Decides(id) {
		return false
	}
	left := id.Rank
	for _, d := range s.dims {
		size := d.size
		if size == rest {
			size = id.WorldSize / s.product
		}
		if left%size != 0 && !d.keepAll {
			return false
		}
		left /= size
	}
	return true
}

// Decides is false where the sizes do not fit the world.
func (s perGroup) Decides(id Identity) bool {
	if s.needsWorld {
		return id.knowsWorld() && id.WorldSize%s.product == 0
	}
	return id.Rank < s.product && (!id.knowsWorld() || id.WorldSize == s.product)
}

// within refuses sizes that do not fit the world.
func (s perGroup) within(worldSize int) error {
	if worldSize%s.product != 0 || !s.needsWorld && worldSize != s.product {
		return fmt.Errorf("sizes: their product %d does not fit the world size %d", s.product, worldSize)
	}
	return nil
}
