// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/sdk/semconv"
)

const (
	// maxInstances is how many processes are remembered at least; at most twice as many.
	maxInstances = 8192
	// maxProcess bounds what is remembered of one, in bytes: of texts of senders only their number is no bound.
	maxProcess = 4096
)

// process is what tells two processes apart that send one instance id. A role stands for the process id: a process
// that was started anew keeps its name.
type process struct {
	instance, service, host, role string
	pid                           int64
}

// instances gives each process an instance id that no other has. The first one to come keeps what it sends.
//
// What it remembers is bounded: two generations, of which the older one is forgotten as the newer one is full. A process with longer
// texts than maxProcess keeps what it sends.
type instances struct {
	max      int
	mu       sync.Mutex
	now, old generation
}

type generation struct {
	ids    map[process]string
	owners map[string]process
}

func newGeneration() generation {
	return generation{ids: map[process]string{}, owners: map[string]process{}}
}

func newInstances(maximum int) *instances {
	return &instances{max: maximum, now: newGeneration(), old: newGeneration()}
}

// tellApart sets the instance id of a resource: `{run}-{role or pid}-rank{N}` where another process has the one it sends, which
// stays as service.instance.id.original; `{run}-rank{N}` where a rank sends none.
func (i *instances) tellApart(attrs pcommon.Map, t *tally) {
	sent := text(attrs, semconv.ServiceInstanceID)
	p := process{
		instance: sent, service: identity.Service(attrs), host: text(attrs, semconv.HostName), role: text(attrs, semconv.DLRole),
	}
	if pid, ok := attrs.Get(semconv.ProcessPID); ok && p.role == "" {
		p.pid = number(pid)
	}
	id, known := i.known(p)
	if !known { // also one without an id
		run, end := identity.Run(attrs), ""
		if rank, ok := identity.Rank(attrs); ok {
			end = "-rank" + strconv.Itoa(rank)
		}
		if len(p.instance)+len(p.service)+len(p.host)+len(p.role)+len(run) > maxProcess {
			t.tooLong++
			return
		}
		if sent == "" {
			if run == "" || end == "" {
				return // nobody that could be named
			}
			p.instance = run + end
		}
		var forgotten int
		id, forgotten = i.id(p, run, end)
		t.forgotten += int64(forgotten)
	}
	if id == sent {
		return
	}
	if sent != "" {
		keepOriginal(attrs, semconv.ServiceInstanceIDOriginal, sent)
		removeFurther(attrs, semconv.ServiceInstanceID)
		t.renamed++
	}
	attrs.PutStr(semconv.ServiceInstanceID, id)
}

// known is the instance id of a process that sent before, as almost all did: it needs neither run nor rank.
func (i *instances) known(p process) (id string, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, ok = i.now.ids[p]
	return id, ok
}

// id is the process's own instance id, and how many processes were forgotten for it.
func (i *instances) id(p process, run, end string) (id string, forgotten int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if id, ok := i.now.ids[p]; ok { // one without an id of its own, or another request of the process came first
		return id, 0
	}
	id, known := i.old.ids[p]
	if !known {
		id = i.free(p, run, end)
	}
	if len(i.now.ids) >= i.max {
		forgotten = len(i.old.ids)
		for again := range i.old.ids {
			if _, ok := i.now.ids[again]; ok {
				forgotten--
			}
		}
		i.old, i.now = i.now, newGeneration()
	}
	p = p.clone()
	id = strings.Clone(id)
	i.now.ids[p] = id
	i.now.owners[id] = p
	return id, forgotten
}

// free is the first name for the process that no other has.
func (i *instances) free(p process, run, end string) string {
	if i.isFree(p.instance, p) {
		return p.instance
	}
	if run == "" {
		run = strings.TrimSuffix(p.instance, end)
	}
	who := p.role
	if who == "" {
		who = strconv.FormatInt(p.pid, 10)
	}
	id := run + "-" + who + end
	for _, more := range []string{p.service, p.host} {
		if i.isFree(id, p) {
			return id
		}
		if more != "" {
			run += "-" + more
			id = run + "-" + who + end
		}
	}
	return id
}

func (i *instances) isFree(id string, p process) bool {
	for _, g := range []generation{i.now, i.old} {
		if owner, taken := g.owners[id]; taken && owner != p {
			return false
		}
	}
	return true
}

// clone keeps no batch alive.
func (p process) clone() process {
	return process{
		instance: strings.Clone(p.instance), service: strings.Clone(p.service), host: strings.Clone(p.host), role: strings.Clone(p.role), pid: p.pid,
	}
}

func text(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}

// number is a whole number, or decimal text as one; else 0.
func number(v pcommon.Value) int64 {
	if v.Type() == pcommon.ValueTypeStr {
		n, err := strconv.ParseInt(v.Str(), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return v.Int()
}
