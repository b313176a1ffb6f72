// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"slices"
	"strings"
)

// bareRun returns the run id that Weave links, of a value that may be the address of a run: ENTITY/PROJECT/ID or ENTITY/PROJECT/runs/ID. ok is false
// for a run of another project, and for what is no id; Weave would ignore it in silence.
func bareRun(value string, target Target) (id string, ok bool) {
	id = value
	if parts := strings.Split(value, "/"); len(parts) > 1 {
		if len(parts) == 4 && parts[2] == "runs" {
			parts = append(parts[:2], parts[3])
		}
		if len(parts) != 3 || parts[0] != target.Entity || parts[1] != target.Project {
			return "", false
		}
		id = parts[2]
	}
	return id, id != "" && !strings.Contains(id, ":")
}

// resourceRun is the run of the spans of a resource that do not name one themselves. Empty: none.
func (s *Shaper) resourceRun(list []attr, target Target, r *Result) string {
	for _, key := range append([]string{runKey}, s.opts.RunIDFrom...) {
		i := findMoved(list, key)
		if i < 0 || asText(list[i].val) == "" {
			continue
		}
		value := asText(list[i].val)
		id, ok := bareRun(value, target)
		if !ok {
			r.foreignRun(value)
		}
		return id
	}
	return s.opts.RunID
}

// ownRun is the run that a span names itself, by wandb.wb_run_id or a key of the config. ok is false if it names none: then the resource's
// counts; an empty id with ok is a run that cannot be linked. A value of wandb.wb_run_id that is not the bare id becomes it, or moves aside.
func (s *Shaper) ownRun(list []attr, target Target, r *Result) (id string, ok bool) {
	if i := find(list, runKey); i >= 0 && list[i].val.Str() != "" {
		value := list[i].val.Str()
		id, usable := bareRun(value, target)
		switch {
		case !usable:
			r.foreignRun(value)
			list[i].key = originalPrefix + runKey
		case id != value:
			r.Rewritten[RunID]++
			list[i] = text(runKey, id)
		}
		return id, true
	}
	if find(list, originalPrefix+runKey) >= 0 {
		return "", true // it has moved aside
	}
	for _, key := range s.opts.RunIDFrom {
		if i := findMoved(list, key); i >= 0 && asText(list[i].val) != "" {
			value := asText(list[i].val)
			id, usable := bareRun(value, target)
			if !usable {
				r.foreignRun(value)
			}
			return id, true
		}
	}
	return "", false
}

// maxExamples bounds what a result says for a log line.
const maxExamples = 4

func (r *Result) foreignRun(value string) {
	r.Rewritten[RunID]++
	r.ForeignRuns = example(r.ForeignRuns, value)
}

func example(list []string, value string) []string {
	value = cutText(strings.ToValidUTF8(value, nonUTF8), 100)
	if len(list) >= maxExamples || slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
