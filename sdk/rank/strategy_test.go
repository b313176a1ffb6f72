// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
)

// exporting are the ranks of a world of that size that export, perNode ranks to a node.
func exporting(s Strategy, worldSize, perNode int) []int {
	var out []int
	for r := range worldSize {
		if s.Exports(Identity{Rank: r, WorldSize: worldSize, LocalRank: r % perNode}) {
			out = append(out, r)
		}
	}
	return out
}

func mustNew(t testing.TB, name string, set func(*Options)) Strategy {
	t.Helper()
	o := DefaultOptions()
	if set != nil {
		set(&o)
	}
	s, err := New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The values of NeMo Lens 0.2, run there.
func TestHashIsLens(t *testing.T) {
	want := []int{7850, 8411, 9212, 883, 1900, 693, 412, 5555, 3101, 8374, 1824, 2650, 8112, 4873, 6038, 7603}
	for r, w := range want {
		if got := hash(r); got != w {
			t.Errorf("hash(%d) = %d, want %d", r, got, w)
		}
	}
}

func TestStrategies(t *testing.T) {
	tests := []struct {
		name     string
		strategy string
		set      func(*Options)
		world    int
		want     []int
	}{
		{"all ranks", NameAllRanks, nil, 4, []int{0, 1, 2, 3}},
		{"the last rank by default", NameSingleRank, nil, 8, []int{7}},
		{"any negative rank is the last", NameSingleRank, func(o *Options) { o.ExportRank = -5 }, 8, []int{7}},
		{"rank 0", NameSingleRank, func(o *Options) { o.ExportRank = 0 }, 8, []int{0}},
		{"sampled 8 at a quarter", NameSampled, func(o *Options) { o.Rate = .25 }, 8, []int{3, 4, 5, 6}},
		{"sampled 64 at a tenth", NameSampled, func(o *Options) { o.Rate = .1 }, 64, []int{3, 5, 6, 31, 55}},
		{"sampled 1024 at a hundredth", NameSampled, func(o *Options) { o.Rate = .01 }, 1024, []int{55, 99, 131, 155, 162, 278, 309, 615, 629, 822, 907, 1021}},
		{"a small world may have none", NameSampled, func(o *Options) { o.Rate = .25 }, 3, nil},
		{"at least one", NameSampled, func(o *Options) { o.Rate = .25; o.AtLeastOne = true }, 3, []int{0}},
		{"at least one adds none where there is one", NameSampled, func(o *Options) { o.Rate = .1; o.AtLeastOne = true }, 64, []int{3, 5, 6, 31, 55}},
		{"at least one at rate 0", NameSampled, func(o *Options) { o.Rate = 0; o.AtLeastOne = true }, 8, []int{6}},
		{"rate 0", NameSampled, func(o *Options) { o.Rate = 0 }, 1024, nil},
		{"rate 1", NameSampled, func(o *Options) { o.Rate = 1 }, 3, []int{0, 1, 2}},
		{"first of each node", NameFirstRankPerNode, nil, 16, []int{0, 8}},
		{"a list", NameRanks, func(o *Options) { o.Ranks = "0, 8-10,-1" }, 16, []int{0, 8, 9, 10, 15}},
		{"every 64th", NameRanks, func(o *Options) { o.Ranks = "0-1023/64" }, 256, []int{0, 64, 128, 192}},
		{"steps count from the first", NameRanks, func(o *Options) { o.Ranks = "3-9/3" }, 16, []int{3, 6, 9}},
		{"one of each pipeline stage", NamePerGroup, func(o *Options) { o.Group = Group{Per: []string{"pp"}, Sizes: map[string]int{"tp": 2, "pp": 4}} }, 16, []int{0, 4, 8, 12}},
		{"one of each tensor parallel group", NamePerGroup, func(o *Options) { o.Group = Group{Per: []string{"dp", "pp"}, Sizes: map[string]int{"tp": 4, "pp": 2}} }, 16, []int{0, 4, 8, 12}},
		{"another order", NamePerGroup, func(o *Options) {
			o.Group = Group{Per: []string{"pp"}, Order: "pp-tp-dp", Sizes: map[string]int{"tp": 2, "pp": 4}}
		}, 16, []int{0, 1, 2, 3}},
		{"all sizes named", NamePerGroup, func(o *Options) {
			o.Group = Group{Per: []string{"x"}, Order: "y-x", Sizes: map[string]int{"y": 3, "x": 2}}
		}, 6, []int{0, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exporting(mustNew(t, tt.strategy, tt.set), tt.world, 8); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if got := len(exporting(mustNew(t, NameSampled, func(o *Options) { o.Rate = .1 }), 1024, 8)); got != 115 {
		t.Errorf("sampled 1024 at a tenth: %d ranks, want 115", got)
	}
}

// A rank that is listed as such exports, whether the world size that another entry needs is known or not.
func TestListedRankExportsInAnUnknownWorld(t *testing.T) {
	s := mustNew(t, NameRanks, func(o *Options) { o.Ranks = "0,-1" })
	for _, id := range []Identity{{Rank: 0, WorldSize: Unknown}, {Rank: 0, WorldSize: 8}, {Rank: 0, WorldSize: 0}} {
		if !s.Decides(id) || !s.Exports(id) {
			t.Errorf("%+v: decides %v, exports %v", id, s.Decides(id), s.Exports(id))
		}
	}
	if id := (Identity{Rank: 7, WorldSize: Unknown}); s.Decides(id) || s.Exports(id) {
		t.Errorf("%+v: a guess", id)
	}
}

// What a rule needs and does not have makes it undecided, never a guess.
func TestDecides(t *testing.T) {
	alone := Identity{Rank: 3, WorldSize: Unknown, LocalRank: Unknown}
	beyond := Identity{Rank: 8, WorldSize: 8, LocalRank: 0}
	tests := []struct {
		name     string
		strategy string
		set      func(*Options)
		id       Identity
		want     bool
	}{
		{"all ranks need nothing", NameAllRanks, nil, alone, true},
		{"a rank needs nothing", NameSingleRank, func(o *Options) { o.ExportRank = 3 }, alone, true},
		{"the last rank needs the world size", NameSingleRank, nil, alone, false},
		{"a world size that is not above the rank is not believed", NameSingleRank, nil, beyond, false},
		{"sampled needs nothing", NameSampled, nil, alone, true},
		{"at least one needs the world size", NameSampled, func(o *Options) { o.AtLeastOne = true }, alone, false},
		{"first of a node needs the local rank", NameFirstRankPerNode, nil, alone, false},
		{"a list needs nothing", NameRanks, func(o *Options) { o.Ranks = "0-3" }, alone, true},
		{"a list from the end needs the world size", NameRanks, func(o *Options) { o.Ranks = "0-2,-1" }, alone, false},
		{"a listed rank needs no world size", NameRanks, func(o *Options) { o.Ranks = "-1,0-6/3" }, alone, true},
		{"a rank between the listed ones does", NameRanks, func(o *Options) { o.Ranks = "-1,0-6/2" }, alone, false},
		{"groups need the world size", NamePerGroup, func(o *Options) { o.Group = Group{Per: []string{"pp"}, Sizes: map[string]int{"pp": 2}} }, alone, false},
		{"groups that do not fit", NamePerGroup, func(o *Options) { o.Group = Group{Per: []string{"pp"}, Sizes: map[string]int{"pp": 3}} }, Identity{WorldSize: 8}, false},
		{"groups of known sizes need nothing", NamePerGroup, func(o *Options) {
			o.Group = Group{Per: []string{"pp"}, Order: "tp-pp", Sizes: map[string]int{"tp": 2, "pp": 2}}
		}, alone, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustNew(t, tt.strategy, tt.set)
			if got := s.Decides(tt.id); got != tt.want {
				t.Errorf("Decides = %v, want %v", got, tt.want)
			}
			if !tt.want && s.Exports(tt.id) {
				t.Error("exports what it cannot decide")
			}
		})
	}
}

func TestRefused(t *testing.T) {
	group := func(g Group) func(*Options) { return func(o *Options) { o.Group = g } }
	list := func(s string) func(*Options) { return func(o *Options) { o.Ranks = s } }
	tests := []struct {
		name, strategy string
		set            func(*Options)
		want           []string // parts of the text
	}{
		{"unknown name", "some", nil, []string{"strategy", `"some"`, "all_ranks, first_rank_per_node, per_group, ranks, sampled, single_rank"}},
		{"empty name", "", nil, []string{"strategy", `""`, "all_ranks"}},
		{"rate above 1", NameSampled, func(o *Options) { o.Rate = 1.5 }, []string{"rate", "1.5", "[0, 1]"}},
		{"rate below 0", NameSampled, func(o *Options) { o.Rate = -.1 }, []string{"rate", "-0.1"}},
		{"rate not a number", NameSampled, func(o *Options) { o.Rate = math.NaN() }, []string{"rate", "NaN"}},
		{"no list", NameRanks, nil, []string{"ranks", `""`}},
		{"reversed", NameRanks, list("15-8"), []string{"ranks", `"15-8"`}},
		{"half a range", NameRanks, list("0,8-"), []string{"ranks", `"8-"`, `"0,8-"`}},
		{"step 0", NameRanks, list("0-8/0"), []string{"ranks", `"0-8/0"`}},
		{"step without a range", NameRanks, list("8/2"), []string{"ranks", `"8/2"`}},
		{"-0", NameRanks, list("-0"), []string{"ranks", `"-0"`}},
		{"a sign", NameRanks, list("+3"), []string{"ranks", `"+3"`}},
		{"words", NameRanks, list("all"), []string{"ranks", `"all"`}},
		{"beyond 2^31", NameRanks, list("2147483648"), []string{"ranks", "2147483648"}},
		{"list beyond the world", NameRanks, func(o *Options) { o.Ranks, o.WorldSize = "0-64", 64 }, []string{"ranks", "64", "world size"}},
		{"list from the end beyond the world", NameRanks, func(o *Options) { o.Ranks, o.WorldSize = "-65", 64 }, []string{"ranks", "-65", "world size"}},
		{"rank beyond the world", NameSingleRank, func(o *Options) { o.ExportRank, o.WorldSize = 64, 64 }, []string{"export_rank", "64", "world size"}},
		{"rank beyond 2^31", NameSingleRank, func(o *Options) { o.ExportRank = math.MaxInt32 + 1 }, []string{"export_rank", "2147483648"}},
		{"per nothing", NamePerGroup, nil, []string{"per", DefaultOrder}},
		{"per unknown", NamePerGroup, group(Group{Per: []string{"ep"}}), []string{"per", `"ep"`, DefaultOrder}},
		{"size of an unknown", NamePerGroup, group(Group{Per: []string{"pp"}, Sizes: map[string]int{"ep": 2}}), []string{"sizes", "ep"}},
		{"size 0", NamePerGroup, group(Group{Per: []string{"pp"}, Sizes: map[string]int{"pp": 0}}), []string{"sizes", "pp", "0"}},
		{"product too large", NamePerGroup, group(Group{Per: []string{"pp"}, Sizes: map[string]int{"tp": 1 << 20, "pp": 1 << 20}}), []string{"sizes", "product"}},
		{"order twice", NamePerGroup, group(Group{Per: []string{"pp"}, Order: "pp-pp"}), []string{"order", "pp-pp"}},
		{"sizes do not fit the world", NamePerGroup, func(o *Options) {
			o.Group, o.WorldSize = Group{Per: []string{"pp"}, Sizes: map[string]int{"pp": 3}}, 64
		}, []string{"sizes", "3", "64"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := DefaultOptions()
			if tt.set != nil {
				tt.set(&o)
			}
			_, err := New(tt.strategy, o)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not name %q", err, part)
				}
			}
		})
	}
}

// A higher rate keeps every rank of a lower one, with and without at_least_one.
func TestSampledIsMonotone(t *testing.T) {
	property := func(rank uint16, extra uint8, a, b uint16, atLeastOne bool) bool {
		low, high := float64(min(a, b))/math.MaxUint16, float64(max(a, b))/math.MaxUint16
		id := Identity{Rank: int(rank), WorldSize: int(rank) + 1 + int(extra)}
		l, _ := Sampled(low, atLeastOne)
		h, _ := Sampled(high, atLeastOne)
		return !l.Exports(id) || h.Exports(id)
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}

func TestAtLeastOneIsNeverEmpty(t *testing.T) {
	for _, rate := range []float64{0, .0001, .05} {
		s := mustNew(t, NameSampled, func(o *Options) { o.Rate, o.AtLeastOne = rate, true })
		for world := 1; world < 300; world++ {
			if len(exporting(s, world, 8)) == 0 {
				t.Errorf("rate %v, world size %d: nobody exports", rate, world)
			}
		}
	}
	// The rule costs no scan of the world, whatever size it claims.
	if s, _ := Sampled(0, true); s.Exports(Identity{Rank: 1, WorldSize: math.MaxInt32}) {
		t.Error("rank 1 is not the lowest")
	}
}

// A strategy is a pure function of the identity: asked in any order, by any number of callers, it answers alike.
func TestStrategiesArePure(t *testing.T) {
	all := map[string]Strategy{
		NameAllRanks:         mustNew(t, NameAllRanks, nil),
		NameSingleRank:       mustNew(t, NameSingleRank, nil),
		NameSampled:          mustNew(t, NameSampled, func(o *Options) { o.Rate, o.AtLeastOne = .3, true }),
		NameFirstRankPerNode: mustNew(t, NameFirstRankPerNode, nil),
		NameRanks:            mustNew(t, NameRanks, func(o *Options) { o.Ranks = "0-1000/7,-3" }),
		NamePerGroup:         mustNew(t, NamePerGroup, func(o *Options) { o.Group = Group{Per: []string{"pp"}, Sizes: map[string]int{"pp": 2}} }),
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			property := func(rank, world uint16, local int8) bool {
				id := Identity{Rank: int(rank), WorldSize: int(world), LocalRank: int(local)}
				first, decides := s.Exports(id), s.Decides(id)
				s.Exports(Identity{Rank: int(world), WorldSize: int(rank)})
				return s.Exports(id) == first && s.Decides(id) == decides && (decides || !first)
			}
			if err := quick.Check(property, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRegistry(t *testing.T) {
	odd := func(Options) (Strategy, error) { return Func(func(id Identity) bool { return id.Rank%2 == 1 }), nil }
	check := func(err error, part string) {
		t.Helper()
		if !errors.Is(err, ErrRegister) || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want a registry error with %q", err, part)
		}
	}
	check(Register("", odd, false), "name")
	check(Register("  ", odd, true), "name")
	check(Register("odd", nil, false), "builder")
	check(Register(NameSampled, odd, true), "built in")
	check(Unregister(NameSampled), "built in")
	check(Unregister("odd"), "all_ranks, first_rank_per_node")

	if err := Register("odd", odd, false); err != nil {
		t.Fatal(err)
	}
	check(Register("odd", odd, false), "already")
	if err := Register("odd", odd, true); err != nil {
		t.Error(err)
	}
	want := []string{NameAllRanks, NameFirstRankPerNode, "odd", NamePerGroup, NameRanks, NameSampled, NameSingleRank}
	if got := Names(); !reflect.DeepEqual(got, want) {
		t.Errorf("Names() = %v, want %v", got, want)
	}
	if got := exporting(mustNew(t, "odd", nil), 4, 8); !reflect.DeepEqual(got, []int{1, 3}) {
		t.Errorf("got %v", got)
	}
	if err := Unregister("odd"); err != nil {
		t.Error(err)
	}
	if _, err := New("odd", DefaultOptions()); !errors.Is(err, ErrUnknownStrategy) {
		t.Errorf("got %v", err)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "007": 7, "2147483647": math.MaxInt32, "": -1, "-1": -1, "1.0": -1, "2147483648": -1, "+1": -1, " 1": -1, "1e3": -1} {
		got, ok := Parse(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("Parse(%q) = %d, %v", text, got, ok)
		}
	}
	for id, want := range map[string]int{"run-rank3": 3, "a-rank1-rank12": 12, "run-rank": -1, "run-rank3x": -1, "rank3": -1, "-rank0": 0} {
		got, ok := FromInstanceID(id)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("FromInstanceID(%q) = %d, %v", id, got, ok)
		}
	}
}

func FuzzRanks(f *testing.F) {
	for _, seed := range []string{"0,8-15,-1", "0-1023/64", "", ",", "1-", "-", "--1", "9999999999", "0-2147483647/1"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, list string, rank int) {
		s, err := Ranks(list)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "ranks: ") {
				t.Errorf("%q does not name the key", err)
			}
			return
		}
		s.Exports(Identity{Rank: rank, WorldSize: rank + 1})
	})
}

func BenchmarkSampled(b *testing.B) {
	s, _ := Sampled(.1, true)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Exports(Identity{Rank: i & 1023, WorldSize: 1024})
	}
}
