// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/internal/redact"
	"github.com/lenscol/lenscol/internal/sharing"
	"github.com/lenscol/lenscol/sdk/resource"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// generatedRunID is the one run id that this collector makes up, if it has to: a reload makes up no other.
var generatedRunID = sync.OnceValue(resource.NewRunID)

// newStamps finds out what the collector knows, once. What it may know depends on the mode: a sidecar shares its job's
// environment, a node agent has only the machine in common with the senders, a gateway nothing.
func newStamps(cfg *Config, system resource.System) *stamps {
	s := &stamps{shares: sharing.Allowed(), replace: cfg.RunID.Replace}
	for _, key := range specialKeys {
		s.keys.add(key)
	}
	for _, key := range slices.Sorted(maps.Keys(cfg.Attributes)) {
		value := pcommon.NewValueEmpty()
		_ = value.FromRaw(cfg.Attributes[key]) // Validate has seen its type.
		s.add(resource.Attribute{Key: key, Value: value.AsString(), Source: "config"}, value, ofAnyone)
	}
	switch cfg.Mode {
	case modeSidecar:
		s.learnJob(cfg, resource.New(system))
	case modeNode:
		s.learnNode(cfg, system)
	}
	for slot, known := range map[int]bool{
		slotRunID: s.runID.text != "", slotRunUUID: s.runUUID.text != "", slotJobUUID: s.jobUUID.text != "", slotWandb: s.wandb != nil, slotWandb + 1: s.wandb != nil,
	} {
		if known {
			s.stamped.set(slot)
		}
	}
	for _, key := range cfg.Overwrite {
		slot := s.keys.add(key)
		s.overwrite.set(slot)
		if s.stamped.is(slot) {
			s.takesOver.set(slot)
		}
	}
	for _, rule := range cfg.Wandb.Rules {
		s.rules = append(s.rules, wandbTarget{rule.Match, [3]own{
			s.own(slotWandb, rule.Entity), s.own(slotWandb+1, rule.Project), s.own(slotWandb+2, rule.RunID),
		}})
	}
	for slot, key := range s.keys.keys {
		if s.asksFor(slot) {
			s.asked.add(key)
		}
	}
	return s
}

// asksFor reports whether it matters that a resource has the key of a slot.
func (s *stamps) asksFor(slot int) bool {
	switch {
	case s.stamped.is(slot):
		return true
	case slot == slotPod:
		return s.pod != ""
	case slot == slotHost:
		return s.host != ""
	case slot >= slotWandb && slot < len(specialKeys):
		return s.wandb != nil || len(s.rules) > 0
	default:
		return true
	}
}

// learnJob takes all that the environment of the job says.
func (s *stamps) learnJob(cfg *Config, d *resource.Detector) {
	run, ok := resource.Attribute{Key: semconv.RunID, Value: strings.TrimSpace(cfg.RunID.Static), Source: "static"}, true
	if run.Text() == "" {
		run, ok = d.RunID(cfg.RunID.From...)
	}
	if !ok && cfg.RunID.Generate == generatePerCollector {
		run, ok = resource.Attribute{Key: semconv.RunID, Value: generatedRunID(), Source: "generated"}, true
	}
	if ok {
		s.runID = s.id(run)
	}
	ids := d.IDs(s.runID.text)
	for _, a := range ids {
		switch a.Key {
		case semconv.DLJobUUID:
			s.jobUUID = s.id(a)
		case semconv.DLRunUUID:
			s.runUUID = s.id(a)
		}
	}
	s.runUUIDFromID = s.jobUUID.text == ""

	s.jobs = d.SLURMJobIDs()
	if cfg.SLURM {
		slurm := d.SLURM()
		if cfg.Names == namesOld {
			slurm = d.SLURMOld()
		}
		for _, a := range slurm {
			switch a.Key {
			case semconv.SlurmHeadNodeName, semconv.SlurmTopologyAddr, semconv.SlurmTopologyAddrPattern:
				s.learn(a, ofHost)
			default:
				s.learn(a, ofJob)
			}
		}
	}
	if cfg.Kubernetes {
		for _, a := range d.Kubernetes() {
			if a.Key == semconv.K8sContainerName {
				continue // The collector's own container is no sender's.
			}
			if a.Key == semconv.K8sPodName {
				s.pod = a.Text()
			}
			s.learn(a, ofPod)
		}
	}
	for _, a := range d.Host() {
		s.host = a.Text()
		if cfg.Host {
			s.learn(a, ofHost)
		}
	}
	if cfg.GPU {
		for _, a := range d.GPU() {
			s.learn(a, ofHost)
		}
	}
	var target wandbTarget
	for _, a := range d.Wandb() {
		target.texts[slices.Index(specialKeys[slotWandb:], a.Key)] = s.id(a)
		s.wandb = &target
	}
	s.refused = append(s.refused, d.Refused()...)
}

// learnNode takes what is true of all processes on the machine. In Kubernetes the agent's host name is its pod's.
func (s *stamps) learnNode(cfg *Config, system resource.System) {
	d := resource.New(system)
	system.LookupEnv = func(string) (string, bool) { return "", false } // CUDA_VISIBLE_DEVICES is what the agent may use.
	machine := resource.New(system)

	pod := d.Kubernetes()
	at := slices.IndexFunc(pod, func(a resource.Attribute) bool { return a.Key == semconv.K8sNodeName })
	if cfg.Kubernetes && at >= 0 {
		s.learn(pod[at], ofAnyone)
	}
	if cfg.Host {
		switch {
		case at >= 0:
			s.learn(resource.Attribute{Key: semconv.HostName, Value: pod[at].Value, Source: pod[at].Source}, ofAnyone)
		case len(pod) == 0:
			for _, a := range machine.Host() {
				s.learn(a, ofAnyone)
			}
		}
	}
	if cfg.GPU {
		for _, a := range machine.GPU() {
			s.learn(a, ofAnyone)
		}
	}
	s.refused = append(s.refused, slices.Concat(d.Refused(), machine.Refused())...)
}

// learn stamps a fact.
func (s *stamps) learn(a resource.Attribute, of scope) {
	value := pcommon.NewValueEmpty()
	if n, ok := a.Value.(int64); ok {
		value.SetInt(n)
	} else if text := s.text(a); text != "" {
		value.SetStr(text)
	} else {
		return
	}
	s.add(a, value, of)
}

// id is the text of an id or a W&B target. It goes before a fixed attribute of its key, which then is not stamped.
func (s *stamps) id(a resource.Attribute) own {
	text := s.text(a)
	if text != "" {
		s.known = slices.DeleteFunc(s.known, func(have resource.Attribute) bool { return have.Key == a.Key })
		s.known = append(s.known, a)
	}
	return s.own(slices.Index(specialKeys[:], a.Key), text)
}

// text is the text of a fact, or "" where it looks like a token: it would go into every resource.
func (s *stamps) text(a resource.Attribute) string {
	if redact.LooksLikeToken(a.Text()) {
		s.refused = append(s.refused, a.Source+": looks like a token")
		return ""
	}
	return a.Text()
}

// add stamps a value, unless its key is stamped already.
func (s *stamps) add(a resource.Attribute, value pcommon.Value, of scope) {
	slot := s.keys.add(a.Key)
	if !s.stamped.is(slot) {
		s.list = append(s.list, stamp{sharing.NewAttribute(s.shares, a.Key, value), slot, of})
		s.stamped.set(slot)
		s.known = append(s.known, a)
	}
}

// log writes the start line: each value and where it comes from, without secrets.
func (s *stamps) log(logger *zap.Logger) {
	counts := redact.Tokens.NewCounts()
	lines := make([]string, 0, len(s.known))
	for _, a := range s.known {
		shown := pcommon.NewMap()
		shown.PutStr(a.Key, a.Text())
		redact.Tokens.Map(shown, counts)
		lines = append(lines, a.Key+"="+text(shown, a.Key)+" ("+a.Source+")")
	}
	fields := []zap.Field{zap.Strings("values", lines)}
	if len(s.refused) > 0 {
		fields = append(fields, zap.Strings("refused", s.refused))
	}
	logger.Info("what is stamped onto resources that do not say it", fields...)
}
