// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package kafka

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lenscol/lenscol/internal/testbed"
)

// broker is a Kafka of one node, its own controller, on loopback.
type broker struct {
	t       *testing.T
	jars    string
	dir     string
	address string
	cmd     *exec.Cmd
}

// newBroker formats the broker's storage; it is not started yet.
func newBroker(t *testing.T) *broker {
	jars := os.Getenv("LENSCOL_KAFKA_JARS")
	if jars == "" {
		t.Skip("needs LENSCOL_KAFKA_JARS, as kafka.sh prints it")
	}
	b := &broker{t: t, jars: jars, dir: t.TempDir(), address: "127.0.0.1:" + testbed.FreePort(t)}
	controller := "127.0.0.1:" + testbed.FreePort(t)
	require.NoError(t, os.WriteFile(b.path("server.properties"), []byte(strings.Join([]string{
		"process.roles=broker,controller",
		"node.id=1",
		"controller.quorum.voters=1@" + controller,
		"controller.listener.names=CONTROLLER",
		"listeners=PLAINTEXT://" + b.address + ",CONTROLLER://" + controller,
		"advertised.listeners=PLAINTEXT://" + b.address,
		"log.dirs=" + b.path("data"),
		"offsets.topic.replication.factor=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		"offsets.topic.num.partitions=1",
		"group.initial.rebalance.delay.ms=0",
		"auto.create.topics.enable=false",
	}, "\n")), 0o600))
	var id [16]byte
	_, _ = rand.Read(id[:]) // It never fails.
	out, err := b.java("kafka.tools.StorageTool", "format", "-t", base64.RawURLEncoding.EncodeToString(id[:]), "-c", b.path("server.properties")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		if b.cmd != nil {
			b.kill()
		}
		if t.Failed() {
			log, _ := os.ReadFile(b.path("kafka.log"))
			t.Logf("the broker's log:\n…%s", log[max(0, len(log)-8<<10):])
		}
	})
	return b
}

func (b *broker) path(name string) string { return filepath.Join(b.dir, name) }

func (b *broker) java(args ...string) *exec.Cmd {
	return exec.Command("java", append([]string{"-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", b.jars + "/*"}, args...)...)
}

// start starts the broker, again after it was killed, and waits until it answers.
func (b *broker) start() {
	b.t.Helper()
	log, err := os.OpenFile(b.path("kafka.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(b.t, err)
	defer log.Close()
	b.cmd = b.java("kafka.Kafka", b.path("server.properties"))
	b.cmd.Stdout, b.cmd.Stderr = log, log
	b.cmd.SysProcAttr = testbed.DieWithParent()
	require.NoError(b.t, b.cmd.Start())
	client := b.client()
	defer client.Close()
	eventually(b.t, func() bool { return client.Ping(b.t.Context()) == nil }, "an answer of the broker")
}

// kill ends the broker by SIGKILL, which it cannot notice.
func (b *broker) kill() {
	b.t.Helper()
	require.NoError(b.t, b.cmd.Process.Kill())
	_ = b.cmd.Wait() // It says that it was killed.
	b.cmd = nil
}

func (b *broker) client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.address))...)
	require.NoError(b.t, err)
	return client
}

// createTopics makes the topics as docs/kafka.md has them made.
func (b *broker) createTopics(partitions int32, topics ...string) {
	b.t.Helper()
	client := b.client()
	defer client.Close()
	limit := "9437184"
	answers, err := kadm.NewClient(client).CreateTopics(b.t.Context(), partitions, 1, map[string]*string{"max.message.bytes": &limit}, topics...)
	require.NoError(b.t, err)
	require.NoError(b.t, answers.Error())
}

// messages are all that a topic holds, each partition in its order.
func (b *broker) messages(topic string) (messages []*kgo.Record) {
	b.t.Helper()
	client := b.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxPartitionBytes(16<<20))
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(b.t.Context(), topic)
	require.NoError(b.t, err)
	require.NoError(b.t, ends.Error())
	var total int64
	ends.Each(func(end kadm.ListedOffset) { total += end.Offset })
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	for int64(len(messages)) < total {
		fetches := client.PollFetches(ctx)
		require.NoError(b.t, fetches.Err(), "%d of %d messages of %s", len(messages), total, topic)
		messages = append(messages, fetches.Records()...)
	}
	return messages
}
