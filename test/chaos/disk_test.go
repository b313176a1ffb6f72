// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// slow are senders that do not fill a small disk by themselves.
var slow = []sender{{spans: 20, pause: 50 * time.Millisecond}, {spans: 2, http: true, pause: 20 * time.Millisecond}}

// diskFullArchive fills the disk of an archive and frees it: meanwhile senders are told to send again.
func diskFullArchive(c *chaos) {
	disk := testbed.Tmpfs(c, "64m")
	collector := c.embedded("archive", testbed.Options{Env: []string{"LENSCOL_DATA_DIR=" + disk}}, "exporters.jsonl.min_free_bytes=0")
	collector.Start()
	for range forms(1, 10) {
		l := c.start(collector, slow...)
		c.answers(l, 20)
		ballast := c.fillUp(disk)
		refused := c.refusedSoFar()
		c.eventually(func() bool { return c.refusedSoFar() > refused }, func() string { return "nobody is refused, and the disk is full" })
		c.pass(forms(time.Second, 20*time.Second), "full")
		require.NoError(c, os.Remove(ballast))
		c.answers(l, 20)
		c.stop(l)
	}
	collector.Stop()
	c.archived(disk)
}

// diskFullQueue fills the disk below the queue while the backend is away, has the backend come back while the disk is still full, and frees it.
func diskFullQueue(c *chaos) {
	disk := testbed.Tmpfs(c, "64m")
	backend := c.newSink(takeAll)
	collector := c.toHoneycomb(backend, testbed.Options{Env: []string{"LENSCOL_QUEUE_DIR=" + disk}})
	collector.Start()
	for round := range forms(2, 10) {
		l := c.start(collector, slow...)
		c.answers(l, 20)
		ballast := c.fillUp(disk)
		refused := c.refusedSoFar()
		c.eventually(func() bool { return c.refusedSoFar() > refused }, func() string { return "nobody is refused, and the disk is full" })
		c.pass(forms(time.Second, 20*time.Second), "full")
		if round%2 == 1 {
			backend.serveHTTP()
			taken := backend.requests.Load()
			c.eventually(func() bool { return backend.requests.Load() > taken+2 }, func() string { return "nothing is sent while the disk is full" })
		}
		require.NoError(c, os.Remove(ballast))
		c.answers(l, 20)
		c.stop(l)
		if round%2 == 0 {
			backend.serveHTTP()
		}
		c.delivered()
		backend.close()
	}
	collector.Stop()
}

func (c *chaos) refusedSoFar() int {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	return c.book.refused
}

// fillUp leaves no byte on a disk, and returns the file that takes it.
func (c *chaos) fillUp(disk string) (ballast string) {
	c.Helper()
	ballast = filepath.Join(disk, "ballast")
	file, err := os.Create(ballast)
	require.NoError(c, err)
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	require.ErrorIs(c, err, syscall.ENOSPC)
	return ballast
}

// readOnlyArchive has the file system of an archive become read-only under it, as ext4 does when the disk has an error: senders are told to send
// again. With the file system repaired and mounted anew the collector goes on, after a restart.
func readOnlyArchive(c *chaos) {
	image, folder := filepath.Join(c.TempDir(), "image"), c.TempDir()
	require.NoError(c, os.WriteFile(image, nil, 0o600))
	require.NoError(c, os.Truncate(image, 64<<20))
	run := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			c.Skipf("a file system that becomes read-only cannot be had here (it takes root, loop devices and ext4): %s %v: %v %s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("mkfs.ext4", "-q", "-F", image)
	mount := func() string {
		run("mount", "-o", "loop,errors=remount-ro", image, folder)
		return run("findmnt", "-n", "-o", "SOURCE", folder)
	}
	device := mount()
	c.Cleanup(func() { _ = exec.Command("umount", folder).Run() })
	fault := "/sys/fs/ext4/" + filepath.Base(device) + "/trigger_fs_error"
	if _, err := os.Stat(fault); err != nil {
		c.Skipf("the kernel cannot be told to have a disk error: %v", err)
	}
	// What is in the page cache alone is gone with the file system: sync is what the archive has for that.
	collector := c.embedded("archive", testbed.Options{Env: []string{"LENSCOL_DATA_DIR=" + folder + "/data"}}, "exporters.jsonl.min_free_bytes=0", "exporters.jsonl.sync=always")
	for range forms(1, 10) {
		collector.Start()
		l := c.start(collector, slow...)
		c.answers(l, 20)
		require.NoError(c, os.WriteFile("/sys/fs/ext4/"+filepath.Base(device)+"/trigger_fs_error", []byte("chaos"), 0))
		refused := c.refusedSoFar()
		c.eventually(func() bool { return c.refusedSoFar() > refused }, func() string { return "nobody is refused, and the disk is read-only" })
		c.endsBySIGTERM(collector, patience) // With exit code 1: it says what it could not write.
		run("umount", folder)
		// As a copy: other mount namespaces may still hold the old one.
		run("cp", "--sparse=always", image, image+"-repaired")
		image += "-repaired"
		if out, err := exec.Command("e2fsck", "-fy", image).CombinedOutput(); err != nil { // 1: errors were corrected.
			require.Equal(c, 1, err.(*exec.ExitError).ExitCode(), "%s", out)
		}
		device = mount()
		collector.Start()
		c.answers(l, 20)
		c.stop(l)
		collector.Stop()
	}
	c.archived(folder + "/data")
}

// endsBySIGTERM waits longer than Stop, and takes any exit code.
func (c *chaos) endsBySIGTERM(collector *testbed.Collector, bound time.Duration) {
	c.Helper()
	process, err := os.FindProcess(collector.Pid())
	require.NoError(c, err)
	require.NoError(c, process.Signal(syscall.SIGTERM))
	for deadline := time.Now().Add(bound); process.Signal(syscall.Signal(0)) == nil; time.Sleep(20 * time.Millisecond) {
		require.True(c, time.Now().Before(deadline), "it does not end on SIGTERM within %s", bound)
	}
	collector.Kill() // Which is over, and waits for that.
}

// residentMiB reads one of the numbers that the kernel keeps of a process: VmHWM, the peak, or RssAnon, without mapped files.
func (c *chaos) residentMiB(collector *testbed.Collector, name string) (mib int) {
	c.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", collector.Pid()))
	require.NoError(c, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			_, err := fmt.Sscan(rest, &mib)
			require.NoError(c, err)
			return mib / 1024
		}
	}
	require.Fail(c, "no "+name)
	return 0
}
