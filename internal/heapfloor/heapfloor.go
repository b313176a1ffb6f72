// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package heapfloor keeps the garbage collector from running for a heap that is small.
//
// Go collects when the heap has doubled. A collector that hands on what it gets has little that lives, some 20 MiB, and makes a gigabyte
// of garbage a second under load: it collects thirty times a second, a third of its CPU time. With a floor it collects when the heap has
// that size, or has doubled, whichever is later.
package heapfloor // import "github.com/lenscol/lenscol/internal/heapfloor"

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Floor is the size up to which the heap grows before it is collected, in bytes.
const Floor = 96 << 20

// Keep begins to keep the floor, or less where there is little memory: an eighth of the machine's or the control group's. It does nothing where
// GOGC or GOMEMLIMIT says what is wanted.
func Keep() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	(&keeper{floor: min(Floor, memory("/")/8)}).afterCollection()
}

// keeper sets the GC percentage anew after every collection, to what lets the heap grow to the floor.
//
// A collection that somebody forces ends it. That is memory_limiter, which finds too much memory in use: its limit is too low for a floor,
// and what it takes for use is garbage. Without the floor, Go collects as it always does.
type keeper struct {
	floor   uint64
	percent int
}

// collected is garbage at once: that it is collected says that a collection was done. It has a pointer, or it would share its memory.
type collected struct{ *keeper }

func (k *keeper) afterCollection() {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}, {Name: "/gc/cycles/forced:gc-cycles"},
	}
	metrics.Read(samples)
	live, rest := samples[0].Value.Uint64(), samples[1].Value.Uint64()+samples[2].Value.Uint64()
	if samples[3].Value.Uint64() > 0 {
		debug.SetGCPercent(defaultPercent)
		return
	}
	// The runtime is stopped for a moment to set it, so small changes are let pass.
	if p := percent(k.floor, live, rest); p < k.percent*9/10 || p > k.percent*11/10 {
		debug.SetGCPercent(p)
		k.percent = p
	}
	runtime.SetFinalizer(&collected{k}, func(c *collected) { c.afterCollection() })
}

const defaultPercent = 100

// percent is the GC percentage with which a heap of which so much lives grows to the floor. The runtime collects at
// live + (live + stacks and globals) × percent / 100, but not below 4 MiB × percent / 100.
func percent(floor, live, rest uint64) int {
	const least = 4 << 20
	p := defaultPercent
	if live < floor {
		p = int(min((floor-live)*100/max(live+rest, 1), floor*100/least))
	}
	return max(p, defaultPercent)
}

// memory is that of the machine or, where it is limited, of the control group: a container, a unit of systemd, a step of a job.
func memory(root string) uint64 {
	most := uint64(math.MaxUint64)
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // id:controllers:path, of which version 2 has "0::path"
		if len(fields) < 3 {
			continue
		}
		folder, file := "sys/fs/cgroup", "memory.max"
		if fields[1] == "memory" {
			folder, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if fields[1] != "" {
			continue
		}
		// A limit of a group above holds too. In a container the path may be that outside, which is not there.
		for path := filepath.Clean("/" + fields[2]); ; path = filepath.Dir(path) {
			most = min(most, number(os.ReadFile(filepath.Join(root, folder, path, file))))
			if path == "/" {
				break
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		_, rest, _ := bytes.Cut(text, []byte("MemTotal:"))
		if fields := bytes.Fields(rest); len(fields) > 0 {
			if kb, err := strconv.ParseUint(string(fields[0]), 10, 64); err == nil {
				most = min(most, kb<<10)
			}
		}
	}
	return most
}

// number is what a file of a control group says; "max" is none.
func number(text []byte, err error) uint64 {
	if n, parseErr := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64); err == nil && parseErr == nil {
		return n
	}
	return math.MaxUint64
}
