// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package kafka holds lenscol:kafka-agent and lenscol:kafka-gateway against a real Kafka broker, which kafka.sh gets.
package kafka

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/lenscol/lenscol/internal/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const partitions = 4

// Ranks send to an agent, and a gateway archives what the agent wrote to Kafka. Under load the broker is killed and started again, then the
// gateway. All that a rank was told is taken is in the archive, and what is there twice was sent or read twice.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.start()
	b.createTopics(partitions, "lens-traces", "lens-metrics", "lens-logs")
	agent := startAgent(t, b)
	archive := t.TempDir()
	gateway := startGateway(t, b, archive)

	const atFirst = 30 // steps that the archive has of each rank before anything is killed
	l := startLoad(t, agent)
	l.proceeds(atFirst)
	eventually(t, func() bool { return len(archived(t, archive, "traces")) >= ranks*atFirst*items }, "spans in the archive")
	b.kill()
	l.stalls()
	b.start()
	l.proceeds(30)
	gateway.Kill()
	l.proceeds(30)
	gateway.Start()
	l.proceeds(30)
	l.end()
	agent.Stop()

	for _, signal := range signals {
		inTopic := map[item]int{}
		for _, message := range b.messages("lens-" + signal) {
			for _, n := range inMessage(t, signal, message.Value) {
				inTopic[n]++
			}
		}
		require.Empty(t, missing(l.acknowledged[signal], inTopic), "%s that were acknowledged and are not in Kafka", signal)
		inArchive := map[item]int{}
		eventually(t, func() bool {
			inArchive = archived(t, archive, signal)
			return len(missing(inTopic, inArchive)) == 0
		}, "all %s in the archive", signal)
		for n, times := range inArchive {
			require.GreaterOrEqual(t, times, inTopic[n], "%s: each message is archived", n)
			require.NotZero(t, inTopic[n], "%s in the archive that nobody sent: %v", signal, n)
		}
		t.Logf("%s: %d acknowledged; in Kafka %d and %d repeats of senders; in the archive %d and %d repeats", signal,
			len(l.acknowledged[signal]), len(inTopic), total(inTopic)-len(inTopic), len(inArchive), total(inArchive)-len(inArchive))
	}
	_, refused := l.counts()
	t.Logf("attempts of ranks that were not acknowledged: %v", refused)
	requirePartitioned(t, b)
	gateway.Stop()
}

// requirePartitioned demands what the config says of partitions: spans go to all of them; metrics and logs of a rank to one, in their order.
func requirePartitioned(t *testing.T, b *broker) {
	t.Helper()
	for _, signal := range signals {
		used := map[int32]bool{}
		partition, last := map[int]int32{}, map[int]int{} // by rank
		seen := map[item]bool{}
		for _, message := range b.messages("lens-" + signal) {
			used[message.Partition] = true
			if signal == "traces" {
				continue
			}
			for _, n := range inMessage(t, signal, message.Value) {
				if first, ok := partition[n.rank]; ok {
					require.Equal(t, first, message.Partition, "%s of rank %d", signal, n.rank)
				}
				partition[n.rank] = message.Partition
				if !seen[n] { // A repeat may come late.
					require.Equal(t, last[n.rank]+1, n.number, "%s of rank %d are in their order", signal, n.rank)
					seen[n], last[n.rank] = true, n.number
				}
			}
		}
		if signal == "traces" {
			require.Len(t, used, partitions)
		} else {
			require.Len(t, partition, ranks)
		}
	}
}

// The largest request that an agent takes passes through topics that are made as docs/kafka.md says.
func TestLargestRequest(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	b.start()
	b.createTopics(1, "lens-traces", "lens-metrics", "lens-logs")
	agent := startAgent(t, b)
	archive := t.TempDir()
	gateway := startGateway(t, b, archive)

	noise := make([]byte, 8<<20-2<<10)
	_, _ = rand.Read(noise) // It never fails.
	m := request("traces", []item{{0, 1}}).(*coltracepb.ExportTraceServiceRequest)
	m.ResourceSpans[0].ScopeSpans[0].Spans[0].Attributes = []*commonpb.KeyValue{{Key: "noise", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: noise}}}}
	body, err := proto.Marshal(m)
	require.NoError(t, err)
	client := agent.Client()
	defer client.Close()
	require.NoError(t, client.HTTP(t.Context(), "traces", testbed.Protobuf, body, false))
	eventually(t, func() bool { return archived(t, archive, "traces")[item{0, 1}] > 0 }, "the span in the archive")
	agent.Stop()
	gateway.Stop()
}

// A gateway whose disk is full reads nothing for good, through a kill too, and goes on by itself when there is space. A message that is no OTLP
// does not stop it.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := testbed.Tmpfs(t, "64m")
	filler := filepath.Join(disk, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, 48<<20), 0o600))
	b := newBroker(t)
	b.start()
	b.createTopics(1, "lens-traces", "lens-metrics", "lens-logs")
	producer := b.client()
	defer producer.Close()
	require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Topic: "lens-traces", Value: []byte("no OTLP")}).FirstErr())
	agent := startAgent(t, b)
	client := agent.Client()
	defer client.Close()
	for _, signal := range signals {
		body, err := proto.Marshal(request(signal, []item{{0, 1}}))
		require.NoError(t, err)
		require.NoError(t, client.GRPC(t.Context(), signal, body, false))
	}

	// Without the exporter's own patience, so that the receiver meets refusals, as of memory_limiter.
	gateway := startGateway(t, b, disk, "--set", "exporters.jsonl.min_free_bytes=32MiB", "--set", "exporters.jsonl.retry_on_failure.enabled=false")
	refused := func(n int) {
		t.Helper()
		eventually(t, func() bool { return strings.Count(gateway.Stderr(), "Backing off") >= n }, "%d refusals of the archive", n)
	}
	refused(len(signals))
	before := strings.Count(gateway.Stderr(), "Backing off")
	gateway.Kill()
	gateway.Start()
	refused(before + len(signals))
	for _, signal := range signals {
		require.Empty(t, archived(t, disk, signal))
	}
	require.NoError(t, os.Remove(filler))
	for _, signal := range signals {
		eventually(t, func() bool { return archived(t, disk, signal)[item{0, 1}] == 1 }, "%s in the archive", signal)
	}
	agent.Stop()
	gateway.Stop()
}

func startAgent(t *testing.T, b *broker) *testbed.Collector {
	t.Helper()
	return testbed.Start(t, testbed.Options{
		Args: []string{"--config", "lenscol:kafka-agent"},
		Env:  []string{"LENSCOL_KAFKA_BROKERS=" + b.address, "LENSCOL_HEALTH_PORT=" + testbed.FreePort(t)},
	})
}

// startGateway starts one whose archive is in folder.
func startGateway(t *testing.T, b *broker, folder string, args ...string) *testbed.Collector {
	t.Helper()
	health := testbed.FreePort(t)
	return testbed.Start(t, testbed.Options{
		Args:    append([]string{"--config", "lenscol:kafka-gateway"}, args...),
		Env:     []string{"LENSCOL_KAFKA_BROKERS=" + b.address, "LENSCOL_DATA_DIR=" + folder, "LENSCOL_HEALTH_PORT=" + health},
		Listens: []string{"127.0.0.1:" + health},
	})
}

// archived says how often each item is in an archive.
func archived(t *testing.T, folder, signal string) map[item]int {
	t.Helper()
	counts := map[item]int{}
	file, err := os.ReadFile(filepath.Join(folder, signal+".jsonl"))
	if os.IsNotExist(err) {
		return counts
	}
	require.NoError(t, err)
	for line := range bytes.Lines(file) {
		var got struct {
			Type   string
			SpanID string `json:"span_id"`
			Rank   int
			Value  int
			Body   string
		}
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // The last one is being written.
		}
		require.NoError(t, json.Unmarshal(line, &got), "%s", line)
		n := item{got.Rank, got.Value}
		switch got.Type {
		case "span":
			n.number = fromSpanID(t, got.SpanID).number
			require.Equal(t, n, fromSpanID(t, got.SpanID), "its rank")
		case "log":
			n.number, err = strconv.Atoi(got.Body)
			require.NoError(t, err)
		case "metric":
		default:
			continue
		}
		counts[n]++
	}
	return counts
}

// missing are up to ten items of want that got does not have.
func missing[V, W any](want map[item]V, got map[item]W) (missing []item) {
	for n := range want {
		if _, ok := got[n]; !ok && len(missing) < 10 {
			missing = append(missing, n)
		}
	}
	return missing
}

func total(counts map[item]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// eventually waits for what other processes do.
func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	require.Eventually(t, condition, 2*time.Minute, 50*time.Millisecond, append([]any{what}, args...)...)
}
