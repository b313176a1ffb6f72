// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package refinery

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// rules keep traces with an error, drop probes, and keep one of two of the rest.
const rules = `
[` + environment + `]
Sampler = "RulesBasedSampler"
[[` + environment + `.rule]]
name = "errors"
SampleRate = 1
[[` + environment + `.rule.condition]]
field = "error"
operator = "="
value = true
[[` + environment + `.rule]]
name = "probes"
drop = true
[[` + environment + `.rule.condition]]
field = "name"
operator = "="
value = "probe"
[[` + environment + `.rule]]
name = "the rest"
SampleRate = 2
`

// replica is one Refinery of several that share the traces.
type replica struct {
	t       *testing.T
	dir     string
	grpc    string // address of OTLP
	metrics string // address
	cmd     *exec.Cmd
}

// newReplicas prepares two Refineries that know each other; they are not started yet.
func newReplicas(t *testing.T, api string) [2]*replica {
	var replicas [2]*replica
	var peers [2]string
	for i := range peers {
		peers[i] = "127.0.0.1:" + testbed.FreePort(t)
	}
	for i := range replicas {
		r := &replica{t: t, dir: t.TempDir(), grpc: "127.0.0.1:" + testbed.FreePort(t), metrics: "127.0.0.1:" + testbed.FreePort(t)}
		require.NoError(t, os.WriteFile(r.path("rules.toml"), []byte(rules), 0o600))
		require.NoError(t, os.WriteFile(r.path("refinery.toml"), []byte(strings.Join([]string{
			`ListenAddr = "127.0.0.1:` + testbed.FreePort(t) + `"`,
			`PeerListenAddr = "` + peers[i] + `"`,
			`GRPCListenAddr = "` + r.grpc + `"`,
			`HoneycombAPI = "` + api + `"`,
			`SendDelay = "3s"`,    // from a root to the decision
			`TraceTimeout = "1h"`, // to a decision without a root
			`LoggingLevel = "warn"`,
			`Metrics = "prometheus"`,
			`[PrometheusMetrics]`,
			`MetricsListenAddr = "` + r.metrics + `"`,
			`[PeerManagement]`,
			`Type = "file"`,
			`Strategy = "hash"`,
			`Peers = ["http://` + peers[0] + `", "http://` + peers[1] + `"]`,
			`[InMemCollector]`,
			`CacheCapacity = 1000`,
			`[AdditionalAttributes]`,
			`replica = "` + strconv.Itoa(i) + `"`,
		}, "\n")), 0o600))
		t.Cleanup(func() {
			if r.cmd != nil {
				_ = r.cmd.Process.Kill()
				_ = r.cmd.Wait()
			}
			if t.Failed() {
				log, _ := os.ReadFile(r.path("log"))
				t.Logf("the log of Refinery %d:\n…%s", i, log[max(0, len(log)-8<<10):])
			}
		})
		replicas[i] = r
	}
	return replicas
}

func (r *replica) path(name string) string { return filepath.Join(r.dir, name) }

func (r *replica) start() {
	r.t.Helper()
	binary := os.Getenv("LENSCOL_REFINERY_BIN")
	log, err := os.Create(r.path("log"))
	require.NoError(r.t, err)
	defer log.Close()
	r.cmd = exec.Command(binary, "--config", r.path("refinery.toml"), "--rules_config", r.path("rules.toml"))
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.SysProcAttr = testbed.DieWithParent()
	require.NoError(r.t, r.cmd.Start())
}

// stop has it send what it holds.
func (r *replica) stop() {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(r.t, r.cmd.Wait())
	r.cmd = nil
}

// count is the sum of these counters over the replicas.
func count(replicas [2]*replica, names ...string) (sum int) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for _, r := range replicas {
		answer, err := client.Get("http://" + r.metrics + "/metrics")
		if err != nil {
			return 0 // It does not listen yet.
		}
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() {
			for _, name := range names {
				if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
					var n float64
					_, _ = fmt.Sscan(value, &n)
					sum += int(n)
				}
			}
		}
		_ = answer.Body.Close()
	}
	return sum
}
