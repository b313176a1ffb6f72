// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runidenricher // import "github.com/lenscol/lenscol/processor/runidenricher"

import (
	mathbits "math/bits"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/internal/ranks"
	"github.com/lenscol/lenscol/internal/sharing"
	"github.com/lenscol/lenscol/sdk/resource"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// scope is what a stamped fact is a fact of. It is stamped onto a resource only if that does not say that it belongs to another.
type scope uint8

const (
	ofAnyone scope = iota
	ofJob          // the resource names another SLURM job
	ofPod          // another pod
	ofHost         // another host
	scopes
)

// stamp is an attribute that a resource gets which does not have it.
type stamp struct {
	sharing.Attribute
	slot  int
	scope scope
}

// own is a text that the collector knows, "" for none, and the same as an attribute that resources share.
type own struct {
	text      string
	attribute sharing.Attribute
}

func (s *stamps) own(slot int, text string) own {
	return own{text, sharing.NewAttribute(s.shares, specialKeys[slot], pcommon.NewValueStr(text))}
}

// stamps is what the collector adds to resources.
type stamps struct {
	shares    bool // resources may share values
	keys      keyset
	asked     filter // those of the keys that a resource is asked for
	list      []stamp
	stamped   bits // keys that a resource gets where it has none of them: of list, and the ids below
	overwrite bits
	takesOver bits   // keys that name an owner and are overwritten: no resource is another owner's by them
	replace   string // when an id of the sender's gives way: never, generated, always

	runID, jobUUID, runUUID own
	runUUIDFromID           bool // the run uuid is that of runID and of no other run
	jobs                    []string
	pod, host               string

	rules []wandbTarget
	wandb *wandbTarget // from the environment, nil for none

	known   []resource.Attribute // all of the above, for the start line
	refused []string
}

// What a walk over a resource looks for by itself; the stamps' keys come after.
var specialKeys = [...]string{
	semconv.RunID, semconv.DLRunUUID, semconv.DLJobUUID, semconv.DLRunUUIDOld, semconv.DLJobUUIDOld, semconv.SlurmJobID, semconv.K8sPodName, semconv.HostName,
	semconv.WandbEntity, semconv.WandbProject, semconv.WandbRunID,
}

const (
	slotRunID = iota
	slotRunUUID
	slotJobUUID
	slotRunUUIDOld
	slotJobUUIDOld
	slotSlurmJob
	slotPod
	slotHost
	slotWandb // entity, project and run id
)

// said is what a resource says: which of the keys it has, and the texts of the special ones.
type said struct {
	has      bits
	repeated bits // keys that are there more than once: OTLP forbids it, decoders let it pass
	texts    [len(specialKeys)]string
	odd      bits // special keys whose value is no text
}

func (s *stamps) read(attrs pcommon.Map, r *said) {
	for key, v := range attrs.All() {
		if !s.asked.may(key) { // most of them
			continue
		}
		slot := s.keys.slot(key)
		if slot < 0 {
			continue
		}
		if r.has.is(slot) { // Of a key that is there twice, the first holds.
			r.repeated.set(slot)
			continue
		}
		r.has.set(slot)
		if slot >= len(specialKeys) {
			continue
		}
		switch v.Type() {
		case pcommon.ValueTypeStr:
			r.texts[slot] = v.Str()
		case pcommon.ValueTypeInt:
			r.texts[slot] = strconv.FormatInt(v.Int(), 10)
		default:
			r.odd.set(slot)
		}
	}
}

// put sets a special key that is not there, or is there without a text.
func (r *said) put(attrs pcommon.Map, slot int, v *own) {
	if r.has.is(slot) {
		attrs.PutStr(specialKeys[slot], v.text)
		return
	}
	v.attribute.Put(attrs)
	r.has.set(slot)
}

// replace sets a special key, of which nothing that the sender said stays.
func (r *said) replace(attrs pcommon.Map, slot int, text string) {
	attrs.PutStr(specialKeys[slot], text)
	r.one(attrs, slot, specialKeys[slot])
}

// one leaves the first of the attributes of a key.
func (r *said) one(attrs pcommon.Map, slot int, key string) {
	if r.repeated.is(slot) {
		removeFurther(attrs, key)
	}
}

// removeFurther removes all attributes of a key but the first.
func removeFurther(attrs pcommon.Map, key string) {
	seen := false
	attrs.RemoveIf(func(k string, _ pcommon.Value) bool {
		further := seen && k == key
		seen = seen || k == key
		return further
	})
}

// stamp completes a resource.
func (s *stamps) stamp(attrs pcommon.Map, others int, t *tally) {
	var r said
	s.read(attrs, &r)
	s.makeRoom(attrs, &r, others, t)
	var foreign [scopes]bool
	if job := r.texts[slotSlurmJob]; job != "" && len(s.jobs) > 0 && !s.takesOver.is(slotSlurmJob) && !slices.Contains(s.jobs, job) {
		foreign[ofJob] = true
		if t.otherJob == "" {
			t.otherJob = job
		}
	}
	foreign[ofPod] = s.isForeign(&r, slotPod, s.pod)
	foreign[ofHost] = s.isForeign(&r, slotHost, s.host)

	// The run first: it is read from what the resource says, not from what is stamped.
	run := s.stampRun(attrs, &r, foreign[ofJob], t)
	if !foreign[ofJob] && (s.jobUUID.text != "" || s.runUUID.text != "") {
		replaced := run != r.texts[slotRunID] && r.texts[slotRunID] != ""
		s.stampID(attrs, &r, &jobUUID, &s.jobUUID, s.replace == replaceAlways, t)
		if !s.runUUIDFromID || run == s.runID.text {
			s.stampID(attrs, &r, &runUUID, &s.runUUID, s.replace == replaceAlways || replaced && s.runUUIDFromID, t)
		}
	}
	if s.wandb != nil || len(s.rules) > 0 {
		if target := s.target(attrs, &r, foreign[ofJob]); target != nil {
			s.stampWandb(attrs, &r, target, t)
		}
	}

	for i := range s.list {
		switch st := &s.list[i]; {
		case foreign[st.scope]:
		case !r.has.is(st.slot):
			st.Put(attrs)
		case s.overwrite.is(st.slot):
			if v, _ := attrs.Get(st.Key()); !same(v, st.Value()) {
				st.Value().CopyTo(v)
				t.overwritten++
			}
			r.one(attrs, st.slot, st.Key())
		}
	}
}

// isForeign reports whether the resource names another owner than ours.
func (s *stamps) isForeign(r *said, slot int, ours string) bool {
	sent := r.texts[slot]
	return ours != "" && sent != "" && sent != ours && !s.takesOver.is(slot)
}

// makeRoom lets the attributes grow once, by what they can get, instead of to twice their number.
func (s *stamps) makeRoom(attrs pcommon.Map, r *said, others int, t *tally) {
	missing := 0
	for i := range s.stamped {
		missing += mathbits.OnesCount64(s.stamped[i] &^ r.has[i])
	}
	if missing > 0 {
		t.room.Grow(s.shares, attrs, missing, others)
	}
}

// stampRun gives the resource its run id, and returns what that is.
func (s *stamps) stampRun(attrs pcommon.Map, r *said, otherJob bool, t *tally) string {
	run, ours := r.texts[slotRunID], &s.runID
	if otherJob {
		ours = &own{}
	}
	switch {
	case r.odd.is(slotRunID):
		t.from[fromSender]++
		return ""
	case run != "" && ours.text != "" && run != ours.text && s.givesWay(run):
		if s.replace != replaceAlways && s.overwrite.is(slotRunID) {
			t.overwritten++
		}
		keepOriginal(attrs, semconv.RunIDOriginal, run)
		r.replace(attrs, slotRunID, ours.text)
		t.from[fromReplaced]++
		return ours.text
	case run != "":
		t.from[fromSender]++
		return run
	}
	hasUUID := false
	for slot := slotRunUUID; slot <= slotJobUUIDOld; slot++ {
		hasUUID = hasUUID || r.texts[slot] != ""
	}
	hasJob := r.texts[slotSlurmJob] != ""
	if hasJob && ours.text != "" && len(s.jobs) > 0 {
		hasJob = false // It is our own job, or becomes it. Its parts and tasks have ids of their own, and one run.
	}
	if hasUUID || hasJob {
		if run = identity.Run(attrs); run != "" {
			attrs.PutStr(semconv.RunID, run)
			r.has.set(slotRunID)
			t.from[fromResource]++
			return run
		}
	}
	switch {
	case ours.text != "":
		r.put(attrs, slotRunID, ours)
		t.from[fromOwn]++
	case otherJob:
		t.from[fromOtherJob]++
	default:
		t.from[fromNone]++
	}
	return ours.text
}

// keepOriginal keeps what a sender said before its value is replaced. The first original holds: a second collector on the way does
// not lose it.
func keepOriginal(attrs pcommon.Map, key, sent string) {
	if _, there := attrs.Get(key); !there {
		attrs.PutStr(key, sent)
	}
}

// givesWay reports whether a sender's run id is replaced by the collector's.
func (s *stamps) givesWay(run string) bool {
	return s.replace == replaceAlways || s.overwrite.is(slotRunID) || s.replace == replaceGenerated && resource.IsGenerated(run)
}

// uuid is an id that has two spellings.
type uuid struct {
	slots    [2]int // new, old
	original string // key that keeps what the sender said
}

var (
	runUUID = uuid{[2]int{slotRunUUID, slotRunUUIDOld}, semconv.DLRunUUIDOriginal}
	jobUUID = uuid{[2]int{slotJobUUID, slotJobUUIDOld}, semconv.DLJobUUIDOriginal}
)

// stampID gives the resource a uuid that it has under neither name, or another one under the names that it has.
func (s *stamps) stampID(attrs pcommon.Map, r *said, id *uuid, ours *own, replace bool, t *tally) {
	if ours.text == "" {
		return
	}
	there, overwrite := false, false
	for _, slot := range id.slots {
		there = there || r.texts[slot] != "" || r.odd.is(slot)
		overwrite = overwrite || s.overwrite.is(slot)
	}
	if !there {
		r.put(attrs, id.slots[0], ours)
		return
	}
	if !replace && !overwrite {
		return
	}
	for _, slot := range id.slots {
		if sent := r.texts[slot]; sent != "" && sent != ours.text {
			keepOriginal(attrs, id.original, sent)
			r.replace(attrs, slot, ours.text)
			if !replace {
				t.overwritten++
			}
		}
	}
}

// wandbTarget is an entity, a project and a run id, "" for what is left open.
type wandbTarget struct {
	match map[string]string
	texts [3]own
}

// target is the W&B target for what the resource leaves open: that of the first rule that matches, else the environment's.
// One that contradicts the resource is not its target.
func (s *stamps) target(attrs pcommon.Map, r *said, otherJob bool) *wandbTarget {
	target := s.wandb
	if otherJob {
		target = nil
	}
	for i := range s.rules {
		if s.rules[i].matches(attrs) {
			target = &s.rules[i]
			break
		}
	}
	if target == nil {
		return nil
	}
	for i, ours := range target.texts {
		if sent := r.texts[slotWandb+i]; sent != "" && ours.text != "" && sent != ours.text && !s.overwrite.is(slotWandb+i) {
			return nil
		}
	}
	return target
}

func (w *wandbTarget) matches(attrs pcommon.Map) bool {
	for key, glob := range w.match {
		v, ok := attrs.Get(key)
		if !ok {
			return false
		}
		text := ""
		if v.Type() == pcommon.ValueTypeStr {
			text = v.Str()
		} else {
			text = v.AsString()
		}
		if !ranks.Matches(glob, text) {
			return false
		}
	}
	return true
}

func (s *stamps) stampWandb(attrs pcommon.Map, r *said, target *wandbTarget, t *tally) {
	for i := range target.texts {
		ours, slot := &target.texts[i], slotWandb+i
		if ours.text == "" || ours.text == r.texts[slot] || r.odd.is(slot) {
			continue
		}
		if r.texts[slot] == "" {
			r.put(attrs, slot, ours)
			continue
		}
		t.overwritten++
		r.replace(attrs, slot, ours.text)
	}
}
