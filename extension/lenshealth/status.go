// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/pipeline"
)

// Status is how a component, a pipeline or the collector does.
type Status string

// All statuses. Of several components the worst one counts, in this order, the best first.
const (
	Healthy   Status = "healthy"
	Degraded  Status = "degraded"  // it works, and something failed, was refused or fills up
	Starting  Status = "starting"  // not all components have started
	Stopping  Status = "stopping"  // draining, or ended
	Unknown   Status = "unknown"   // cannot be told: the metrics cannot be read
	Unhealthy Status = "unhealthy" // data is lost, or nothing gets through
)

var severity = []Status{Healthy, Degraded, Starting, Stopping, Unknown, Unhealthy}

// OK tells whether /health answers 200.
func (s Status) OK() bool { return s == Healthy || s == Degraded }

func worse(a, b Status) Status {
	if slices.Index(severity, b) > slices.Index(severity, a) {
		return b
	}
	return a
}

// instances keeps the last status event of every component. The service reports them under a lock of its own, so nothing
// may wait here.
type instances struct {
	mu sync.Mutex
	of map[componentstatus.InstanceID]*componentstatus.Event
}

func (i *instances) changed(id *componentstatus.InstanceID, event *componentstatus.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if event.Status() == componentstatus.StatusStopped { // Its place in a config may be gone after a reload.
		delete(i.of, *id)
		return
	}
	if i.of == nil {
		i.of = map[componentstatus.InstanceID]*componentstatus.Event{}
	}
	i.of[*id] = event
}

// status is what the component itself reports, in one pipeline, or anywhere where pipeline is empty.
func (i *instances) status(kind, id, in string) (Status, []Reason) {
	i.mu.Lock()
	defer i.mu.Unlock()
	status := Healthy
	var reasons []Reason
	for instance, event := range i.of {
		if strings.ToLower(instance.Kind().String()) != kind || instance.ComponentID().String() != id || !stands(&instance, in) {
			continue
		}
		s, reason := statusOf(event)
		status = worse(status, s)
		if reason.Code != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return status, reasons
}

func stands(instance *componentstatus.InstanceID, in string) bool {
	found := in == ""
	instance.AllPipelineIDs(func(id pipeline.ID) bool {
		found = found || id.String() == in
		return !found
	})
	return found
}

// statusOf never shows the event's error: it may name what stands in the config or what a backend said. The log has it.
func statusOf(event *componentstatus.Event) (Status, Reason) {
	say := func(what string) Reason {
		return Reason{Code: "reports_error", Text: "it reports " + what + " since " + clock(event.Timestamp()) + "; the log says which"}
	}
	switch event.Status() {
	case componentstatus.StatusOK:
		return Healthy, Reason{}
	case componentstatus.StatusStopping, componentstatus.StatusStopped:
		return Stopping, Reason{}
	case componentstatus.StatusRecoverableError:
		return Unhealthy, say("an error that it may recover from")
	case componentstatus.StatusPermanentError:
		return Unhealthy, say("an error that only a restart can mend")
	case componentstatus.StatusFatalError:
		return Unhealthy, say("an error that ends the collector")
	}
	return Starting, Reason{}
}

// history knows since when everything has the status that it has.
type history map[string]turn

type turn struct {
	status Status
	since  time.Time
}

func (h history) since(what string, status Status, now time.Time) time.Time {
	if last, ok := h[what]; !ok || last.status != status {
		h[what] = turn{status, now}
	}
	return h[what].since.UTC()
}
