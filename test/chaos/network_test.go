// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow && linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
)

// partition runs senders → agent → gateway → sink, agent and gateway in network namespaces of their own, and cuts each link in turn, and both. Requests whose answers
// are cut off are sent again: duplicates are counted.
func partition(c *chaos) {
	n := newNetwork(c)
	backend := c.newSink(func(int64) answer { return answer{delay: 300 * time.Millisecond} }) // Something is always under way.
	backend.address = n.sink + ":4317"
	backend.serveGRPC(nil)
	gateway := n.collector(c, 1, n.gateway, backend.address)
	agent := n.collector(c, 0, n.agent, n.gateway+":4317")
	gateway.Start()
	agent.Start()
	l := c.start(agent, steady...)
	for round := range forms(6, 60) {
		taken := backend.requests.Load()
		c.eventually(func() bool { return backend.requests.Load() > taken }, func() string { return fmt.Sprintf("nothing arrives in round %d", round) })
		cut := [][][]string{{n.toGateway}, {n.toSink}, {n.toGateway, n.toSink}}[round%3]
		for _, link := range cut {
			n.ip(c, append(slices.Clone(link), "down")...)
		}
		c.pass(forms(1500*time.Millisecond, 20*time.Second), fmt.Sprintf("round %d, cut", round))
		for _, link := range cut {
			n.ip(c, append(slices.Clone(link), "up")...)
		}
	}
	c.stop(l)
	c.delivered()
	require.NotZero(c, c.book.balance(0).duplicates, "nothing was under way, so nothing was sent again")
	agent.Stop()
	gateway.Stop()
}

// network is an agent's namespace, a gateway's, and a link from this one to each and between them.
type network struct {
	names     [2]string // of the namespaces
	sink      string    // address in this namespace, for the gateway's backend
	agent     string    // address of the agent, from here
	gateway   string    // address of the gateway, from the agent
	toGateway []string  // arguments of ip link set, for the link from the agent to the gateway
	toSink    []string  // and for that from the gateway to this namespace
}

func newNetwork(c *chaos) *network {
	// Addresses for measurements (RFC 2544), of which this machine must know nothing yet.
	net := fmt.Sprintf("198.18.%d.", rand.IntN(256))
	if out, err := exec.Command("ip", "route", "show", "root", net+"0/24").CombinedOutput(); err != nil || len(out) > 0 {
		c.Skipf("there are routes to %s0/24: %v %s", net, err, out)
	}
	tag := fmt.Sprintf("%x", rand.Uint32()&0xffffff)
	n := &network{
		names: [2]string{"chaos-" + tag + "a", "chaos-" + tag + "g"}, sink: net + "5", agent: net + "2", gateway: net + "10",
		toGateway: []string{"-n", "chaos-" + tag + "a", "link", "set", "gateway"}, toSink: []string{"link", "set", "ch" + tag + "g"},
	}
	for _, name := range n.names {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			c.Skipf("network namespaces cannot be made here (it takes root and iproute2): %v %s", err, out)
		}
		c.Cleanup(func() { n.ip(c, "netns", "delete", name) })
		n.ip(c, "-n", name, "link", "set", "lo", "up")
	}
	for i, link := range []string{"ch" + tag + "a", "ch" + tag + "g"} {
		n.ip(c, "link", "add", link, "type", "veth", "peer", "name", "here", "netns", n.names[i])
		n.ip(c, "address", "add", []string{net + "1/30", net + "5/30"}[i], "dev", link)
		n.ip(c, "link", "set", link, "up")
		n.ip(c, "-n", n.names[i], "address", "add", []string{net + "2/30", net + "6/30"}[i], "dev", "here")
		n.ip(c, "-n", n.names[i], "link", "set", "here", "up")
	}
	n.ip(c, "-n", n.names[0], "link", "add", "gateway", "type", "veth", "peer", "name", "agent", "netns", n.names[1])
	for i, link := range []string{"gateway", "agent"} {
		n.ip(c, "-n", n.names[i], "address", "add", []string{net + "9/30", net + "10/30"}[i], "dev", link)
		n.ip(c, "-n", n.names[i], "link", "set", link, "up")
	}
	n.ip(c, "route", "add", n.gateway, "via", net+"6") // To see that it listens.
	return n
}

func (n *network) ip(c *chaos, args ...string) {
	c.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(c, err, "ip %v: %s", args, out)
}

// tier is a collector of either tier: OTLP in, a queue on disk, OTLP over gRPC out, of the parts that the embedded configs are made of.
const tier = `
receivers:
  otlp: ${lenscol:parts/otlp}
processors:
  memory_limiter: ${lenscol:parts/memory_limiter}
exporters:
  otlp_grpc:
    endpoint: set by the test
    compression: zstd
    tls: {insecure: true}
    sending_queue: ${lenscol:parts/disk_queue}
    retry_on_failure: ${lenscol:parts/retry}
extensions:
  lens_health: ${lenscol:parts/health}
  file_storage: ${lenscol:parts/queue_storage}
service:
  extensions: [lens_health, file_storage]
  pipelines:
    traces:
      receivers: [otlp]
      processors: [memory_limiter]
      exporters: [otlp_grpc]
  telemetry: ${lenscol:parts/telemetry}
`

// collector prepares one in a namespace.
func (n *network) collector(c *chaos, namespace int, address, endpoint string) *testbed.Collector {
	c.Helper()
	// ip netns exec becomes the collector: it is the same process.
	wrapper := filepath.Join(c.TempDir(), "lenscol")
	require.NoError(c, os.WriteFile(wrapper, fmt.Appendf(nil, "#!/bin/sh\nexec ip netns exec %s %s \"$@\"\n", n.names[namespace], testbed.Binary(c)), 0o700))
	overGRPC, overHTTP := address+":4317", address+":4318"
	collector := c.collector(testbed.Options{
		Binary: wrapper, Config: quick(inlineParts(c, tier)), Listens: []string{overGRPC, overHTTP},
		Env: []string{"LENSCOL_HOST=" + address, "LENSCOL_GRPC_PORT=4317", "LENSCOL_HTTP_PORT=4318"},
	}, "exporters.otlp_grpc.endpoint="+endpoint, "exporters.otlp_grpc.timeout=1s")
	collector.GRPC, collector.HTTP = overGRPC, overHTTP
	return collector
}
