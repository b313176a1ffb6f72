// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lenscol/lenscol/sdk/rank"
)

// maxWorldSize bounds how long the command takes.
const maxWorldSize = 1 << 24

// exporting is which ranks of a world export.
type exporting struct {
	WorldSize int   `json:"world_size"`
	Count     int   `json:"count"`
	Ranks     []int `json:"ranks"`
}

func newStrategiesCommand() *cobra.Command {
	var (
		strategy     string
		ranksPerNode int
		asJSON       bool
		options      = rank.DefaultOptions()
	)
	cmd := &cobra.Command{
		Use:   "strategies",
		Short: "Prints which ranks a strategy of rank_filter and rank_gate lets export",
		Long: `Prints which ranks of a world a strategy lets export, and how many. The flags are the settings of rank_filter and
rank_gate. Without --world-size it lists the strategies.`,
		Example: `  lenscol strategies
  lenscol strategies --strategy sampled --rate 0.1 --world-size 64
  lenscol strategies --strategy ranks --ranks 0,8-15,-1 --world-size 1024
  lenscol strategies --strategy per_group --per pp --sizes tp=8,pp=4 --world-size 256 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("world-size") {
				if cmd.Flags().NFlag() > 0 {
					return usage(errors.New("strategies: --world-size is missing, it is the number of ranks to decide about"))
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(rank.Names(), "\n"))
				return err
			}
			e, err := listExporting(strategy, options, ranksPerNode)
			if err != nil {
				return usage(fmt.Errorf("strategies: %w", err))
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(e)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n%d of %d ranks\n", rankList(e.Ranks), e.Count, e.WorldSize)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&strategy, "strategy", rank.NameSingleRank, "Strategy: "+strings.Join(rank.Names(), ", "))
	f.IntVar(&options.WorldSize, "world-size", 0, "Number of ranks")
	f.IntVar(&options.ExportRank, "export-rank", options.ExportRank, "Rank of single_rank, -1 for the last")
	f.Float64Var(&options.Rate, "rate", options.Rate, "Share of ranks of sampled, 0 to 1")
	f.BoolVar(&options.AtLeastOne, "at-least-one", false, "Let sampled never come out empty")
	f.StringVar(&options.Ranks, "ranks", "", "List of ranks, such as 0,8-15,-1 or 0-1023/64")
	f.StringSliceVar(&options.Group.Per, "per", nil, "Dimensions of per_group of which every index exports once, such as pp")
	f.StringVar(&options.Group.Order, "order", options.Group.Order, "Dimensions of per_group, the fastest running first")
	f.StringToIntVar(&options.Group.Sizes, "sizes", nil, "Sizes of the dimensions of per_group, such as tp=8,pp=4")
	f.IntVar(&ranksPerNode, "ranks-per-node", 0, "Ranks on a node, for first_rank_per_node")
	f.BoolVar(&asJSON, "json", false, "Print one JSON object with world_size, count and ranks")
	return cmd
}

// listExporting asks the strategy about every rank of the world.
func listExporting(strategy string, options rank.Options, ranksPerNode int) (exporting, error) {
	e := exporting{WorldSize: options.WorldSize, Ranks: []int{}}
	if e.WorldSize < 1 || e.WorldSize > maxWorldSize {
		return e, fmt.Errorf("world-size: %d must be 1 to %d", e.WorldSize, maxWorldSize)
	}
	if ranksPerNode < 0 {
		return e, fmt.Errorf("ranks-per-node: %d must be a number of ranks", ranksPerNode)
	}
	s, err := rank.New(strategy, options)
	if err != nil {
		return e, err
	}
	for r := range e.WorldSize {
		id := rank.Identity{Rank: r, WorldSize: e.WorldSize, LocalRank: rank.Unknown}
		if ranksPerNode > 0 {
			id.LocalRank = r % ranksPerNode
		}
		if !s.Decides(id) {
			return e, fmt.Errorf("ranks-per-node: is missing, %s decides by the rank within the node", strategy)
		}
		if s.Exports(id) {
			e.Ranks = append(e.Ranks, r)
		}
	}
	e.Count = len(e.Ranks)
	return e, nil
}

// rankList writes sorted ranks as the strategy ranks reads them, neighbours as one range; none is "none".
func rankList(ranks []int) string {
	if len(ranks) == 0 {
		return "none"
	}
	var out strings.Builder
	for i := 0; i < len(ranks); i++ {
		first := i
		for i+1 < len(ranks) && ranks[i+1] == ranks[i]+1 {
			i++
		}
		if first > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.Itoa(ranks[first]))
		if i > first {
			out.WriteByte('-')
			out.WriteString(strconv.Itoa(ranks[i]))
		}
	}
	return out.String()
}
