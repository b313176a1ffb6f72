// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package heapfloor

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPercent: the runtime's own formula, with the percentage that is set, gives the floor.
func TestPercent(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name              string
		floor, live, rest uint64
		want              int
	}{
		{"a small heap", 128 * mib, 20 * mib, 0, 540},
		{"stacks and globals count", 128 * mib, 20 * mib, 7 * mib, 400},
		{"half of the floor", 128 * mib, 64 * mib, 0, 100},
		{"more than half of it: it has doubled", 128 * mib, 100 * mib, 0, 100},
		{"more than the floor", 128 * mib, 1000 * mib, 0, 100},
		{"nothing lives: not above the floor by the runtime's least heap", 128 * mib, 1, 0, 3200},
		{"no memory is known", 0, 20 * mib, 0, 100},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, percent(tt.floor, tt.live, tt.rest)) })
	}
}

// TestMemory: the least of what the machine has and what the process's groups may have.
func TestMemory(t *testing.T) {
	const version2, version1 = "sys/fs/cgroup/", "sys/fs/cgroup/memory/"
	for name, tt := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"nothing is known": {nil, math.MaxUint64},
		"no limit":         {map[string]string{"proc/self/cgroup": "0::/a\n", version2 + "a/memory.max": "max\n"}, 8 << 30},
		"a container":      {map[string]string{"proc/self/cgroup": "0::/\n", version2 + "memory.max": "1000\n"}, 1000},
		"a unit":           {map[string]string{"proc/self/cgroup": "0::/system.slice/lenscol.service\n", version2 + "system.slice/lenscol.service/memory.max": "1000\n"}, 1000},
		"a group above": {map[string]string{
			"proc/self/cgroup": "0::/job/step\n", version2 + "job/step/memory.max": "2000\n", version2 + "job/memory.max": "1000\n",
		}, 1000},
		"version 1": {map[string]string{
			"proc/self/cgroup": "9:name=systemd:/\n4:memory:/job\n1:cpu:/\n0::/\n", version1 + "job/memory.limit_in_bytes": "1000\n", version1 + "memory.limit_in_bytes": "9223372036854771712\n",
		}, 1000},
		"a path of outside":  {map[string]string{"proc/self/cgroup": "4:memory:/docker/1\n", version1 + "memory.limit_in_bytes": "1000\n"}, 1000},
		"more than there is": {map[string]string{"proc/self/cgroup": "0::/\n", version2 + "memory.max": "1099511627776\n"}, 8 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if tt.files != nil {
				tt.files["proc/meminfo"] = "MemTotal:        8388608 kB\nMemFree:          1 kB\n"
			}
			for path, text := range tt.files {
				path = filepath.Join(root, path)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			require.Equal(t, tt.want, memory(root))
		})
	}
}

// TestKeep runs a process that makes garbage, and counts its collections.
func TestKeep(t *testing.T) {
	run := func(env ...string) (collections, percent, after int) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcess$")
		cmd.Env = append(os.Environ(), append([]string{"HEAPFLOOR_PROCESS=1"}, env...)...)
		out, err := cmd.Output()
		require.NoError(t, err, "%s", out)
		fields := strings.Fields(string(out))
		for i, into := range []*int{&collections, &percent, &after} {
			*into, err = strconv.Atoi(fields[i])
			require.NoError(t, err, "%s", out)
		}
		return collections, percent, after
	}
	kept, _, after := run("GOGC=", "GOMEMLIMIT=")
	require.Equal(t, 100, after, "what memory_limiter does ends it")
	untouched, percent, _ := run("GOGC=100", "GOMEMLIMIT=")
	require.Equal(t, 100, percent)
	require.Less(t, kept, untouched/2, "collections")
	_, percent, _ = run("GOGC=", "GOMEMLIMIT=4GiB")
	require.Equal(t, 100, percent)
}

// TestProcess is the process of TestKeep: it makes 512 MiB of garbage, and prints its collections and the percentage then and after a forced one.
func TestProcess(t *testing.T) {
	if os.Getenv("HEAPFLOOR_PROCESS") == "" {
		t.Skip("TestKeep starts it")
	}
	Keep()
	for range 32 << 10 {
		garbage = make([]byte, 16<<10)
	}
	sample := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	print := []uint64{sample[0].Value.Uint64(), sample[1].Value.Uint64()}
	for range 10 {
		runtime.GC() // finalizers run when they run
		runtime.Gosched()
	}
	previous := debug.SetGCPercent(100)
	os.Stdout.WriteString(strconv.FormatUint(print[0], 10) + " " + strconv.FormatUint(print[1], 10) + " " + strconv.Itoa(previous) + "\n")
	os.Exit(0)
}

var garbage []byte

// BenchmarkDecode is what the floor spares: requests are decoded over 15 MiB that live, with Go's own percentage and with the floor's.
func BenchmarkDecode(b *testing.B) {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range 512 {
		span := spans.AppendEmpty()
		span.SetName("megatron.train.iteration.forward_backward")
		span.Attributes().PutInt("megatron.iteration", int64(i))
		span.Attributes().PutInt("megatron.num_microbatches", 16)
		span.Attributes().PutStr("lens.span_category", "goodput")
		span.Attributes().PutStr("lens.group", "forward_backward")
	}
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(b, err)
	decode := func() ptrace.Traces {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(body)
		require.NoError(b, err)
		return td
	}
	live := make([]ptrace.Traces, 40)
	for i := range live {
		live[i] = decode()
	}
	for _, floor := range []uint64{0, Floor} {
		b.Run(strconv.FormatUint(floor>>20, 10)+"MiB", func(b *testing.B) {
			debug.SetGCPercent(percent(floor, 15<<20, 0))
			defer debug.SetGCPercent(defaultPercent)
			runtime.GC()
			before := cpuTime(b)
			for b.Loop() {
				decode()
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N*512), "cpu-ns/span")
		})
	}
	runtime.KeepAlive(live)
}

// cpuTime is that of the process, with what the garbage collector uses beside.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
