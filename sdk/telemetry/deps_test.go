// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write README.md's table of modules")

const modulePath = "github.com/lenscol/lenscol/sdk"

// A library that instruments itself with package lens takes OpenTelemetry's API along, and nothing that exports.
func TestLensNeedsNoSDK(t *testing.T) {
	for _, pkg := range strings.Fields(goTool(t, "list", "-deps", modulePath)) {
		require.NotRegexp(t, `^go\.opentelemetry\.io/(otel/(sdk|exporters)|proto|contrib)\b|^google\.golang\.org/|/sdk/telemetry`, pkg)
	}
}

// README.md lists the module's direct dependencies, and which packages need each.
func TestReadmeListsDependencies(t *testing.T) {
	want := dependencies(t)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	table := regexp.MustCompile(`(?s)\| module \| needed by \|\n\|---\|---\|\n(?:\|[^\n]*\n)*`)
	if *update {
		require.NoError(t, os.WriteFile("../README.md", table.ReplaceAll(readme, []byte(want)), 0o644))
		return
	}
	require.Equal(t, want, string(table.Find(readme)), "go test ./telemetry -run Readme -update writes it")
}

// dependencies is the table: a row for each module that go.mod requires directly.
func dependencies(t *testing.T) string {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(goTool(t, "mod", "edit", "-json", "../go.mod")), &mod))
	shipped := map[string]bool{} // packages that are not for tests alone: those that others can import, and what these import
	exported := strings.Fields(goTool(t, "list", modulePath+"/..."))
	exported = slices.DeleteFunc(exported, func(pkg string) bool { return strings.Contains(pkg, "/internal") })
	for _, pkg := range strings.Fields(goTool(t, append([]string{"list", "-deps"}, exported...)...)) {
		shipped[pkg] = true
	}
	users := map[string]map[string]bool{} // packages by module
	for _, r := range mod.Require {
		if !r.Indirect {
			users[r.Path] = map[string]bool{}
		}
	}
	const format = `{{.ImportPath}} {{join .Imports ","}} {{join .TestImports ","}},{{join .XTestImports ","}}`
	for line := range strings.Lines(goTool(t, "list", "-f", format, modulePath+"/...")) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		code, tests, _ := strings.Cut(imports, " ")
		if !shipped[pkg] {
			code, tests = "", imports
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(pkg, modulePath), "/"), "/internal")
		switch {
		case strings.HasPrefix(name, "examples/"):
			continue
		case name == "":
			name = "lens"
		}
		name = "`" + name + "`"
		for module := range modulesOf(code, users) {
			users[module][name] = true
		}
		for module := range modulesOf(tests, users) {
			users[module]["tests"] = true
		}
	}
	rows := "| module | needed by |\n|---|---|\n"
	for _, module := range slices.Sorted(maps.Keys(users)) {
		names := slices.Sorted(maps.Keys(users[module]))
		if len(names) > 1 {
			names = slices.DeleteFunc(names, func(name string) bool { return name == "tests" })
		}
		rows += fmt.Sprintf("| %s | %s |\n", module, strings.Join(names, ", "))
	}
	return rows
}

// modulesOf are the modules, of those that users knows, that a list of imports is from.
func modulesOf(imports string, users map[string]map[string]bool) map[string]bool {
	modules := map[string]bool{}
	for path := range strings.FieldsFuncSeq(imports, func(r rune) bool { return r == ',' || r == ' ' }) {
		longest := ""
		for module := range users {
			if (path == module || strings.HasPrefix(path, module+"/")) && len(module) > len(longest) {
				longest = module
			}
		}
		if longest != "" {
			modules[longest] = true
		}
	}
	return modules
}

func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %s", strings.Join(args, " "))
	return string(out)
}
