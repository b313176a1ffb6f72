// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"maps"
	"net/http"
	"slices"
)

// store is what the requests so far left behind.
type store struct {
	projects map[string]*project
	stats    Stats
}

type project struct {
	calls  []Call
	index  map[string]int // of a call, by id
	agents []AgentSpan
}

// Stats are sums over requests.
type Stats struct {
	Requests int
	Refused  int // requests answered other than 200, or not at all
	Spans    int // in the requests that ingest took
	Rejected int // spans rejected in a partial success
	Unrouted int // spans dropped in silence, for want of entity and project
	Merged   int // spans that overwrote a call of another span with their id
	Resent   int // spans that came again as they were: same trace, name and start
	Blanked  int // calls of which columns were blanked
	Useless  int // calls without an id of their own
}

func (s *store) add(in Request) {
	s.stats.Requests++
	if in.Status != http.StatusOK {
		s.stats.Refused++
	}
	v := in.Verdict
	if v.Status == http.StatusOK {
		s.stats.Spans += v.Spans
	}
	s.stats.Rejected += v.Rejected
	s.stats.Unrouted += v.Unrouted
	for _, c := range v.Calls {
		s.call(c)
	}
	for _, a := range v.Agents {
		p := s.project(a.Project)
		p.agents = append(p.agents, a)
	}
}

// call stores a call over the one with its id.
func (s *store) call(c Call) {
	if len(c.Blanked) > 0 {
		s.stats.Blanked++
	}
	if c.Useless {
		s.stats.Useless++
	}
	p := s.project(c.Project)
	i, taken := p.index[c.ID]
	if !taken {
		p.index[c.ID] = len(p.calls)
		p.calls = append(p.calls, c)
		return
	}
	if old := p.calls[i]; old.TraceID == c.TraceID && old.OpName == c.OpName && old.Start.Equal(c.Start) {
		s.stats.Resent++
	} else {
		s.stats.Merged++
	}
	p.calls[i] = c
}

func (s *store) project(name string) *project {
	if s.projects == nil {
		s.projects = map[string]*project{}
	}
	p := s.projects[name]
	if p == nil {
		p = &project{index: map[string]int{}}
		s.projects[name] = p
	}
	return p
}

// Calls are the calls of a project, "entity/project", as its users see them, in the order of their first arrival. One call that
// cannot be read hides all of them.
func (h *Handler) Calls(project string) []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.store.projects[project]
	if p == nil || slices.ContainsFunc(p.calls, func(c Call) bool { return c.Unreadable }) {
		return nil
	}
	return slices.Clone(p.calls)
}

// AgentSpans are the spans that came to the agents endpoint for a project, in the order of their arrival.
func (h *Handler) AgentSpans(project string) []AgentSpan {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.store.projects[project]; p != nil {
		return slices.Clone(p.agents)
	}
	return nil
}

// Projects are the projects that anything was stored in, sorted.
func (h *Handler) Projects() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.store.projects))
}

// Stats are sums over all requests so far.
func (h *Handler) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.store.stats
}
