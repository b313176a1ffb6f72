// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// clockJumps sets the wall clock of a collector back and forth, by seconds and by years, while it rotates by the hour and partitions by date.
func clockJumps(c *chaos) {
	collector := c.embedded("archive", testbed.Options{}, "exporters.jsonl.rotation={schedule: hourly, max_age: 1m, max_bytes: 100kB}",
		"exporters.jsonl.path=lens-data/{date}/{signal}.jsonl", "exporters.jsonl.compression=zstd")
	collector.Start()
	clock := openClock(c, collector)
	l := c.start(collector, steady...)
	const day = 24 * time.Hour
	jumps := []time.Duration{0, time.Hour, -time.Hour, 3 * time.Second, -3 * time.Second, 400 * day, -400 * day, day, -10_000 * day, 0}
	for round := range forms(1, 50) {
		for _, jump := range jumps {
			clock.jump(c, jump)
			c.answers(l, 20)
		}
		c.progress("%d rounds", round+1)
	}
	c.stop(l)
	collector.Stop()
	folder := filepath.Join(collector.Dir, "lens-data")
	c.archived(folder)
	for _, jump := range []time.Duration{400 * day, -400 * day, -10_000 * day} {
		require.DirExists(c, filepath.Join(folder, time.Now().Add(jump).UTC().Format(time.DateOnly)), "the jump was not noticed, so the case says nothing")
	}
}

// clock is the wall clock of one process, and of no other. Go reads the time from the code that the kernel maps into each process, the vDSO. A
// process has its own copy of a page of that as soon as somebody writes to it: so clock_gettime is written anew there, as the system call, and what is added to
// CLOCK_REALTIME.
type clock struct {
	memory *os.File
	offset int64 // address of the seconds that are added
}

// replacement is clock_gettime in machine code of amd64; the eight bytes behind it are the seconds to add.
var replacement = []byte{
	0xb8, 0xe4, 0, 0, 0, // mov eax, 228: SYS_clock_gettime; the arguments are in their places
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi: CLOCK_REALTIME is 0
	0x75, 0x0a, // jnz to the end
	0x48, 0x8b, 0x15, 0x04, 0, 0, 0, // mov rdx, [rip+4]
	0x48, 0x01, 0x16, // add [rsi], rdx: timespec.tv_sec
	0xc3, // ret
}

func openClock(c *chaos, collector *testbed.Collector) *clock {
	if runtime.GOARCH != "amd64" {
		c.Skipf("a process's clock can be set on amd64 alone, this is %s", runtime.GOARCH)
	}
	begin, end := vdso(c, collector.Pid())
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", collector.Pid()), os.O_RDWR, 0)
	require.NoError(c, err)
	c.Cleanup(func() { _ = memory.Close() })
	image := make([]byte, end-begin)
	_, err = memory.ReadAt(image, begin)
	require.NoError(c, err)
	file, err := elf.NewFile(bytes.NewReader(image))
	require.NoError(c, err)
	symbols, err := file.DynamicSymbols()
	require.NoError(c, err)
	for _, symbol := range symbols {
		if symbol.Name != "__vdso_clock_gettime" {
			continue
		}
		at := begin + int64(symbol.Value)
		code := append(slices.Clone(replacement), make([]byte, 8)...)
		require.LessOrEqual(c, len(code), int(symbol.Size))
		stopOutside(c, collector.Pid(), begin, end)
		_, err = memory.WriteAt(code, at)
		require.NoError(c, syscall.Kill(collector.Pid(), syscall.SIGCONT))
		if err != nil {
			c.Skipf("the kernel does not let the memory of a process be written: %v", err)
		}
		return &clock{memory, at + int64(len(replacement))}
	}
	c.Skip("the vDSO has no clock_gettime")
	return nil
}

// stopOutside stops a process when none of its threads is in those addresses.
func stopOutside(c *chaos, pid int, begin, end int64) {
	c.Helper()
	outside := func() bool {
		require.NoError(c, syscall.Kill(pid, syscall.SIGSTOP))
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		require.NoError(c, err)
		for _, task := range tasks {
			c.eventually(func() bool {
				stat, _ := os.ReadFile(task + "/stat")
				return bytes.Contains(stat, []byte(") T "))
			}, func() string { return "a thread does not stop" })
			where, err := os.ReadFile(task + "/syscall") // The last field is the program counter.
			require.NoError(c, err)
			fields := strings.Fields(string(where))
			pc, err := strconv.ParseInt(fields[len(fields)-1], 0, 64)
			require.NoError(c, err)
			if begin <= pc && pc < end {
				return false
			}
		}
		return len(tasks) > 0
	}
	c.eventually(func() bool {
		if outside() {
			return true
		}
		require.NoError(c, syscall.Kill(pid, syscall.SIGCONT))
		return false
	}, func() string { return "the process always reads the clock" })
}

// jump sets the clock to so much after, or before, the true time.
func (k *clock) jump(c *chaos, d time.Duration) {
	c.Helper()
	_, err := k.memory.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(int64(d/time.Second))), k.offset)
	require.NoError(c, err)
}

// vdso is where a process has it.
func vdso(t testing.TB, pid int) (begin, end int64) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &begin, &end)
			require.NoError(t, err)
			return begin, end
		}
	}
	require.Fail(t, "no vDSO")
	return 0, 0
}
