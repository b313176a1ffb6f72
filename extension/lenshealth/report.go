// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"strings"
	"time"
)

// Schema is the version of what /health and /api/pipelines answer. Keys may come; none changes its meaning or goes
// without another number here. docs/health.schema.json and docs/pipelines.schema.json specify them.
const Schema = 1

// Report is what /health says. Times are UTC.
type Report struct {
	Schema     int               `json:"schema"`
	Status     Status            `json:"status"` // the worst of all below, or starting, stopping
	Since      time.Time         `json:"since"`
	Ready      bool              `json:"ready"` // all pipelines have started, and none drains
	Time       time.Time         `json:"time"`  // now
	Started    time.Time         `json:"started"`
	Version    string            `json:"version"`
	Window     float64           `json:"window_seconds"` // how long a failure counts
	Source     string            `json:"source"`         // where the numbers are from: inside, scrape, none
	Pipelines  []PipelineHealth  `json:"pipelines"`
	Extensions []ComponentHealth `json:"extensions"`
}

// PipelineHealth is how a pipeline does: as its worst component.
type PipelineHealth struct {
	ID         string            `json:"id"`
	Status     Status            `json:"status"`
	Since      time.Time         `json:"since"`
	Components []ComponentHealth `json:"components"` // receivers, processors, exporters, in the config's order
}

// ComponentHealth is how a component does in a pipeline.
type ComponentHealth struct {
	Kind        string     `json:"kind"` // receiver, processor, exporter, connector, extension
	ID          string     `json:"id"`
	Status      Status     `json:"status"`
	Since       time.Time  `json:"since"`
	Reasons     []Reason   `json:"reasons"`      // why it is not healthy
	LastSuccess *time.Time `json:"last_success"` // when items last went through; null when none did, or nobody counts them
	Queue       *Queue     `json:"queue"`        // null without one
}

// Reason is why something is not healthy.
type Reason struct {
	Code string `json:"code"` // for programs: sends_fail, data_lost, …, as docs/health.md lists them
	Text string `json:"text"` // for people
}

// Queue is how full an exporter's queue is, in the unit of its sizer: requests, items or bytes.
type Queue struct {
	Size     int64 `json:"size"`
	Capacity int64 `json:"capacity"`
}

// report makes the report of now. h.mu is held.
func (h *health) report(now time.Time) Report {
	phase := h.phase.Load().(Status)
	r := Report{
		Schema: Schema, Status: phase, Ready: phase == Healthy,
		Time: now.UTC(), Started: h.started.UTC(), Version: h.version, Window: h.cfg.Window.Seconds(), Source: h.source,
		Pipelines: []PipelineHealth{}, Extensions: []ComponentHealth{},
	}
	status := Healthy
	if h.lookErr != nil {
		status = Unknown
	}
	for _, p := range h.topology.pipelines {
		health := h.pipelineHealth(p, now)
		status = worse(status, health.Status)
		r.Pipelines = append(r.Pipelines, health)
	}
	for _, id := range h.topology.extensions {
		health := h.componentHealth(member{kindExtension, id}, "", "", now)
		status = worse(status, health.Status)
		r.Extensions = append(r.Extensions, health)
	}
	if r.Ready {
		r.Status = status
	}
	r.Since = h.history.since("", r.Status, now)
	return r
}

func (h *health) pipelineHealth(p pipelineMembers, now time.Time) PipelineHealth {
	health := PipelineHealth{ID: p.id, Status: Healthy}
	for _, m := range p.all() {
		c := h.componentHealth(m, p.id, p.signal, now)
		health.Status = worse(health.Status, c.Status)
		health.Components = append(health.Components, c)
	}
	health.Since = h.history.since(p.id, health.Status, now)
	return health
}

// componentHealth puts together what the component reports of itself and what its numbers say.
func (h *health) componentHealth(m member, pipeline, signal string, now time.Time) ComponentHealth {
	c := ComponentHealth{Kind: m.kind, ID: m.id, Reasons: []Reason{}}
	status, reasons := h.instances.status(m.kind, m.id, pipeline)
	c.Status, c.Reasons = status, append(c.Reasons, reasons...)
	if m.kind == kindExporter && c.Status == Unhealthy && h.fullDisks > 0 && strings.HasPrefix(m.id+"/", "jsonl/") {
		c.Reasons = append(c.Reasons, Reason{"disk_full", "the disk has no room for its files"})
	}
	if m.kind == kindReceiver || m.kind == kindExporter {
		if h.lookErr != nil {
			c.Status = worse(c.Status, Unknown)
			c.Reasons = append(c.Reasons, Reason{"not_readable", "the collector's own metrics cannot be read; the log says why"})
		}
		if s := h.streams[flow{m.kind, m.id, signal}]; s != nil {
			status, reasons := s.judge(now, h.limits(m.id))
			c.Status, c.Reasons = worse(c.Status, status), append(c.Reasons, reasons...)
			if !s.lastSuccess.IsZero() {
				at := s.lastSuccess.UTC()
				c.LastSuccess = &at
			}
			if s.now.hasQueue {
				c.Queue = &Queue{s.now.queue, s.now.capacity}
			}
		}
	}
	c.Since = h.history.since(strings.Join([]string{m.kind, m.id, pipeline}, " "), c.Status, now)
	return c
}

// Where a failed attempt cannot be seen, a request in flight for this long is taken for one.
func (h *health) limits(exporterID string) limits {
	l := limits{window: h.cfg.Window, stall: h.cfg.Window}
	if h.source == fromInside {
		timeout, ok := h.topology.timeouts[exporterID]
		if ok && timeout == 0 {
			timeout = time.Minute // It has none, and something has to be.
		}
		l.stall = max(l.stall, timeout+5*time.Second)
	}
	return l
}
