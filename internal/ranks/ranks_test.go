// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ranks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func load(t testing.TB, yaml string) (*Config, error) {
	raw, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := raw.AsConf()
	require.NoError(t, err)
	cfg := DefaultConfig()
	if err := conf.Unmarshal(&cfg); err != nil {
		return nil, err
	}
	return &cfg, cfg.Check()
}

func decider(t testing.TB, yaml string) *Decider {
	cfg, err := load(t, yaml)
	require.NoError(t, err)
	d, err := NewDecider(cfg)
	require.NoError(t, err)
	return d
}

func attrs(t testing.TB, raw map[string]any) pcommon.Map {
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(raw))
	return m
}

func TestDefaultIsLens(t *testing.T) {
	cfg, err := load(t, "{}")
	require.NoError(t, err)
	want := DefaultConfig()
	require.Equal(t, &want, cfg)
	require.Equal(t, RuleConfig{Strategy: "single_rank", ExportRank: -1, Rate: 1, Group: GroupConfig{Order: "tp-cp-dp-pp"}}, cfg.Rule)
}

// Rules of a signal and of an override have the defaults of the rule itself.
func TestNestedRulesHaveDefaults(t *testing.T) {
	cfg, err := load(t, "{metrics: {strategy: all_ranks}, overrides: [{run: a, strategy: sampled}, {service: b}]}")
	require.NoError(t, err)
	require.Equal(t, -1, cfg.Metrics.Get().ExportRank)
	require.Equal(t, 1.0, cfg.Overrides[0].Rule.Rate)
	require.Equal(t, defaultRule(), cfg.Overrides[1].Rule)
}

// One environment, both sides: the SDK's variables set the filter's rule.
func TestLensEnvironment(t *testing.T) {
	resolve := func() RuleConfig {
		r, err := confmap.NewResolver(confmap.ResolverSettings{
			URIs:              []string{filepath.Join("testdata", "environment.yaml")},
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory()},
			DefaultScheme:     "file",
		})
		require.NoError(t, err)
		conf, err := r.Resolve(t.Context())
		require.NoError(t, err)
		cfg := DefaultConfig()
		require.NoError(t, Unmarshal(conf, &cfg))
		require.NoError(t, cfg.Check())
		require.Equal(t, cfg.Rule, *cfg.Traces.Get())
		require.Equal(t, cfg.Rule, cfg.Overrides[0].Rule)
		return cfg.Rule
	}
	require.Equal(t, defaultRule(), resolve())

	// An empty or blank variable is one that is not set.
	for _, empty := range []string{"", "  "} {
		t.Setenv("NEMO_LENS_EXPORT_RANK", empty)
		t.Setenv("NEMO_LENS_EXPORT_SAMPLE_RATE", empty)
		t.Setenv("NEMO_LENS_EXPORT_STRATEGY", empty)
		require.Equal(t, defaultRule(), resolve())
	}

	t.Setenv("NEMO_LENS_EXPORT_STRATEGY", "sampled")
	t.Setenv("NEMO_LENS_EXPORT_RANK", "0")
	t.Setenv("NEMO_LENS_EXPORT_SAMPLE_RATE", "0.25")
	want := defaultRule()
	want.Strategy, want.ExportRank, want.Rate = "sampled", 0, .25
	require.Equal(t, want, resolve())
}

// One bad config a file; its first line holds what the error must name.
func TestBadConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			yaml, err := os.ReadFile(file)
			require.NoError(t, err)
			first, _, _ := strings.Cut(string(yaml), "\n")
			conf, err := confmaptest.LoadConf(file)
			require.NoError(t, err)
			cfg := DefaultConfig()
			err = conf.Unmarshal(&cfg)
			if err == nil {
				err = cfg.Check()
			}
			require.Error(t, err)
			for part := range strings.SplitSeq(strings.TrimPrefix(first, "# "), " | ") {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	at := func(rank, world int) map[string]any {
		return map[string]any{"nv.dl.rank": rank, "nv.dl.world_size": world}
	}
	const (
		keep = true
		drop = false
	)
	tests := []struct {
		name   string
		yaml   string
		signal Signal
		attrs  map[string]any
		keep   bool
		reason Reason
	}{
		{"the last rank", "{}", Traces, at(7, 8), keep, ByRank},
		{"not the last rank", "{}", Traces, at(6, 8), drop, ByRank},
		{"no rank", "{}", Traces, nil, keep, NoRank},
		{"no rank, dropped", "{missing: drop}", Traces, nil, drop, NoRank},
		{"no rank, dropped, though all ranks export", "{strategy: all_ranks, missing: drop}", Traces, nil, drop, NoRank},
		{"a rank that cannot be read is none", "{missing: drop}", Traces, map[string]any{"nv.dl.rank": 1.5}, drop, NoRank},
		{"no world size", "{}", Traces, map[string]any{"dl.rank": 7}, keep, NoWorldSize},
		{"no world size, dropped", "{missing: drop}", Traces, map[string]any{"dl.rank": 7}, drop, NoWorldSize},
		{"a world size that the rank is beyond", "{missing: drop}", Traces, at(8, 8), drop, NoWorldSize},
		{"world size from the config", "{world_size: 8}", Traces, map[string]any{"dl.rank": 7}, keep, ByRank},
		{"the resource's world size first", "{world_size: 8}", Traces, at(7, 16), drop, ByRank},
		{"a rule that needs no world size", "{strategy: ranks, ranks: 0-3}", Traces, map[string]any{"dl.rank": 7}, drop, ByRank},
		{"a listed rank needs no world size", "{strategy: ranks, ranks: '0,-1', missing: drop}", Traces, map[string]any{"dl.rank": 0}, keep, ByRank},
		{"a rank that may be the last does", "{strategy: ranks, ranks: '0,-1', missing: drop}", Traces, map[string]any{"dl.rank": 1}, drop, NoWorldSize},
		{"no local rank", "{strategy: first_rank_per_node}", Traces, at(7, 16), keep, NoLocalRank},
		{"no local rank, and no world size, which it does not need", "{strategy: first_rank_per_node, missing: drop}", Traces, map[string]any{"dl.rank": 7}, drop, NoLocalRank},
		{"local rank", "{strategy: first_rank_per_node}", Traces, map[string]any{"dl.rank": 7, "dl.local_rank": 0}, keep, ByRank},
		{"local rank from ranks per node", "{strategy: first_rank_per_node, ranks_per_node: 4}", Traces, at(7, 16), drop, ByRank},
		{"sizes that do not fit", "{strategy: per_group, missing: drop, group: {per: [pp], sizes: {pp: 3}}}", Traces, at(7, 16), drop, NoFit},
		{"rule of a signal", "{strategy: all_ranks, traces: {strategy: single_rank}}", Traces, at(0, 8), drop, ByRank},
		{"rule of another signal", "{strategy: all_ranks, traces: {strategy: single_rank}}", Logs, at(0, 8), keep, ByRank},
		{"override by run", "{overrides: [{run: 'exp-*', strategy: all_ranks}]}", Traces, map[string]any{"dl.rank": 0, "dl.world_size": 8, "nemo.run.id": "exp-7"}, keep, ByRank},
		{"override of another run", "{overrides: [{run: 'exp-*', strategy: all_ranks}]}", Traces, map[string]any{"dl.rank": 0, "dl.world_size": 8, "nemo.run.id": "prod"}, drop, ByRank},
		{"override by service", "{overrides: [{service: rl, strategy: all_ranks}]}", Metrics, map[string]any{"dl.rank": 0, "dl.world_size": 8, "service.name": "rl"}, keep, ByRank},
		{"run and service must both match", "{overrides: [{service: rl, run: a, strategy: all_ranks}]}", Metrics, map[string]any{"dl.rank": 0, "dl.world_size": 8, "service.name": "rl", "nemo.run.id": "b"}, drop, ByRank},
		{"the first override holds, above the signal's rule", "{logs: {strategy: all_ranks}, overrides: [{run: a, strategy: ranks, ranks: 1-2}, {run: '*', strategy: all_ranks}]}", Logs, map[string]any{"dl.rank": 0, "nemo.run.id": "a"}, drop, ByRank},
		{"an override by run does not match what names none", "{overrides: [{run: '?*', strategy: all_ranks}]}", Traces, at(0, 8), drop, ByRank},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := decider(t, tt.yaml).Decide(tt.signal, attrs(t, tt.attrs))
			require.Equal(t, tt.keep, got.Keep)
			require.Equal(t, tt.reason, got.Reason)
		})
	}
	both := decider(t, "{}").Decide(Traces, attrs(t, map[string]any{"nv.dl.rank": 7, "dl.rank": 6, "dl.world_size": 8}))
	require.True(t, both.Disagrees)
	require.True(t, both.Keep, "the new name wins")
}

func TestPicks(t *testing.T) {
	d := decider(t, "{keep_errors: true, keep_names: ['*checkpoint*', 'POST /r?n']}")
	picks := func(name string, status ptrace.StatusCode) (Reason, bool) {
		reason, ok := PicksSpan(d, name, status)
		asBytes, same := PicksSpan(d, []byte(name), status)
		require.Equal(t, reason, asBytes)
		require.Equal(t, ok, same)
		return reason, ok
	}
	for name, want := range map[string]bool{
		"megatron.checkpoint.save": true, "checkpoint": true, "nv.dl/checkpoint/x": true, "POST /run": true,
		"POST /ru": false, "xPOST /run": false, "step": false, "": false,
	} {
		_, ok := picks(name, ptrace.StatusCodeUnset)
		require.Equal(t, want, ok, name)
	}
	reason, ok := picks("step", ptrace.StatusCodeError)
	require.True(t, ok)
	require.Equal(t, ByError, reason)
	require.True(t, d.PicksSpans() && d.PicksRecords())
	require.True(t, d.PicksRecord(plog.SeverityNumberError))
	require.True(t, d.PicksRecord(plog.SeverityNumberFatal4))
	require.False(t, d.PicksRecord(plog.SeverityNumberWarn4))

	none := decider(t, "{}")
	require.False(t, none.PicksSpans() || none.PicksRecords() || none.PicksRecord(plog.SeverityNumberFatal))
}

// Once a minute for each reason, whatever comes in.
func TestMissingIsLoggedOnceAMinute(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	d := decider(t, "{}")
	var counters Counters
	for s := range Signals {
		counters.Kept[s], counters.Dropped[s] = noop.Int64Counter{}, noop.Int64Counter{}
	}
	r := NewReporter(d, counters, zap.New(core))
	now := time.Unix(1000, 0)
	r.now = func() time.Time { return now }
	report := func(raw map[string]any, discard bool) {
		tally := r.Tally()
		tally.Resource(d.Decide(Traces, attrs(t, raw)))
		if discard {
			r.Discard(tally)
			return
		}
		r.Report(t.Context(), Traces, tally)
	}
	noWorld := map[string]any{"dl.rank": 3, "service.name": "megatron"}
	report(noWorld, true)
	report(map[string]any{"service.name": "vllm"}, false)
	report(map[string]any{"dl.rank": 3, "dl.world_size": 8}, false)
	require.Zero(t, logs.Len(), "a refused request, a server without a rank and a decided rank are nothing to log")

	report(noWorld, false)
	report(noWorld, false)
	now = now.Add(59 * time.Second)
	report(noWorld, false)
	require.Equal(t, 1, logs.Len())
	require.Equal(t, map[string]any{"reason": "no_world_size", "strategy": "single_rank", "service.name": "megatron", "missing": "keep"}, logs.All()[0].ContextMap())
	now = now.Add(time.Second)
	report(noWorld, false)
	require.Equal(t, 2, logs.Len())
}

// A client chooses its name: what is logged of it is short, and UTF-8.
func TestLoggedServiceNameIsCut(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	d := decider(t, "{}")
	r := NewReporter(d, Counters{}, zap.New(core))
	tally := r.Tally()
	tally.Resource(d.Decide(Traces, attrs(t, map[string]any{"dl.rank": 3, "service.name": "x" + strings.Repeat("é", 1<<20)})))
	r.Report(t.Context(), Traces, tally)
	require.Equal(t, "x"+strings.Repeat("é", 127), logs.All()[0].ContextMap()["service.name"])
}

func FuzzMatches(f *testing.F) {
	for _, seed := range [][2]string{{"*checkpoint*", "a.checkpoint.b"}, {"", ""}, {"***", "x"}, {"a*b*c", "abcbc"}, {"?", "é"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		if len(glob)*len(name) > 1<<12 {
			t.Skip("the reference takes too long")
		}
		require.Equal(t, reference(glob, name), Matches(glob, name))
	})
}

// reference is the definition of a glob.
func reference(glob, name string) bool {
	ends := map[int]bool{0: true} // of prefixes of name that match what is read of glob
	for i := range len(glob) {
		next := map[int]bool{}
		for at := range ends {
			switch {
			case glob[i] == '*':
				for n := at; n <= len(name); n++ {
					next[n] = true
				}
			case at < len(name) && (glob[i] == '?' || glob[i] == name[at]):
				next[at+1] = true
			}
		}
		ends = next
	}
	return ends[len(name)]
}
