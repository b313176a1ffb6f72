// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package resource finds out whose telemetry a process produces: its job, run and attempt, its host, pod and GPUs, its W&B
// target. It reads the environment and a few small files; it runs no program and asks no network.
//
//	d := resource.New(resource.System{})
//	run, ok := d.RunID(resource.DefaultRunID...)
//	attrs := slices.Concat(d.SLURM(), d.Kubernetes(), d.Host(), d.GPU(), d.IDs(run))
//
// What a variable or file says is taken only if it is plain text of at most 1,024 bytes; the rest counts as absent and is
// listed by [Detector.Refused]. The keys and rules are those of NeMo Lens. Standard library only.
package resource // import "github.com/lenscol/lenscol/sdk/resource"

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxValue bounds a value that is taken, in bytes.
const maxValue = 1024

// Attribute is one fact about a resource.
type Attribute struct {
	Key    string
	Value  any    // string or int64
	Source string // where it comes from: env:NAME, file:PATH, hostname, process, uuid5, static, generated
}

// Text is the value as text, an integer in decimal.
func (a Attribute) Text() string {
	if n, ok := a.Value.(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	text, _ := a.Value.(string)
	return text
}

// System is where a Detector looks. The zero value is this process on this machine.
type System struct {
	LookupEnv func(name string) (string, bool) // nil: os.LookupEnv
	Hostname  func() (string, error)           // nil: os.Hostname
	Root      string                           // folder that stands for /, with all paths below it; "": /
}

// Detector reads facts of one System. It is not safe for concurrent use.
type Detector struct {
	system  System
	refused []string
}

// New makes a Detector.
func New(system System) *Detector {
	if system.LookupEnv == nil {
		system.LookupEnv = os.LookupEnv
	}
	if system.Hostname == nil {
		system.Hostname = os.Hostname
	}
	return &Detector{system: system}
}

// Refused lists what was there and could not be taken, each as "SOURCE: why". It never shows the value.
func (d *Detector) Refused() []string { return d.refused }

func (d *Detector) refuse(source, why string) {
	line := source + ": " + why
	for _, have := range d.refused {
		if have == line {
			return
		}
	}
	d.refused = append(d.refused, line)
}

// take trims a value and accepts it, or refuses it: an empty one is absent.
func (d *Detector) take(source, value string) (string, bool) {
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		return "", false
	case len(value) > maxValue:
		d.refuse(source, fmt.Sprintf("longer than %d bytes", maxValue))
	case !utf8.ValidString(value):
		d.refuse(source, "not UTF-8")
	case strings.ContainsFunc(value, unicode.IsControl):
		d.refuse(source, "has control characters")
	default:
		return value, true
	}
	return "", false
}

// env is the value of the first of the variables that is set and can be taken, and its source.
func (d *Detector) env(names ...string) (value, source string, ok bool) {
	for _, name := range names {
		raw, _ := d.system.LookupEnv(name)
		if value, ok = d.take("env:"+name, raw); ok {
			return value, "env:" + name, true
		}
	}
	return "", "", false
}

// facts collects attributes.
type facts struct {
	d    *Detector
	list []Attribute
}

func (f *facts) add(key string, value any, source string) {
	f.list = append(f.list, Attribute{Key: key, Value: value, Source: source})
}

// text adds the first of the variables that is set.
func (f *facts) text(key string, names ...string) {
	if value, source, ok := f.d.env(names...); ok {
		f.add(key, value, source)
	}
}

// integer adds the first of the variables that is a whole number from 0 on.
func (f *facts) integer(key string, names ...string) bool {
	for _, name := range names {
		value, source, ok := f.d.env(name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			f.d.refuse(source, "no whole number")
			continue
		}
		f.add(key, int64(n), source)
		return true
	}
	return false
}
