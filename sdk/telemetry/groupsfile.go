// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
	"unicode"

	lens "github.com/lenscol/lenscol/sdk"
)

// groupsInterval is how often the file is read where no signals say when.
const groupsInterval = 2 * time.Second

// watchGroups reads the file now, and then in the background until stop is called. Both wait for as long as their contexts allow,
// and for groupsInterval at most: a file on a shared file system may not answer.
func watchGroups(ctx context.Context, path string, signals []os.Signal) (stop func(context.Context)) {
	w := &groupsWatch{path: path, read: readGroups, done: make(chan struct{})}
	return w.start(ctx, signals)
}

// groupsWatch switches the groups when what the file says changes.
type groupsWatch struct {
	path string
	read func(path string) (spec string, err error)
	done chan struct{} // is closed when nothing shall be switched any more

	spec    string // what was set last
	problem string // what was logged last
	isSet   bool
}

func (w *groupsWatch) start(ctx context.Context, signals []os.Signal) (stop func(context.Context)) {
	var ticks <-chan time.Time
	came := make(chan os.Signal, 1)
	if len(signals) > 0 {
		signal.Notify(came, signals...)
	} else {
		ticker := time.NewTicker(groupsInterval)
		ticks = ticker.C
	}
	looked, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		defer signal.Stop(came)
		w.look()
		close(looked)
		w.run(ticks, came)
	}()
	await(ctx, looked)
	return func(ctx context.Context) {
		close(w.done)
		await(ctx, over)
	}
}

// await returns when c is closed, ctx is over, or groupsInterval has passed.
func await(ctx context.Context, c <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, groupsInterval)
	defer cancel()
	select {
	case <-c:
	case <-ctx.Done():
	}
}

func (w *groupsWatch) run(ticks <-chan time.Time, came <-chan os.Signal) {
	for {
		select {
		case <-w.done:
			return
		case <-ticks:
		case <-came:
		}
		w.look()
	}
}

func (w *groupsWatch) look() {
	spec, err := w.read(w.path)
	select {
	case <-w.done: // while the file did not answer
		return
	default:
	}
	if err != nil {
		if text := err.Error(); text != w.problem {
			w.problem = text
			slog.Warn("the file of span groups cannot be taken, they stay as they are", "error", err, "groups", lens.EnabledGroups())
		}
		return
	}
	w.problem = ""
	if w.isSet && spec == w.spec {
		return
	}
	w.spec, w.isSet = spec, true
	lens.SetGroups(spec)
	slog.Info("span groups are switched", "file", w.path, "groups", lens.EnabledGroups())
}

// Bounds of the file and of a name in it, in bytes.
const (
	maxGroupsFile = 64 << 10
	maxGroupName  = 128
)

// noGroups is the word that switches all off: an empty file may be one that is being written.
const noGroups = "none"

// readGroups is the file as a spec for lens.SetGroups.
func readGroups(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read span groups: %w", err)
	}
	if !info.Mode().IsRegular() { // to open a pipe would wait for its writer
		return "", fmt.Errorf("read span groups: %s: it is no regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read span groups: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxGroupsFile+1))
	if err != nil {
		return "", fmt.Errorf("read span groups: %w", err)
	}
	spec, err := parseGroups(string(text))
	if err != nil {
		return "", fmt.Errorf("read span groups: %s: %w", path, err)
	}
	return spec, nil
}

// parseGroups reads names with commas or blanks between, and comments from a # to the end of the line.
func parseGroups(text string) (spec string, err error) {
	if len(text) > maxGroupsFile {
		return "", fmt.Errorf("it is longer than %d bytes", maxGroupsFile)
	}
	var names []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		names = append(names, strings.FieldsFunc(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })...)
	}
	for _, name := range names {
		if len(name) > maxGroupName || strings.ContainsFunc(name, isOutsideOfNames) {
			return "", fmt.Errorf("%.64q is no name of a group or preset, must be letters, digits, _, - and points", name)
		}
	}
	isNone := func(name string) bool { return strings.EqualFold(name, noGroups) }
	switch {
	case len(names) == 0:
		return "", errors.New("it names no group; none switches all off")
	case len(names) == 1 && isNone(names[0]):
		return "", nil
	case slices.ContainsFunc(names, isNone):
		return "", errors.New("none must stand alone")
	}
	return strings.Join(names, ","), nil
}

func isOutsideOfNames(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-.", r))
}
