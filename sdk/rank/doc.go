// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package rank decides which ranks of a training run export their telemetry.
//
// A [Strategy] answers for one [Identity]. The first four are NeMo Lens 0.2's, decision for decision:
//
//	all_ranks             every rank
//	single_rank           the rank export_rank; -1 is the last one
//	sampled               ranks whose hash is below rate
//	first_rank_per_node   local rank 0
//	ranks                 a list: "0,8-15,-1", "0-1023/64"
//	per_group             one rank of each pipeline stage, or of each group of any other split of the world
//
// [New] makes them by name, [Register] adds own ones. Standard library only.
package rank // import "github.com/lenscol/lenscol/sdk/rank"
