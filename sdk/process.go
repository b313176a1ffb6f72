// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens // import "github.com/lenscol/lenscol/sdk"

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// ProcessStartTime is when this process was created, to a hundredth of a second: a span of the startup begins there, and not
// where telemetry was set up. It is read from procfs, so it is an error elsewhere than on Linux.
// (NeMo Lens, linux_process_create_time)
func ProcessStartTime() (time.Time, error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return time.Time{}, fmt.Errorf("process start time: %w", err)
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}, fmt.Errorf("process start time: %w", err)
	}
	age, err := processAge(string(stat), string(uptime))
	if err != nil {
		return time.Time{}, fmt.Errorf("process start time: %w", err)
	}
	return time.Now().Add(-age), nil
}

const (
	ticksPerSecond = 100 // USER_HZ, of every architecture that Go knows
	startTimeField = 19  // of those behind the name: the start, in ticks since boot
)

// processAge is the time since a process started, of its stat file and the machine's uptime (proc(5)). The name in the stat
// file stands in parentheses and may hold anything, parentheses and spaces too: it ends at the last one.
func processAge(stat, uptime string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) <= startTimeField {
		return 0, errors.New("/proc/self/stat has too few fields")
	}
	start, err := strconv.ParseUint(fields[startTimeField], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/self/stat, field 22: %w", err)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(uptime), " ")
	up, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/uptime: %w", err)
	}
	// Where a container's uptime is not the machine's, a process seems to start in the future.
	age := up - float64(start)/ticksPerSecond
	if !(age > -1.0/ticksPerSecond && age < math.MaxInt64/1e9) { // NaN neither
		return 0, fmt.Errorf("/proc/uptime is %s s, but the process started %d ticks after boot", first, start)
	}
	return time.Duration(max(age, 0) * 1e9), nil
}
