// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// statOf is a stat file as the kernel writes it, of a process that started that many ticks after boot.
func statOf(name string, start string) string {
	return fmt.Sprintf("4711 (%s) S 1 4711 4711 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 8 0 %s 12345 678 18446744073709551615 1 1 0 0\n", name, start)
}

func TestProcessAge(t *testing.T) {
	tests := []struct {
		name, stat, uptime string
		want               time.Duration
		err                string
	}{
		{"plain", statOf("lens", "1000"), "25.50 40.00\n", 15500 * time.Millisecond, ""},
		{"parentheses in the name", statOf(") R 1 2 3 (", "1000"), "25.50 40.00\n", 15500 * time.Millisecond, ""},
		{"a name like fields", statOf("a) S 1 1 1 0 0 0", "1000"), "25.50 40.00\n", 15500 * time.Millisecond, ""},
		{"a line break in the name", statOf("a\nb )", "1000"), "25.50 40.00\n", 15500 * time.Millisecond, ""},
		{"bytes that are no text", statOf("\xff\x01)", "1000"), "25.50 40.00\n", 15500 * time.Millisecond, ""},
		{"no name", statOf("", "1000"), "25.50 40.00\n", 15500 * time.Millisecond, ""},
		{"just started", statOf("lens", "2550"), "25.50 40.00\n", 0, ""},
		{"no parenthesis", "4711 lens S 1", "25.50 40.00\n", 0, "too few fields"},
		{"torn", "4711 (lens) S 1 2 3", "25.50 40.00\n", 0, "too few fields"},
		{"empty", "", "25.50 40.00\n", 0, "too few fields"},
		{"start below zero", statOf("lens", "-1"), "25.50 40.00\n", 0, "field 22"},
		{"no uptime", statOf("lens", "1000"), "", 0, "/proc/uptime"},
		{"uptime that is no number", statOf("lens", "1000"), "NaN 1\n", 0, "/proc/uptime is NaN s"},
		{"endless uptime", statOf("lens", "1000"), "inf 1\n", 0, "/proc/uptime is inf s"},
		{"the uptime of a container", statOf("lens", "1000"), "3.00 1\n", 0, "started 1000 ticks after boot"},
		{"start beyond all", statOf("lens", "18446744073709551615"), "25.50 40.00\n", 0, "ticks after boot"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := processAge(tt.stat, tt.uptime)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// A process of a hostile name says when it was started, between its parent's clock before and after.
func TestProcessStartTime(t *testing.T) {
	if os.Getenv("LENS_PRINT_START") != "" {
		start, err := ProcessStartTime()
		fmt.Println(start.UnixNano(), err)
		return
	}
	if runtime.GOOS != "linux" {
		_, err := ProcessStartTime()
		require.ErrorContains(t, err, "process start time")
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "x) R 1 2 (")
	require.NoError(t, os.Symlink(self, program))
	before := time.Now().Add(-time.Second / ticksPerSecond * 2)
	cmd := exec.Command(program, "-test.run=^TestProcessStartTime$", "-test.v")
	cmd.Env = append(os.Environ(), "LENS_PRINT_START=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		if nanos, found := strings.CutSuffix(line, " <nil>\n"); found {
			n, err := strconv.ParseInt(nanos, 10, 64)
			require.NoError(t, err)
			require.WithinRange(t, time.Unix(0, n), before, time.Now())
			return
		}
	}
	t.Fatalf("no start time in %s", out)
}

func FuzzProcessAge(f *testing.F) {
	f.Add(statOf("lens", "1000"), "25.50 40.00\n")
	f.Add(statOf(") R 1 2 3 (", "1000"), "inf")
	f.Add(statOf("lens", "18446744073709551615"), "1e308 0")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, stat, uptime string) {
		if age, err := processAge(stat, uptime); err == nil && age < 0 {
			t.Errorf("the process is %v old", age)
		}
	})
}
