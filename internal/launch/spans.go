// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package launch // import "github.com/lenscol/lenscol/internal/launch"

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/otel/codes"

	lens "github.com/lenscol/lenscol/sdk"
)

// Span is an interval that is over.
type Span struct {
	Name, Parent string // Parent is the name of another span of the set, "" for none
	Start, End   time.Time
	More         lens.EmitOptions
}

// ParseSpans reads spans as NAME,START,END[,PARENT], events as SPAN,NAME,TIME and statuses as SPAN,ok|error[,MESSAGE]; times are decimal
// epoch seconds. The spans come back parents first, otherwise in their order. Errors tell of every text that is wrong: a bad field, a
// name that is there twice, a parent that is not, a circle of parents (NeMo Lens, nemo-lens emit-spans).
func ParseSpans(spans, events, statuses []string) ([]Span, error) {
	set := spanSet{at: map[string]int{}}
	for _, text := range spans {
		set.note("--span", text, set.addSpan(text))
	}
	for _, text := range events {
		set.note("--events", text, set.addEvent(text))
	}
	for _, text := range statuses {
		set.note("--status", text, set.addStatus(text))
	}
	ordered := set.parentsFirst()
	if err := errors.Join(set.errs...); err != nil {
		return nil, err
	}
	return ordered, nil
}

type spanSet struct {
	list []Span
	at   map[string]int // by name
	errs []error
}

func (s *spanSet) note(flag, text string, err error) {
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("%s %q: %w", flag, text, err))
	}
}

func (s *spanSet) addSpan(text string) error {
	fields := strings.Split(text, ",")
	if len(fields) != 3 && len(fields) != 4 {
		return fmt.Errorf("it has %d fields, must be NAME,START,END or NAME,START,END,PARENT", len(fields))
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	span := Span{Name: fields[0]}
	var err error
	switch {
	case span.Name == "":
		return errors.New("its name is empty")
	case len(fields) == 4 && fields[3] == "":
		return errors.New("its parent is empty; leave out the comma before it")
	}
	if _, there := s.at[span.Name]; there {
		return errors.New("there is a span of this name already")
	}
	if span.Start, err = ParseEpoch(fields[1]); err != nil {
		return fmt.Errorf("its start: %w", err)
	}
	if span.End, err = ParseEpoch(fields[2]); err != nil {
		return fmt.Errorf("its end: %w", err)
	}
	if len(fields) == 4 {
		span.Parent = fields[3]
	}
	s.at[span.Name] = len(s.list)
	s.list = append(s.list, span)
	return nil
}

func (s *spanSet) addEvent(text string) error {
	fields := strings.Split(text, ",")
	if len(fields) != 3 || strings.TrimSpace(fields[1]) == "" {
		return errors.New("must be SPAN,NAME,TIME")
	}
	span, err := s.named(fields[0])
	if err != nil {
		return err
	}
	at, err := ParseEpoch(strings.TrimSpace(fields[2]))
	if err != nil {
		return fmt.Errorf("its time: %w", err)
	}
	span.More.Events = append(span.More.Events, lens.Event{Name: strings.TrimSpace(fields[1]), Time: at})
	return nil
}

func (s *spanSet) addStatus(text string) error {
	fields := strings.SplitN(text, ",", 3)
	if len(fields) < 2 {
		return errors.New("must be SPAN,ok or SPAN,error or SPAN,error,MESSAGE")
	}
	span, err := s.named(fields[0])
	if err != nil {
		return err
	}
	switch code := strings.ToLower(strings.TrimSpace(fields[1])); {
	case code == "ok" && len(fields) == 2:
		span.More.Status = codes.Ok
	case code == "error":
		span.More.Status = codes.Error
		if len(fields) == 3 {
			span.More.Description = strings.TrimSpace(fields[2])
		}
	default:
		return errors.New("must be SPAN,ok or SPAN,error or SPAN,error,MESSAGE")
	}
	return nil
}

func (s *spanSet) named(name string) (*Span, error) {
	i, there := s.at[strings.TrimSpace(name)]
	if !there {
		return nil, fmt.Errorf("there is no span %q", strings.TrimSpace(name))
	}
	return &s.list[i], nil
}

// parentsFirst orders the spans, and notes those whose parent is missing, or is below them.
func (s *spanSet) parentsFirst() []Span {
	const (
		open = iota + 1
		done
	)
	state := make([]int, len(s.list))
	var ordered []Span
	for i := range s.list {
		// The way up to a span that stands in its place, and back down.
		var way []int
		for at := i; state[at] == 0; {
			state[at] = open
			way = append(way, at)
			span := s.list[at]
			if span.Parent == "" {
				break
			}
			up, there := s.at[span.Parent]
			if !there {
				s.errs = append(s.errs, fmt.Errorf("span %q: there is no span %q, which is its parent", span.Name, span.Parent))
				break
			}
			if state[up] == open {
				s.errs = append(s.errs, fmt.Errorf("span %q: its parent %q is below it", span.Name, span.Parent))
				break
			}
			at = up
		}
		for j := len(way) - 1; j >= 0; j-- {
			state[way[j]] = done
			ordered = append(ordered, s.list[way[j]])
		}
	}
	return ordered
}

var decimal = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$`)

// ParseEpoch reads decimal epoch seconds, exactly to the nanosecond: 1700000000.25. Times lie within 1678 and 2262, which is
// what nanoseconds of 64 bits can say.
func ParseEpoch(text string) (time.Time, error) {
	if len(text) > 64 || !decimal.MatchString(text) {
		return time.Time{}, fmt.Errorf("%.64q must be decimal epoch seconds, such as 1700000000.25", text)
	}
	r, _ := new(big.Rat).SetString(text)
	nanos := new(big.Int).Quo(new(big.Int).Mul(r.Num(), big.NewInt(1e9)), r.Denom())
	if !nanos.IsInt64() {
		return time.Time{}, fmt.Errorf("%q lies outside of the years 1678 to 2262", text)
	}
	return time.Unix(0, nanos.Int64()), nil
}

// ParseAttrs reads attributes as KEY=VALUE; values are texts.
func ParseAttrs(texts []string) (attrs []lens.Attr, err error) {
	var errs []error
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			errs = append(errs, fmt.Errorf("--attr %q: must be KEY=VALUE", text))
			continue
		}
		attrs = append(attrs, lens.String(key, value))
	}
	return attrs, errors.Join(errs...)
}
