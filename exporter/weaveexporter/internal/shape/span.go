// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"
)

// shape makes of s what Weave gets, and encodes it into w.encoded. ok is false if it is too large, whatever is cut.
//
// Most spans need no repair: they are written as they are, then what all spans of their scope get, which is encoded already. The others take
// the long way, repair by repair. Both ways give the same for a span that needs none.
func (w *worker) shape(s *span, sc *scope, e *entry) (endpoint Endpoint, run string, ok bool) {
	n := &w.result.Rewritten
	s.clamped(n)
	s.cleanTexts(n)
	s.explained(n)
	before := *n
	if !w.always && w.ready(s.attrs, sc.own, w.tail(sc, false)) {
		if w.encodeReady(s, sc, e); len(w.encoded)*worstCost <= w.spanBytes-sc.cost {
			return w.endpoint, sc.run, true
		}
		*n = before
	}
	return w.repair(s, sc, e)
}

// cleanTexts repairs everything of s but its attributes and the characters in its name.
func (s *span) cleanTexts(n *Counts) {
	s.name = cleanText(s.name, n)
	s.state, s.message = plainText(cleanText(s.state, n), "", n), plainText(cleanText(s.message, n), "", n)
	for i := range s.events {
		e := &s.events[i]
		e.name, e.attrs = plainText(cleanText(e.name, n), "", n), cleanList(e.attrs, n)
	}
	for i := range s.links {
		l := &s.links[i]
		l.state, l.attrs = plainText(cleanText(l.state, n), "", n), cleanList(l.attrs, n)
	}
}

// cleanList repairs attributes that Weave only stores.
func cleanList(list []attr, n *Counts) []attr {
	if !allSound(list) {
		list = cleaned(list, n)
	}
	return settled(withoutReferences(list, "", n), n)
}

func allSound(list []attr) bool {
	for _, a := range list {
		if !sound(a) {
			return false
		}
	}
	return true
}

// ready tells whether list is what Weave takes, none of it is read by Weave, and t can follow it.
func (w *worker) ready(list []attr, own string, t *tail) bool {
	if t.apart || len(list) > maxLinear {
		return false
	}
	var m mask
	for i, a := range list {
		b := keyBit(a.key)
		if w.runMask.has(b) || t.keys.has(b) && find(t.attrs, a.key) >= 0 || m.has(b) && find(list[:i], a.key) >= 0 || special(root(a.key)) || !sound(a) || refersIn(a.val, own) {
			return false
		}
		m.add(b)
	}
	return !onPath(list, &m, t) && !t.below(list, &m)
}

// encodeReady encodes a span whose attributes are ready.
func (w *worker) encodeReady(s *span, sc *scope, e *entry) {
	t, name := w.tail(sc, false), s.name
	w.own = s.attrs
	w.extras(s, sc, e, w.endpoint, nil, t.turns)
	b := s.appendHead(w.encoded[:0])
	b = appendAttrs(b, tagSpanAttr, s.attrs)
	b = append(b, t.bytes...)
	for _, x := range w.added {
		b = x.append(b)
	}
	w.encoded = s.appendTail(b)
	s.name = name // repair names it again, should it be too large
}

// repair is the long way.
func (w *worker) repair(s *span, sc *scope, e *entry) (endpoint Endpoint, run string, ok bool) {
	n := &w.result.Rewritten
	list := canonical(s.attrs, sc.own, n)
	own, named := w.ownRun(list, sc, &w.result)
	list = settled(list, n) // a run id may have moved aside
	w.own = list

	if endpoint = w.endpoint; w.opts.Mode == ModeAuto && isAgent(list) {
		endpoint = Agents
	}
	run = sc.run
	if named {
		run = own
	}
	if s.attrs = list; find(list, droppedCount+"attributes") < 0 { // else it has been shaped, and what was added did not fit
		t := w.tail(sc, endpoint == Calls && slices.ContainsFunc(list, func(a attr) bool { return hides(root(a.key)) }))
		if named {
			list = w.withRun(list, own, sc.rank)
			s.attrs = w.promote.merged(list, t, n, runKey, threadKey)
		} else {
			s.attrs = w.promote.merged(list, t, n)
		}
	}
	w.extras(s, sc, e, endpoint, s.attrs, inThread(s.attrs))
	for _, x := range w.added {
		s.attrs = append(s.attrs, x.attr())
	}
	s.attrs = settled(s.attrs, n)
	if w.encode(s); len(w.encoded)*worstCost > w.spanBytes-sc.cost {
		if !w.fit(s, sc.cost, n) {
			return endpoint, run, false
		}
		w.encode(s)
	}
	return endpoint, run, len(w.encoded) <= w.spanBytes
}

// canonical is list without anything that Weave would refuse of a span of a project whose references begin with own.
func canonical(list []attr, own string, n *Counts) []attr {
	return settled(withoutReferences(typed(expanded(cleaned(list, n), n), n), own, n), n)
}

func (w *worker) encode(s *span) {
	w.encoded = s.appendTail(appendAttrs(s.appendHead(w.encoded[:0]), tagSpanAttr, s.attrs))
}

// withRun adds the run that a span names itself.
func (w *worker) withRun(list []attr, run, rank string) []attr {
	if i := find(list, runKey); run != "" && i < 0 {
		list = append(list, text(runKey, run))
	}
	if thread := w.threadOf(run, rank); thread != "" && find(list, threadKey) < 0 {
		list = append(list, text(threadKey, thread))
	}
	return list
}

// isAgent tells whether a span belongs into the Agents view: it is of an agent, or in a conversation.
func isAgent(list []attr) bool {
	for i := range list {
		switch list[i].key {
		case agentNameKey, agentIDKey, conversationKey:
			return true
		case operationKey:
			switch asText(list[i].val) {
			case "create_agent", "invoke_agent", "invoke_workflow", "execute_tool":
				return true
			}
		}
	}
	return false
}

// extra is an attribute that one span gets.
type extra struct {
	key  string
	kind pcommon.ValueType // Str, Int or Bool
	text string
	num  int64
}

// append appends x to the fields of a span.
func (x extra) append(b []byte) []byte {
	b, at := openMessage(b, tagSpanAttr)
	b = appendText(b, tag(1, length), x.key)
	b, value := openMessage(b, tag(2, length))
	switch x.kind {
	case pcommon.ValueTypeStr:
		b = protowire.AppendString(append(b, tag(1, length)), x.text)
	case pcommon.ValueTypeBool:
		b = protowire.AppendVarint(append(b, tag(2, varint)), uint64(x.num))
	default:
		b = protowire.AppendVarint(append(b, tag(3, varint)), uint64(x.num))
	}
	return closeMessage(closeMessage(b, value), at)
}

func (x extra) attr() attr {
	switch x.kind {
	case pcommon.ValueTypeStr:
		return text(x.key, x.text)
	case pcommon.ValueTypeBool:
		return attr{x.key, pcommon.NewValueBool(x.num != 0)}
	}
	return integer(x.key, x.num)
}

// extras names s as Weave wants it, and lists what it gets by itself in w.added: step, turn and display name, each unless it has it. had are the
// attributes that may be of that kind.
func (w *worker) extras(s *span, sc *scope, e *entry, endpoint Endpoint, had []attr, turns bool) {
	w.added = w.added[:0]
	n := &w.result.Rewritten
	if e.state == stepKnown && e.step > 0 && find(had, stepKey) < 0 {
		w.added = append(w.added, extra{key: stepKey, kind: pcommon.ValueTypeInt, num: e.step})
		if find(had, stepEndKey) < 0 {
			w.added = append(w.added, extra{key: stepEndKey, kind: pcommon.ValueTypeInt, num: e.step})
		}
	}
	if turns && find(had, turnKey) < 0 {
		w.added = append(w.added, extra{key: turnKey, kind: pcommon.ValueTypeBool, num: int64(protowire.EncodeBool(turn(s)))})
	}
	original := s.name
	w.name(s, endpoint)
	if original == "" {
		original = s.name
	}
	shown := w.displayName(s, sc, e, had, original)
	if s.name != original && shown != original && find(had, originalPrefix+"name") < 0 {
		w.added = append(w.added, extra{key: originalPrefix + "name", kind: pcommon.ValueTypeStr, text: plainText(guarded(paired(original, n), n), "", n)})
	}
}

// name makes the name of s what Weave takes. The Agents view keeps names, and reads agents from them: they are only cut.
func (w *worker) name(s *span, endpoint Endpoint) {
	n := &w.result.Rewritten
	switch {
	case endpoint == Agents && s.name == "":
		n[SpanName]++
		s.name = namelessSpan
	case endpoint == Agents:
		short := cutRunes(s.name, maxAgentRunes)
		if short != s.name {
			n[SpanName]++
		}
		s.name = cutRunes(plainText(short, "", n), maxAgentRunes)
	case !w.soundName(s.name):
		s.name = w.opName(s.name, n)
	}
}

// displayName adds a display name if s has none: that of the template, or its name if that had to be changed. It returns what s has then.
func (w *worker) displayName(s *span, sc *scope, e *entry, had []attr, original string) (shown string) {
	if i := find(had, displayNameKey); i >= 0 {
		return asText(had[i].val)
	}
	shown = w.display.render(func(p templatePart) (string, bool) { return placeholderText(p, w.own, sc, e, original) })
	if shown == "" && s.name != original {
		shown = original
	}
	if shown != "" {
		shown = displayText(shown, &w.result.Rewritten)
		w.added = append(w.added, extra{key: displayNameKey, kind: pcommon.ValueTypeStr, text: shown})
	}
	return shown
}

// placeholderText is the text of a placeholder for a span of a scope whose own attributes are list.
func placeholderText(p templatePart, list []attr, sc *scope, e *entry, name string) (string, bool) {
	switch p.field {
	case "name":
		return name, true
	case "step":
		return strconv.FormatInt(e.step, 10), e.state == stepKnown
	case "rank":
		return cmp.Or(rankText(list), sc.rank), true
	}
	for _, list := range [][]attr{list, sc.attrs, sc.resource.attrs} {
		if i := findMoved(list, p.key); i >= 0 {
			return asText(list[i].val), true
		}
	}
	return "", false
}

// isRepeated tells whether s, which has the ids of an earlier span of its process in the batch, says the same as that or as another such. If
// not, Weave would lose one of them: s gets an id of its own, made of what it says.
func (w *worker) isRepeated(s *span, sc *scope, e *entry, i int32) bool {
	w.encode(s)
	sum := sha256.Sum256(append(w.encoded, sc.resource.bytes...))
	if e.first < 0 {
		w.batch.said[said{i, sum}] = true
		return false
	}
	key := said{e.first, sum}
	if w.batch.said[key] {
		return true
	}
	w.batch.said[key] = true
	w.result.Rewritten[DuplicateID]++
	if w.ids.rewrites {
		e.newID = hashID(append(e.newID[:], sum[:]...))
	}
	return false
}
