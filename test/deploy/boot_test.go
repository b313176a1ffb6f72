// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// booted is a machine of its own that systemd has started: this one's files, where nothing that is changed stays, in namespaces of its own.
type booted struct {
	t   *testing.T
	pid string
}

// Its cgroups are its own, below one that has nothing else. On a machine with the first version of cgroups, systemd takes what it can have of the controllers.
const boot = `#!/bin/bash
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
mkdir -p old mnt
mount --bind "$2" mnt
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs tmpfs sys/fs/cgroup
if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
	mount -t cgroup2 cgroup2 sys/fs/cgroup
else
	mkdir sys/fs/cgroup/systemd
	mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
fi
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do mknod -m 666 dev/$device c $(stat -c '0x%t 0x%T' /dev/$device); done
mkdir dev/pts dev/shm
ln -s /proc/self/fd dev/fd
ln -s pts/ptmx dev/ptmx
rm -rf etc/systemd/system/*.wants
ip link set lo up
pivot_root . old
umount -l /old
mount --make-rshared / # systemd does not do that in a container, and needs it for credentials
exec env -i container=lenscol PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
`

func bootSystemd(t *testing.T, mnt string) *booted {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("boots systemd, which needs root")
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		t.Skip("needs Debian's systemd: ", err)
	}
	script := filepath.Join(t.TempDir(), "boot.sh")
	require.NoError(t, os.WriteFile(script, []byte(boot), 0o700))
	var said safeBuffer
	group := fmt.Sprintf("lenscol-boot-%d", os.Getpid())
	cmd := exec.Command("sh", "-euc", `for dir in /sys/fs/cgroup /sys/fs/cgroup/*; do
	[ ! -e "$dir/cgroup.procs" ] || { mkdir "$dir/$0" && echo $$ >"$dir/$0/cgroup.procs"; } 2>/dev/null || continue
done
exec unshare --mount --pid --fork --kill-child --net --uts --ipc --cgroup "$@"`, group, script, t.TempDir(), mnt)
	cmd.Stdout, cmd.Stderr = &said, &said
	t.Cleanup(func() { // After its end.
		require.Eventually(t, func() bool { // Its processes end one after the other.
			return exec.Command("find", "/sys/fs/cgroup", "-depth", "-path", "*/"+group+"*", "-type", "d", "-delete").Run() == nil
		}, time.Minute, 50*time.Millisecond, "cgroups of %s are left", group)
	})
	b := &booted{t: t}
	up(t, start(t, cmd), &said, func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if b.pid = strings.TrimSpace(string(children)); b.pid == "" {
			return false
		}
		// Degraded is as good: what fails has nothing to do with this unit.
		state, _ := b.command("systemctl is-system-running").Output()
		return string(state) == "running\n" || string(state) == "degraded\n"
	})
	return b
}

func (b *booted) command(line string) *exec.Cmd {
	return exec.CommandContext(b.t.Context(), "nsenter", "--all", "--target", b.pid, "sh", "-euc", "cd /mnt\n"+line)
}

func (b *booted) do(line string) string {
	b.t.Helper()
	out, err := b.command(line).CombinedOutput()
	if err != nil {
		log, _ := b.command("journalctl --no-pager -n 40 -u lenscol").CombinedOutput()
		require.NoError(b.t, err, "%s\n%s\n%s", line, out, log)
	}
	return strings.TrimSpace(string(out))
}

// The unit is installed and started as the page says, takes a run as the user that it is there, reloads, and ends well; then once more with the drop-in.
func followSystemd(t *testing.T, commands string) {
	dir := checkout(t)
	run(t, dir, "cp", testbed.Binary(t), "lenscol")
	b := bootSystemd(t, dir)
	b.do(commands)
	require.Equal(t, "active", b.do("systemctl is-active lenscol")) // Type=notify: it has said so.
	require.Equal(t, "enabled", b.do("systemctl is-enabled lenscol"))
	b.do("lenscol demo --ranks 1 --steps 1")
	require.Contains(t, b.do("cat /var/lib/lenscol/data/traces.jsonl"), `"type":"span"`)
	require.Empty(t, b.do("find /var/lib/private/lenscol -perm /o+rwx -o -user root"), "its state is its own")

	process := "/proc/" + b.do("systemctl show --value -p MainPID lenscol")
	status := b.do("cat " + process + "/status")
	for _, line := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000", "Umask:\t0027"} {
		require.Contains(t, status, line+"\n")
	}
	require.NotContains(t, status, "Uid:\t0")
	require.Regexp(t, `(?m)^\S+ \S+ \S+ \S+ / ro,`, b.do("cat "+process+"/mountinfo"), "its root is read-only")

	b.do("systemctl reload lenscol && lenscol wait --timeout 60s && systemctl stop lenscol")
	require.Equal(t, "Result=success\nExecMainStatus=0\nActiveState=inactive", b.do("systemctl show -p Result,ExecMainStatus,ActiveState lenscol"))

	b.do(`mkdir -p /etc/lenscol /etc/systemd/system/lenscol.service.d
		(umask 077; echo t0ken >/etc/lenscol/token)
		cp deploy/systemd/daemonset.conf /etc/systemd/system/lenscol.service.d/
		systemctl daemon-reload && systemctl start lenscol && systemctl is-active lenscol
		lenscol demo --ranks 1 --steps 1`)
	token := b.do("tr '\\0' '\\n' </proc/$(systemctl show --value -p MainPID lenscol)/environ | sed -n 's/^LENSCOL_BACKEND_TOKEN_FILE=//p'")
	require.Equal(t, "/run/credentials/lenscol.service/token", token)
	require.Equal(t, "t0ken", b.do("cat "+token))
	b.do("systemctl kill --signal=KILL lenscol")
}
