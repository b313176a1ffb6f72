// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A component's kind, as the reports spell it.
const (
	kindReceiver  = "receiver"
	kindProcessor = "processor"
	kindExporter  = "exporter"
	kindConnector = "connector"
	kindExtension = "extension"
)

// flow is one component's part for one signal: what the collector counts by.
type flow struct {
	kind   string // receiver, processor or exporter
	id     string // otlp_http/backend
	signal string // traces, metrics, logs, profiles
}

// numbers are what the collector counts of a flow, in items (spans, points, records) since the service's start.
type numbers struct {
	good     int64 // receiver: accepted; processor: handed on; exporter: sent
	bad      int64 // receiver: refused or failed; exporter: given up
	unqueued int64 // exporter: not taken by its queue
	incoming int64 // processor: taken

	hasQueue        bool
	queue, capacity int64 // in the unit of the queue's sizer
	inFlight        int64 // requests that are being sent, those that wait for a retry included
}

// reading is what the collector's own metrics say at one moment.
type reading struct {
	at        time.Time
	flows     map[flow]*numbers
	decisions map[decision]int64
	fullDisks int64 // files of jsonl exporters that their disk has no room for
}

func newReading(at time.Time) *reading {
	return &reading{at: at, flows: map[flow]*numbers{}, decisions: map[decision]int64{}}
}

// signals are those of metrics, by what their names say that they count; the longer name first of two that end alike.
var signals = []struct{ items, signal string }{
	{"_spans", "traces"},
	{"_metric_points", "metrics"},
	{"_points", "metrics"}, // of our own components
	{"_log_records", "logs"},
	{"_records", "logs"}, // of our own components
	{"_profile_samples", "profiles"},
}

// add takes one series of a metric of the collector, whose names are those of exporterhelper, receiverhelper and
// processorhelper v0.158 (their documentation.md), and of our own components. Series that differ in other labels add up:
// otlp_http adds server.address and more. Other metrics are passed over.
func (r *reading) add(metric string, label func(string) string, value int64) {
	name, ok := strings.CutPrefix(strings.TrimSuffix(metric, "_total"), "otelcol_")
	if !ok {
		return
	}
	kind, name, _ := strings.Cut(name, "_")
	id := label(kind)
	switch {
	case name == "jsonl_disk_full_files":
		r.fullDisks += value
	case kind == kindProcessor && name == "incoming_items":
		r.of(kind, id, label("otel.signal")).incoming += value
	case kind == kindProcessor && name == "outgoing_items":
		r.of(kind, id, label("otel.signal")).good += value
	case kind == kindExporter && name == "queue_size":
		n := r.of(kind, id, label("data_type"))
		n.queue, n.hasQueue = n.queue+value, true
	case kind == kindExporter && name == "queue_capacity":
		r.of(kind, id, label("data_type")).capacity += value
	case kind == kindExporter && name == "in_flight_requests":
		r.of(kind, id, label("data_type")).inFlight += value
	default:
		r.addItems(kind, id, name, label, value)
	}
}

func (r *reading) addItems(kind, id, name string, label func(string) string, value int64) {
	for _, s := range signals {
		what, ok := strings.CutSuffix(name, s.items)
		if !ok {
			continue
		}
		signal := s.signal
		switch {
		case id == "":
			r.addDecision(what, signal, label, value)
		case kind == kindReceiver && what == "accepted", kind == kindExporter && what == "sent":
			r.of(kind, id, signal).good += value
		case kind == kindReceiver && (what == "refused" || what == "failed"), kind == kindExporter && what == "send_failed":
			r.of(kind, id, signal).bad += value
		case kind == kindExporter && what == "enqueue_failed":
			r.of(kind, id, signal).unqueued += value
		}
		return
	}
}

func (r *reading) of(kind, id, signal string) *numbers {
	f := flow{kind, id, signal}
	if r.flows[f] == nil {
		r.flows[f] = &numbers{}
	}
	return r.flows[f]
}

// decision is what our own components count of what they decide: all of a type together, which is how they count.
type decision struct {
	Component string `json:"component"` // its type: rank_filter
	Signal    string `json:"signal"`
	Outcome   string `json:"outcome"`            // kept, dropped, rejected
	Reason    string `json:"reason"`             // why, as the component's page lists it
	Strategy  string `json:"strategy,omitempty"` // of rank_filter and rank_gate
}

// addDecision takes a counter such as otelcol_processor_rank_filter_dropped_spans: what is rank_filter_dropped.
func (r *reading) addDecision(what, signal string, label func(string) string, value int64) {
	i := strings.LastIndexByte(what, '_')
	if i < 0 {
		return
	}
	d := decision{Component: what[:i], Signal: signal, Outcome: what[i+1:], Reason: label("reason"), Strategy: label("strategy")}
	if d.Reason != "" && slices.Contains([]string{"kept", "dropped", "rejected"}, d.Outcome) {
		r.decisions[d] += value
	}
}

func (d decision) compare(other decision) int {
	return cmp.Or(strings.Compare(d.Component, other.Component), strings.Compare(d.Signal, other.Signal),
		strings.Compare(d.Outcome, other.Outcome), strings.Compare(d.Strategy, other.Strategy), strings.Compare(d.Reason, other.Reason))
}
