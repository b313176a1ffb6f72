// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

// Package chaos runs the built binary, with the configs that it carries, through what goes wrong around it, and closes the books after
// each case: every span that a sender made is in the sink, or somebody has said that it is not.
//
// The books are kept by span id, by the senders and the sinks here, and never from the collector's own counters. Each case prints
//
//	NAME sent S delivered D counted C lost L duplicates U
//
// where counted are spans of which the sender knows that they were not taken, and spans that the collector took and says it has dropped. A case whose
// books would also close with a sink that loses one span in 10,000 fails, and TestLossySink runs all of them with such a sink.
package chaos // import "github.com/lenscol/lenscol/test/chaos"

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/configs"
	"github.com/lenscol/lenscol/internal/testbed"
)

var (
	long  = flag.Bool("long", false, "run the long forms")
	lossy = flag.Bool("lossy", false, "have every sink forget one span in 10,000")
)

// cases are all there are. What is alone takes the machine for itself, as it measures or loads it; the others mostly wait.
var cases = []struct {
	name  string
	alone bool
	run   func(*chaos)
}{
	{name: "overload", alone: true, run: overload},
	{name: "zip-bombs", alone: true, run: zipBombs},
	{name: "deep-nesting", alone: true, run: deepNesting},
	{name: "idle-connections", alone: true, run: idleConnections},
	{name: "sigkill-queue", run: sigkillQueue},
	{name: "kill-compaction", run: killCompaction},
	{name: "kill-rotation", run: killRotation},
	{name: "sigterm", run: sigterm},
	{name: "sigterm-backend-down", run: sigtermBackendDown},
	{name: "backend-down", run: backendDown},
	{name: "backend-slow", run: backendSlow},
	{name: "refusing-grpc", run: refusingGRPC},
	{name: "refusing-http", run: refusingHTTP},
	{name: "flapping-tls", run: flappingTLS},
	{name: "disk-full-archive", run: diskFullArchive},
	{name: "disk-full-queue", run: diskFullQueue},
	{name: "read-only-archive", run: readOnlyArchive},
	{name: "clock-jumps", run: clockJumps},
	{name: "stalled-soak", run: stalledSoak},
	{name: "slow-headers", run: slowHeaders},
	{name: "corrupt-queue", run: corruptQueue},
	{name: "partition", run: partition},
}

func TestChaos(t *testing.T) {
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			if !tt.alone {
				t.Parallel()
			}
			c := &chaos{T: t, book: newBook()}
			tt.run(c)
			c.close(tt.name)
		})
	}
}

// TestLossySink runs all cases, in a process of its own, with sinks that forget one span in 10,000: none may be green.
func TestLossySink(t *testing.T) {
	if *lossy || *long {
		t.Skip("the short forms are run with a lossy sink, once")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	out, err := exec.Command(self, "-test.run", "^TestChaos$", "-test.v", "-test.parallel", "6", "-test.timeout", "10m", "-lossy").CombinedOutput()
	require.Error(t, err)
	for _, tt := range cases {
		require.Regexp(t, `--- (FAIL|SKIP): TestChaos/`+tt.name+` `, string(out))
	}
}

// chaos is one case.
type chaos struct {
	*testing.T
	book       *book
	collectors []*testbed.Collector
}

// lines are the balances of all cases, to stand together at the end.
var (
	linesMu sync.Mutex
	lines   []string
)

// close closes the books, for the sink as it is and for one that loses spans, of which the case must not say that all is well.
func (c *chaos) close(name string) {
	for _, collector := range c.collectors {
		require.NotRegexp(c, `(?m)^(panic: |fatal error: |unexpected fault address)`, collector.Stderr(), "the process has ended badly")
	}
	balance := c.book.balance(0)
	linesMu.Lock()
	lines = append(lines, name+" "+balance.String())
	linesMu.Unlock()
	c.Log(name, balance)
	require.NotZero(c, balance.delivered, "nothing was delivered, so the case says nothing")
	require.True(c, balance.closed(), "%s %s: %s", name, balance, c.book.firstLost())
	require.False(c, c.book.balance(10_000).closed(), "the books also close with a sink that loses one span in 10,000")
}

func TestMain(m *testing.M) {
	flag.Parse()
	if *lossy {
		patience = 15 * time.Second // What is lost does not come.
	}
	began := time.Now()
	code := m.Run()
	for _, line := range lines {
		fmt.Println(line)
	}
	fmt.Printf("%d cases in %s\n", len(lines), time.Since(began).Round(time.Second))
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// embedded prepares a collector with a config that it carries, which waits for less long between tries. settings are given as --set.
func (c *chaos) embedded(name string, opts testbed.Options, settings ...string) *testbed.Collector {
	c.Helper()
	opts.Config = quick(inlined(c, name))
	return c.collector(opts, settings...)
}

// collector prepares a collector in a folder of its own.
func (c *chaos) collector(opts testbed.Options, settings ...string) *testbed.Collector {
	c.Helper()
	for _, setting := range settings {
		opts.Args = append(opts.Args, "--set", setting)
	}
	opts.Env = append([]string{"LENSCOL_HEALTH_PORT=" + testbed.FreePort(c), "HONEYCOMB_API_KEY=k"}, opts.Env...)
	collector := testbed.New(c, opts)
	c.collectors = append(c.collectors, collector)
	return collector
}

var part = regexp.MustCompile(`(?m)^( *)(.*): \$\{lenscol:(parts/.*)\}$`)

// inlined is the text of a config in which the texts of its parts stand: --set of a key within a part would replace the part.
func inlined(t testing.TB, name string) string {
	t.Helper()
	text, err := configs.Read(name)
	require.NoError(t, err)
	return inlineParts(t, string(text))
}

func inlineParts(t testing.TB, text string) string {
	return part.ReplaceAllStringFunc(text, func(line string) string {
		match := part.FindStringSubmatch(line)
		indent := "\n" + match[1] + "  "
		return match[1] + match[2] + ":" + indent + strings.ReplaceAll(strings.TrimSpace(inlined(t, match[3])), "\n", indent)
	})
}

func quick(config string) string {
	return strings.NewReplacer("initial_interval: 1s", "initial_interval: 50ms", "max_interval: 30s", "max_interval: 500ms", "flush_timeout: 1s", "flush_timeout: 50ms").Replace(config)
}

// eventually waits for what other processes do; what says at the end what there was.
func (c *chaos) eventually(condition func() bool, what func() string) {
	c.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		require.True(c, time.Now().Before(deadline), "after %s: %s", patience, what())
	}
}

// patience bounds every wait, far beyond what a busy machine needs.
var patience = 2 * time.Minute

// delivered waits until the sinks have all that was acknowledged, for as long as something comes; where that never comes true, the books say so.
func (c *chaos) delivered() {
	c.Helper()
	had := 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		balance := c.book.balance(0)
		if balance.closed() {
			return
		}
		if balance.delivered > had {
			had, deadline = balance.delivered, time.Now().Add(patience)
		}
	}
	c.Logf("nothing has come for %s, and not all is delivered: %s", patience, c.book.firstLost())
}

// forms are how much of something there is in the short and in the long form.
func forms[T any](short, inLong T) T {
	if *long {
		return inLong
	}
	return short
}

// progress says how far a long form is.
func (c *chaos) progress(format string, args ...any) {
	if *long {
		fmt.Printf("%s %s: %s; %s\n", time.Now().UTC().Format(time.TimeOnly), strings.TrimPrefix(c.Name(), "TestChaos/"), fmt.Sprintf(format, args...), c.book.balance(0))
	}
}
