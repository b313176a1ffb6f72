// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// process is one process of the trace: a rank of a run and a service, over all its attempts, or what has no rank.
type process struct {
	key   processKey
	name  string
	label string // what its clocks are corrected by
	pid   int32  // by the order of names, from 1: Perfetto keeps 0 for itself
	nodes []string

	lanes   []*lane
	free    freeLanes
	pending pending
	open    map[pcommon.SpanID]*openSpan
	now     int64 // up to which pending was drawn
	logs    *track
}

type processKey struct {
	run, service, role string
	rank               int    // -1: none
	instance           string // of what has no rank: its node and service.instance.id
}

// source is one life of a process on a node. Its clock is one clock.
type source struct {
	process     *process
	node        string
	offset      int64 // of the node's clock, to be taken off
	first, last int64 // times of its records, as they came
}

func (s *source) saw(at, end int64) {
	if s.first == 0 || at < s.first {
		s.first = at
	}
	s.last = max(s.last, at, end)
}

type sourceKey struct {
	process processKey
	node    string
	pid     int64
}

// sources tells whose a record is, by numbers that stand for it in the sorter.
type sources struct {
	all       []*source
	byKey     map[sourceKey]int
	byProcess map[processKey]*process
	processes []*process // sorted by settle
	scopes    []string   // names
	byName    map[string]int
	seen      map[*jsonlreader.Scope]known // what of gave for the reader's scopes
}

type known struct{ source, scope int }

const (
	maxSeen    = 1 << 13
	maxSources = 1 << 16 // what comes then is drawn as one process more
	maxScopes  = 1 << 12 // what comes then has no name
	maxNodes   = 1 << 14 // that are told apart
)

var others = processKey{service: "others", rank: -1}

func newSources() sources {
	return sources{byKey: map[sourceKey]int{}, byProcess: map[processKey]*process{}, scopes: []string{""}, byName: map[string]int{"": 0}, seen: map[*jsonlreader.Scope]known{}}
}

// of gives the numbers of the source of a record below scope, and of the scope's name.
func (s *sources) of(scope *jsonlreader.Scope) (source, name int) {
	if k, ok := s.seen[scope]; ok {
		return k.source, k.scope
	}
	attrs := scope.Resource.Attributes()
	key := sourceKey{process: keyOf(attrs), node: node(attrs)}
	if pid, ok := attrs.Get(semconv.ProcessPID); ok {
		key.pid = pid.Int()
	}
	name, ok := s.byName[scope.Name()]
	if !ok && len(s.scopes) < maxScopes {
		name = len(s.scopes)
		s.byName[scope.Name()] = name
		s.scopes = append(s.scopes, scope.Name())
	}
	if len(s.seen) >= maxSeen {
		clear(s.seen)
	}
	k := known{s.index(key), name}
	s.seen[scope] = k
	return k.source, k.scope
}

func (s *sources) index(key sourceKey) int {
	if i, ok := s.byKey[key]; ok {
		return i
	}
	if len(s.all) >= maxSources {
		if key = (sourceKey{process: others}); len(s.all) > maxSources {
			return maxSources
		}
	}
	p, ok := s.byProcess[key.process]
	if !ok {
		p = &process{key: key.process, open: map[pcommon.SpanID]*openSpan{}}
		s.byProcess[key.process] = p
		s.processes = append(s.processes, p)
	}
	if key.node != "" && !slices.Contains(p.nodes, key.node) && len(p.nodes) < maxNodes {
		p.nodes = append(p.nodes, key.node)
	}
	s.all = append(s.all, &source{process: p, node: key.node})
	s.byKey[key] = len(s.all) - 1
	return len(s.all) - 1
}

func keyOf(attrs pcommon.Map) processKey {
	key := processKey{run: identity.Run(attrs), service: identity.Service(attrs), role: text(attrs, semconv.DLRole), rank: -1}
	if rank, ok := identity.Rank(attrs); ok {
		key.rank = rank
		return key
	}
	key.instance = strings.Trim(node(attrs)+" "+text(attrs, semconv.ServiceInstanceID), " ")
	return key
}

func node(attrs pcommon.Map) string {
	return cmp.Or(text(attrs, semconv.HostName), text(attrs, semconv.K8sNodeName))
}

func text(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok {
		return v.AsString()
	}
	return ""
}

// nodes are the nodes of all sources, that of the lowest rank first.
func (s *sources) nodes() []string {
	ordered := slices.Clone(s.all)
	slices.SortStableFunc(ordered, func(a, b *source) int { return compareProcesses(a.process, b.process) })
	var names []string
	seen := map[string]bool{"": true}
	for _, src := range ordered {
		if !seen[src.node] && len(names) < maxNodes {
			seen[src.node] = true
			names = append(names, src.node)
		}
	}
	return names
}

// first is when the earliest record was, by corrected clocks, but not before 1.
func (s *sources) first() int64 {
	at := int64(0)
	for _, src := range s.all {
		if begin := src.first - src.offset; at == 0 || begin < at {
			at = begin
		}
	}
	return max(at, 1)
}

// settle names and orders the processes, all of which are known now, and corrects their clocks.
func (s *sources) settle(c Clocks) {
	s.seen, s.byName, s.byKey, s.byProcess = nil, nil, nil, nil
	offsets, labels := map[string]int64{}, map[string]string{}
	for _, n := range c.Nodes {
		labels[n.Node] = label(n)
		if c.Applied {
			offsets[n.Node] = n.Offset.Nanoseconds()
		}
	}
	runs, widest := map[string]bool{}, 0
	for _, p := range s.processes {
		runs[p.key.run] = true
		widest = max(widest, p.key.rank)
	}
	for _, src := range s.all {
		src.offset = offsets[src.node]
	}
	slices.SortStableFunc(s.processes, compareProcesses)
	for i, p := range s.processes {
		p.pid = int32(i + 1)
		p.name = p.title(max(4, len(fmt.Sprint(widest))), len(runs) > 1)
		if len(p.nodes) == 1 {
			p.label = labels[p.nodes[0]]
		}
	}
}

func compareProcesses(a, b *process) int {
	if (a.key.rank < 0) != (b.key.rank < 0) {
		return cmp.Compare(b.key.rank, a.key.rank) // Ranks first.
	}
	return cmp.Or(cmp.Compare(a.key.run, b.key.run), cmp.Compare(a.key.rank, b.key.rank), cmp.Compare(a.key.service, b.key.service),
		cmp.Compare(a.key.role, b.key.role), cmp.Compare(a.key.instance, b.key.instance))
}

// title is a process's name: rank 0017 | node003 | megatron, with what else tells it from others.
func (p *process) title(width int, withRun bool) string {
	var parts []string
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if p.key.rank >= 0 {
		add(fmt.Sprintf("rank %0*d", width, p.key.rank))
		switch n := len(p.nodes); {
		case n > 2:
			add(fmt.Sprintf("%s and %d more", p.nodes[0], n-1))
		case n > 0:
			add(strings.Join(p.nodes, ", "))
		}
		add(p.key.service)
	} else {
		add(cmp.Or(p.key.service, "no service"))
		add(p.key.instance)
	}
	add(p.key.role)
	if withRun {
		add(p.key.run)
	}
	return strings.Join(parts, " | ")
}
