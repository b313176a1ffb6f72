// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"maps"
	"slices"
	"time"
)

// Pipelines is what /api/pipelines says: receivers → processors → exporters, with what went through.
type Pipelines struct {
	Schema    int             `json:"schema"`
	Time      time.Time       `json:"time"`
	RateSpan  float64         `json:"rate_seconds"` // what rates are averages over, at most
	Source    string          `json:"source"`       // as in Report
	Pipelines []Pipeline      `json:"pipelines"`
	Decisions []DecisionCount `json:"decisions"` // of our own components, a type's all together
}

// Pipeline is one pipeline. Its counts are of items: spans, data points, log records.
type Pipeline struct {
	ID         string          `json:"id"`
	Signal     string          `json:"signal"`
	Status     Status          `json:"status"`
	Receivers  []ReceiverFlow  `json:"receivers"`
	Processors []ProcessorFlow `json:"processors"`
	Exporters  []ExporterFlow  `json:"exporters"`
}

// Stage is what all components of a pipeline have. A receiver or an exporter counts for all pipelines of one signal that
// it stands in.
type Stage struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"` // receiver, processor, exporter, connector
	Status  Status   `json:"status"`
	Reasons []Reason `json:"reasons"`
	// Counted is false where the component has counted nothing yet, or counts nothing at all: then the numbers are 0.
	Counted bool    `json:"counted"`
	Rate    float64 `json:"rate"` // items a second: accepted, handed on, sent
}

// ReceiverFlow is what a receiver has taken.
type ReceiverFlow struct {
	Stage
	Accepted int64 `json:"accepted"`
	Refused  int64 `json:"refused"` // or failed; the sender knows
}

// ProcessorFlow is what went through a processor.
type ProcessorFlow struct {
	Stage
	Incoming int64 `json:"incoming"`
	Outgoing int64 `json:"outgoing"`
}

// ExporterFlow is what an exporter has sent and lost.
type ExporterFlow struct {
	Stage
	Received    int64      `json:"received"` // sent, given up or not queued; what waits or is on its way is not in it yet
	Sent        int64      `json:"sent"`
	Failed      int64      `json:"failed"`  // given up after its retries
	Dropped     Drops      `json:"dropped"` // by reason
	InFlight    int64      `json:"in_flight"`
	Queue       *Queue     `json:"queue"`
	LastSuccess *time.Time `json:"last_success"`
}

// Drops are items that are lost, by reason.
type Drops struct {
	QueueFull  int64 `json:"queue_full"`
	SendFailed int64 `json:"send_failed"`
}

// DecisionCount is how many items a component's decision took.
type DecisionCount struct {
	decision
	Items int64 `json:"items"`
}

// flows makes the answer of now. h.mu is held.
func (h *health) flows(now time.Time) Pipelines {
	p := Pipelines{
		Schema: Schema, Time: now.UTC(), RateSpan: rateSpan.Seconds(), Source: h.source,
		Pipelines: []Pipeline{}, Decisions: []DecisionCount{},
	}
	for _, members := range h.topology.pipelines {
		p.Pipelines = append(p.Pipelines, h.pipelineFlow(members, now))
	}
	for _, d := range slices.SortedFunc(maps.Keys(h.decisions), decision.compare) {
		p.Decisions = append(p.Decisions, DecisionCount{d, h.decisions[d]})
	}
	return p
}

func (h *health) pipelineFlow(p pipelineMembers, now time.Time) Pipeline {
	flow := Pipeline{ID: p.id, Signal: p.signal, Status: Healthy, Receivers: []ReceiverFlow{}, Processors: []ProcessorFlow{}, Exporters: []ExporterFlow{}}
	for _, m := range p.receivers {
		stage, n, _ := h.stage(m, p, now, &flow.Status)
		flow.Receivers = append(flow.Receivers, ReceiverFlow{stage, n.good, n.bad})
	}
	for _, m := range p.processors {
		stage, n, _ := h.stage(m, p, now, &flow.Status)
		flow.Processors = append(flow.Processors, ProcessorFlow{stage, n.incoming, n.good})
	}
	for _, m := range p.exporters {
		stage, n, c := h.stage(m, p, now, &flow.Status)
		flow.Exporters = append(flow.Exporters, ExporterFlow{
			Stage: stage, Received: n.good + n.bad + n.unqueued, Sent: n.good, Failed: n.bad,
			Dropped: Drops{QueueFull: n.unqueued, SendFailed: n.bad}, InFlight: n.inFlight, Queue: c.Queue, LastSuccess: c.LastSuccess,
		})
	}
	return flow
}

func (h *health) stage(m member, p pipelineMembers, now time.Time, worst *Status) (Stage, numbers, ComponentHealth) {
	c := h.componentHealth(m, p.id, p.signal, now)
	*worst = worse(*worst, c.Status)
	stage := Stage{ID: m.id, Kind: m.kind, Status: c.Status, Reasons: c.Reasons}
	s := h.streams[flow{m.kind, m.id, p.signal}]
	if s == nil {
		return stage, numbers{}, c
	}
	stage.Counted, stage.Rate = true, s.rate(func(n numbers) int64 { return n.good })
	return stage, s.now, c
}
