// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package lens

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// TestFork has what a rank and its child send, however that was started: one trace, and nothing twice.
func TestFork(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"os.fork", "fork", "spawn", "forkserver"} {
		for protocol, env := range map[string]func(*testbed.Collector) []string{"grpc": grpc, "http": http} {
			t.Run(method+" "+protocol, func(t *testing.T) {
				t.Parallel()
				c := testbed.Start(t, testbed.Options{})
				p := run(t, c, append(env(c), "METHOD="+method), "fork.py")
				c.Stop()
				got := spans(t, c)
				requireSame(t, p.made(), got)
				require.Equal(t, []string{"before", "child", "grandchild", "parent"}, names(got))
				parent, child, grandchild := one(t, got, "parent"), one(t, got, "child"), one(t, got, "grandchild")
				require.Equal(t, []string{parent.TraceID, parent.SpanID}, []string{child.TraceID, child.ParentID})
				require.Equal(t, []string{parent.TraceID, child.SpanID}, []string{grandchild.TraceID, grandchild.ParentID})
				require.NotEqual(t, one(t, got, "before").Attributes["pid"], child.Attributes["pid"])
			})
		}
	}
}

// TestSIGTERM has what left the process: all that ended where Lens is shut down or the interpreter exits, else what was flushed. Lens
// 0.1 sends no span that is still open.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	for on, want := range map[string][]string{"die": {"flushed"}, "exit": {"flushed", "queued"}, "shutdown": {"flushed", "queued"}} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			c := testbed.Start(t, testbed.Options{})
			p := launch(t, c, []string{"ON_SIGTERM=" + on, "OTEL_BSP_SCHEDULE_DELAY=3600000"}, "sigterm.py")
			p.until(p.stdout, "ready")
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
			p.wait()
			if on == "die" {
				require.Equal(t, syscall.SIGTERM, p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
			} else {
				require.NoError(t, p.err)
			}
			c.Stop()
			require.Equal(t, want, names(spans(t, c)))
		})
	}
}

// TestCollectorAfterRanks starts the collector once a rank tries to send: the SDK's retry brings all of it.
func TestCollectorAfterRanks(t *testing.T) {
	t.Parallel()
	for protocol, env := range map[string]func(*testbed.Collector) []string{"grpc": grpc, "http": http} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := testbed.New(t, testbed.Options{})
			p := launch(t, c, append(env(c), "OTEL_EXPORTER_OTLP_TIMEOUT=100"), "late.py")
			p.until(p.stderr, "Transient error")
			c.Start()
			p.wait()
			require.NoError(t, p.err)
			c.Stop()
			requireSame(t, p.made(), spans(t, c))
			require.Len(t, spans(t, c), 3)
			points := archived(t, c, "metrics")
			require.NotEmpty(t, points)
			for _, l := range points { // One as Lens flushes, one as it shuts down.
				require.Equal(t, []any{"steps", json.Number("3")}, []any{l.Name, l.Value})
			}
		})
	}
}

// TestCollectorRestarts kills and stops the collector under load, once for so long that the SDK's queue overflows. Whatever it has
// acknowledged is in the archive, nothing else than what was made, and what is missing is what the SDK gave up.
func TestCollectorRestarts(t *testing.T) {
	t.Parallel()
	for protocol, env := range map[string]func(*testbed.Collector) []string{"grpc": grpc, "http": http} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := testbed.Start(t, testbed.Options{})
			acknowledged := filepath.Join(t.TempDir(), "acknowledged")
			p := launch(t, c, append(env(c), "ACKNOWLEDGED="+acknowledged, "OTEL_EXPORTER_OTLP_TIMEOUT=100",
				"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_BSP_MAX_QUEUE_SIZE=512", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=128", "NEMO_LENS_METRICS_ENABLED=false", "NEMO_LENS_LOGS_ENABLED=false"), "load.py")
			size := func() int64 {
				info, err := os.Stat(acknowledged)
				if err != nil {
					return 0
				}
				return info.Size()
			}
			for _, end := range []func(){c.Kill, c.Stop, c.Kill} {
				before := size()
				eventually(t, func() bool { return size() > before+17*1000 }, "a thousand spans more are acknowledged")
				end()
				p.until(p.stderr, "Queue full, dropping")
				c.Start()
			}
			require.NoError(t, p.stdin.Close())
			p.wait()
			require.NoError(t, p.err)
			c.Stop()

			var told struct{ Made, Acknowledged, Failed, Dropped int }
			require.NoError(t, json.Unmarshal([]byte(p.read(p.stdout)), &told))
			t.Logf("%+v", told)
			text, err := os.ReadFile(acknowledged)
			require.NoError(t, err)
			ids := strings.Fields(string(text))
			require.Len(t, ids, told.Acknowledged)

			made, got := map[string]span{}, map[string]span{}
			for _, s := range p.made() {
				made[s.SpanID] = s
			}
			require.Len(t, made, told.Made)
			for _, s := range spans(t, c) {
				require.Equal(t, made[s.SpanID], s)
				got[s.SpanID] = s
			}
			for _, id := range ids {
				require.Contains(t, got, id, "acknowledged and lost")
			}
			require.Positive(t, told.Dropped)
			// A request that the collector had written when it was killed has no answer: the SDK sends it again, or gives it up.
			require.LessOrEqual(t, len(made)-len(got), told.Failed+told.Dropped)
		})
	}
}
