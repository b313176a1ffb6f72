// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package ranks // import "github.com/lenscol/lenscol/internal/ranks"

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/sdk/rank"
)

// Signal is traces, metrics or logs.
type Signal uint8

const (
	Traces Signal = iota
	Metrics
	Logs
	Signals // how many there are
)

// Reason is why items were kept or dropped. Its text is the value of the attribute `reason`.
type Reason uint8

const (
	ByRank      Reason = iota // the strategy says so
	NoRank                    // the resource has no rank
	NoWorldSize               // the strategy needs the world size, which is not known
	NoLocalRank               // the strategy needs the local rank, which is not known
	NoFit                     // the strategy has all it needs, and the rank does not fit it (sizes of per_group)
	ByError                   // kept: error status or severity
	ByName                    // kept: a span of keep_names
	BySpanGroup               // dropped: a span of a group that span_groups leaves out
	reasons
)

var reasonText = [reasons]string{"rank", "no_rank", "no_world_size", "no_local_rank", "no_fit", "error", "name", "span_group"}

// Decision is what becomes of a resource.
type Decision struct {
	Keep      bool
	Disagrees bool // its two rank attributes name different ranks
	Reason    Reason
	rule      uint16 // index into the rules
	log       bool   // to be logged, with
	service   string // the service.name
}

// Decider decides about resources and, where asked to, about single spans and log records of dropped ones. It is safe
// for concurrent use.
type Decider struct {
	rules
	missing      MissingPolicy
	worldSize    int
	ranksPerNode int
	keepErrors   bool
	keepNames    []string
}

// rules are all strategies of a config.
type rules struct {
	all       []rule
	bySignal  [Signals]uint16
	overrides []override
	byRun     bool // an override names a run
	byService bool // an override names a service
}

type rule struct {
	name     string
	strategy rank.Strategy
}

type override struct {
	run, service string
	rule         uint16
}

// NewDecider makes the decider of a config.
func NewDecider(c *Config) (*Decider, error) {
	r, err := newRules(c)
	if err != nil {
		return nil, err
	}
	return &Decider{
		rules:        r,
		missing:      c.Missing,
		worldSize:    c.WorldSize,
		ranksPerNode: c.RanksPerNode,
		keepErrors:   c.KeepErrors,
		keepNames:    c.KeepNames,
	}, nil
}

func newRules(c *Config) (rules, error) {
	var r rules
	var errs []error
	add := func(path string, rc RuleConfig) uint16 {
		made, err := c.newRule(path, rc)
		errs = append(errs, err)
		r.all = append(r.all, made)
		return uint16(len(r.all) - 1)
	}
	base := add("", c.Rule)
	for signal, optional := range [Signals]struct {
		path string
		rule *configoptional.Optional[RuleConfig]
	}{{"traces::", &c.Traces}, {"metrics::", &c.Metrics}, {"logs::", &c.Logs}} {
		r.bySignal[signal] = base
		if optional.rule.HasValue() {
			r.bySignal[signal] = add(optional.path, *optional.rule.Get())
		}
	}
	for i, o := range c.Overrides {
		r.overrides = append(r.overrides, override{run: o.Run, service: o.Service, rule: add(fmt.Sprintf("overrides::%d::", i), o.Rule)})
		r.byRun = r.byRun || o.Run != ""
		r.byService = r.byService || o.Service != ""
	}
	return r, errors.Join(errs...)
}

// find is the index of the rule for a resource.
func (r *rules) find(signal Signal, attrs pcommon.Map) uint16 {
	if len(r.overrides) == 0 {
		return r.bySignal[signal]
	}
	var run, service string
	if r.byRun {
		run = identity.Run(attrs)
	}
	if r.byService {
		service = identity.Service(attrs)
	}
	for _, o := range r.overrides {
		if (o.run == "" || Matches(o.run, run)) && (o.service == "" || Matches(o.service, service)) {
			return o.rule
		}
	}
	return r.bySignal[signal]
}

// Decide is the one decision about a resource with these attributes.
func (d *Decider) Decide(signal Signal, attrs pcommon.Map) Decision {
	id := identity.Of(attrs)
	out := Decision{rule: d.find(signal, attrs), Disagrees: id.Disagrees}
	if !id.HasRank {
		return d.undecided(out, NoRank, attrs)
	}
	if id.WorldSize <= id.Rank && d.worldSize > 0 {
		id.WorldSize = d.worldSize
	}
	if id.LocalRank < 0 && d.ranksPerNode > 0 {
		id.LocalRank = id.Rank % d.ranksPerNode
	}
	strategy := d.all[out.rule].strategy
	switch {
	case strategy.Decides(id.Identity):
		out.Keep = strategy.Exports(id.Identity)
		return out
	case id.LocalRank < 0 && strategy.Decides(rank.Identity{Rank: id.Rank, WorldSize: id.WorldSize}):
		return d.undecided(out, NoLocalRank, attrs) // with one, it could
	case id.WorldSize <= id.Rank:
		return d.undecided(out, NoWorldSize, attrs)
	default:
		return d.undecided(out, NoFit, attrs)
	}
}

// undecided applies `missing`. What has no rank and is kept, as a server beside the training is, is nothing to log.
func (d *Decider) undecided(out Decision, reason Reason, attrs pcommon.Map) Decision {
	out.Reason = reason
	out.Keep = d.missing == MissingKeep
	if reason != NoRank || !out.Keep {
		out.log, out.service = true, identity.Service(attrs)
	}
	return out
}

// Strategy is the name of the strategy that a decision was made with.
func (d *Decider) Strategy(of Decision) string { return d.all[of.rule].name }

// PicksSpans reports whether single spans may pass from a dropped resource.
func (d *Decider) PicksSpans() bool { return d.keepErrors || len(d.keepNames) > 0 }

// PicksRecords reports whether single log records may pass from a dropped resource.
func (d *Decider) PicksRecords() bool { return d.keepErrors }

// PicksSpan reports whether a span passes from any rank, and why. A name that matches counts before the status.
func PicksSpan[T text](d *Decider, name T, status ptrace.StatusCode) (Reason, bool) {
	for _, glob := range d.keepNames {
		if Matches(glob, name) {
			return ByName, true
		}
	}
	return ByError, d.keepErrors && status == ptrace.StatusCodeError
}

// PicksRecord reports whether a log record passes from any rank: at error and above.
func (d *Decider) PicksRecord(severity plog.SeverityNumber) bool {
	return d.keepErrors && severity >= plog.SeverityNumberError
}
