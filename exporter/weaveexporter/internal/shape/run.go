// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"slices"
	"strings"
)

const maxRunID = 128 // bytes; W&B takes no longer ones

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
	if !isRunID(id) {
		return "", false
	}
	return id, true
}

// isRunID tells whether W&B can have a run with this id.
func isRunID(id string) bool {
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == ':' || c == '/' {
			return false
		}
	}
	return id != "" && len(id) <= maxRunID && !decoded(id)
}

// runSources are the keys of a run id: Weave's own, then those of the config. The first that is there is taken, of the span before its scope and its resource.
func runSources(from []string) []string { return append([]string{runKey}, from...) }

// aboveRun is the run of the spans of a scope that do not name one themselves, said by the scope, its resource or the config; empty: none. source
// is the place in runSources of the key that said it, behind all of them if it is the config's.
func (s *Shaper) aboveRun(sc *scope, r *Result) (id string, source int) {
	for i, key := range s.runFrom {
		for _, list := range [][]attr{sc.attrs, sc.resource.attrs} {
			if value, ok := runText(list, key); ok {
				return r.linkedRun(value, sc.target), i
			}
		}
	}
	return s.opts.RunID, len(s.runFrom)
}

func runText(list []attr, key string) (string, bool) {
	i := findMoved(list, key)
	if i < 0 {
		return "", false
	}
	value := asText(list[i].val)
	return value, value != ""
}

// ownRun is the run that a span names itself. ok is false if it names none: then that from above counts; an empty id with ok is a run that cannot be
// linked. A value of wandb.wb_run_id that is not the bare id becomes it, or moves aside.
func (s *Shaper) ownRun(list []attr, sc *scope, r *Result) (id string, ok bool) {
	for i := find(list, runKey); i >= 0 && list[i].val.Str() != ""; i = find(list, runKey) {
		value := list[i].val.Str()
		if id = r.linkedRun(value, sc.target); id == "" {
			list[i].key = originalPrefix + runKey
			continue
		}
		if id != value {
			r.Rewritten[RunID]++
			list[i] = text(runKey, id)
		}
		return id, true
	}
	if findMoved(list, originalPrefix+runKey) >= 0 {
		return "", true
	}
	for i, key := range s.runFrom {
		if i == 0 || i > sc.runSource {
			continue // the scope or the resource said an earlier one
		}
		if value, said := runText(list, key); said {
			return r.linkedRun(value, sc.target), true
		}
	}
	return "", false
}

// linkedRun is bareRun, and notes a run that cannot be linked.
func (r *Result) linkedRun(value string, target Target) string {
	id, ok := bareRun(value, target)
	if !ok {
		r.Rewritten[RunID]++
		r.ForeignRuns = example(r.ForeignRuns, value)
	}
	return id
}

// maxExamples bounds what a result says for a log line.
const maxExamples = 4

// example adds the beginning of value to a few examples.
func example(list []string, value string) []string {
	value = cutText(strings.ToValidUTF8(value, nonUTF8), 100)
	if len(list) >= maxExamples || slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}
