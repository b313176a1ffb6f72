// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package configs holds the ready pipelines that are embedded into the binary, one file a destination or role.
package configs // import "github.com/lenscol/lenscol/configs"

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"sort"
	"strings"
)

// Default names the config that runs when none is given.
const Default = "archive"

// The configs, and below parts what several of them have in common: ${lenscol:parts/otlp} stands for the part's text.
//
//go:embed *.yaml parts/*.yaml
var files embed.FS

// Names lists the embedded configs in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // An embedded folder can always be read.
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	sort.Strings(names)
	return names
}

// Read returns the text of the embedded config of that name, or of a part: parts/NAME. For an unknown name the error lists the known ones.
func Read(name string) ([]byte, error) {
	text, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no embedded config %q, there are: %s", name, strings.Join(Names(), ", "))
	}
	return text, nil
}

// Summary is the first line of a config's head comment: what the config is for.
func Summary(text []byte) string {
	scanner := bufio.NewScanner(bytes.NewReader(text))
	if !scanner.Scan() {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(scanner.Text(), "#"))
}
