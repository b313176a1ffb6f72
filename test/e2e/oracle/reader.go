// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// Reader turns the lines of one file into items. It is fed the file from its beginning on, in pieces that end at
// line ends, and remembers the scope and resource lines of that file alone.
type Reader struct {
	Inline bool // resource and scope stand in each line, as `resource: inline` has it

	resources map[string]Value
	scopes    map[string]scopeLine
	lines     int
}

// scopeLine is bound to the resource that its id meant where the scope line stands.
type scopeLine struct{ scope, resource Value }

// Feed reads the next lines. An error names the line, counted from 1 over all pieces.
func (r *Reader) Feed(piece []byte) ([]Item, error) {
	var items []Item
	for line := range bytes.Lines(piece) {
		r.lines++
		item, isItem, err := r.line(line)
		if err != nil {
			return items, fmt.Errorf("line %d: %w: %s", r.lines, err, brief(string(line)))
		}
		if isItem {
			items = append(items, item)
		}
	}
	return items, nil
}

// ReadFile reads a whole file of lines.
func ReadFile(path string) ([]Item, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	items, err := (&Reader{}).Feed(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return items, nil
}

func (r *Reader) line(line []byte) (item Item, isItem bool, err error) {
	text, ok := bytes.CutSuffix(line, []byte("\n"))
	if !ok {
		return Item{}, false, errors.New("no newline at the end")
	}
	if bytes.ContainsAny(text, "\u0085\u2028\u2029") {
		return Item{}, false, errors.New("a line end of Unicode that is not escaped")
	}
	v, err := Parse(text)
	if err != nil {
		return Item{}, false, err
	}
	if v.Kind != Map || len(v.Members) == 0 || v.Members[0].Key != "type" {
		return Item{}, false, errors.New("not an object that begins with type")
	}
	switch kind := v.Members[0].Value; {
	case kind.Kind != Text:
		return Item{}, false, errors.New("type is no text")
	case r.Inline && (kind.Text == "resource" || kind.Text == "scope"):
		return Item{}, false, errors.New("a line of its own, though inline")
	case kind.Text == "resource":
		return Item{}, false, r.resourceLine(v.Members[1:])
	case kind.Text == "scope":
		return Item{}, false, r.scopeLine(v.Members[1:])
	case kind.Text == "span", kind.Text == "metric", kind.Text == "log":
		item, err = r.itemLine(v)
		return item, true, err
	default:
		return Item{}, false, fmt.Errorf("unknown type %q", kind.Text)
	}
}

func (r *Reader) resourceLine(members []Member) error {
	id, rest, err := cutInt(members, "id")
	if err != nil {
		return err
	}
	if r.resources == nil {
		r.resources = map[string]Value{}
	}
	r.resources[id] = rest
	return nil
}

func (r *Reader) scopeLine(members []Member) error {
	id, rest, err := cutInt(members, "id")
	if err != nil {
		return err
	}
	resourceID, rest, err := cutInt(rest.Members, "resource")
	if err != nil {
		return err
	}
	resource, ok := r.resources[resourceID]
	if !ok {
		return fmt.Errorf("no resource line %s above", resourceID)
	}
	if r.scopes == nil {
		r.scopes = map[string]scopeLine{}
	}
	r.scopes[id] = scopeLine{rest, resource}
	return nil
}

// itemLine splits an item's line from what stands at its end: the id of its scope, or its resource and scope.
func (r *Reader) itemLine(v Value) (Item, error) {
	item := Item{Line: v, Resource: Value{Kind: Map}, Scope: Value{Kind: Map}}
	if r.Inline {
		item.Line.cutLast("scope", Map, &item.Scope)
		item.Line.cutLast("resource", Map, &item.Resource)
		return item, nil
	}
	var id Value
	if !item.Line.cutLast("scope", Int, &id) {
		return Item{}, errors.New("no scope id at the end")
	}
	scope, ok := r.scopes[id.Text]
	if !ok {
		return Item{}, fmt.Errorf("no scope line %s above", id.Text)
	}
	item.Resource, item.Scope = scope.resource, scope.scope
	return item, nil
}

// cutLast moves the last member to `to` when it is of that key and kind.
func (v *Value) cutLast(key string, kind Kind, to *Value) bool {
	last := len(v.Members) - 1
	if last < 0 || v.Members[last].Key != key || v.Members[last].Value.Kind != kind {
		return false
	}
	*to = v.Members[last].Value
	v.Members = v.Members[:last]
	return true
}

// cutInt takes the first member, an integer of that key, off an object.
func cutInt(members []Member, key string) (id string, rest Value, err error) {
	if len(members) == 0 || members[0].Key != key || members[0].Value.Kind != Int {
		return "", Value{}, fmt.Errorf("no integer %q where it belongs", key)
	}
	return members[0].Value.Text, Value{Kind: Map, Members: members[1:]}, nil
}

// Same says where got differs from want, or nil.
func Same(want, got Item) error {
	for _, part := range []struct {
		name      string
		want, got Value
	}{{"line", want.Line, got.Line}, {"resource", want.Resource, got.Resource}, {"scope", want.Scope, got.Scope}} {
		if d := diff(part.name, part.want, part.got); d != "" {
			return errors.New(d)
		}
	}
	return nil
}

// SameInOrder holds all items got against all items wanted, one by one.
func SameInOrder(want, got []Item) error {
	for i := range min(len(want), len(got)) {
		if err := Same(want[i], got[i]); err != nil {
			return fmt.Errorf("item %d of %d: %w", i+1, len(want), err)
		}
	}
	if len(want) != len(got) {
		return fmt.Errorf("want %d items, got %d", len(want), len(got))
	}
	return nil
}

// SameInAnyOrder holds the items got against those wanted, each as often as it is there.
func SameInAnyOrder(want, got []Item) error {
	counts := map[string]int{}
	for _, item := range want {
		counts[item.String()]++
	}
	for _, item := range got {
		counts[item.String()]--
	}
	for text, n := range counts {
		if n > 0 {
			return fmt.Errorf("want %d items, got %d; missing %d times: %s", len(want), len(got), n, brief(text))
		}
	}
	for text, n := range counts {
		if n < 0 {
			return fmt.Errorf("want %d items, got %d; %d times too many: %s", len(want), len(got), -n, brief(text))
		}
	}
	return nil
}

// String is the same text for the same item, and different text for different ones.
func (i Item) String() string {
	return i.Line.String() + i.Resource.String() + i.Scope.String()
}
