// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// testFiles are the parsed _test.go files of the tree, by folder.
func testFiles(t *testing.T) map[string][]*ast.File {
	t.Helper()
	files := map[string][]*ast.File{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (name == "build" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			dir, err := filepath.Rel(root, filepath.Dir(path))
			require.NoError(t, err)
			files[filepath.ToSlash(dir)] = append(files[filepath.ToSlash(dir)], file)
		}
		return nil
	}))
	require.NotEmpty(t, files)
	return files
}

// function is a function of a folder's tests, nil where there is none.
func function(files []*ast.File, name string) *ast.FuncDecl {
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == name && f.Recv == nil {
				return f
			}
		}
	}
	return nil
}

// Every answer of docs/security.md names a test that there is, and where it names a case of one, the case.
func TestSecurityNamesTests(t *testing.T) {
	files := testFiles(t)
	text, err := os.ReadFile(filepath.Join(folder, "security.md"))
	require.NoError(t, err)
	name := regexp.MustCompile("`([a-z0-9/]+) ((?:Test|Fuzz)[A-Za-z0-9_]+)(?:/([a-z-]+))?`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		names := name.FindAllStringSubmatch(line, -1)
		for _, match := range names {
			require.NotNil(t, function(files[match[1]], match[2]), "there is no %s in %s", match[2], match[1])
			if match[3] != "" {
				require.True(t, says(files[match[1]], `"`+match[3]+`"`), "%s of %s has no case %s", match[2], match[1], match[3])
			}
		}
		if strings.HasPrefix(line, "| ") && !strings.Contains(line, " | at worst | ") {
			require.NotEmpty(t, names, "an answer without a test: %s", line)
			rows++
		}
	}
	require.Greater(t, rows, 30)
}

// says reports whether a literal stands in the files.
func says(files []*ast.File, literal string) (found bool) {
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			found = found || ok && lit.Value == literal
			return !found
		})
	}
	return found
}

// A fuzz target begins with inputs that are committed, which `go test` runs without -fuzz: by f.Add, itself or in a function that it
// gives its f to, or in testdata/fuzz.
func TestFuzzTargetsHaveSeeds(t *testing.T) {
	targets := 0
	for dir, files := range testFiles(t) {
		for _, file := range files {
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok || !strings.HasPrefix(f.Name.Name, "Fuzz") || f.Recv != nil {
					continue
				}
				targets++
				kept, err := filepath.Glob(filepath.Join(root, dir, "testdata", "fuzz", f.Name.Name, "*"))
				require.NoError(t, err)
				require.True(t, len(kept) > 0 || adds(files, f, 3), "%s in %s has no seeds", f.Name.Name, dir)
			}
		}
	}
	require.Greater(t, targets, 30)
}

// adds reports whether a function calls Add of its first argument of a type of package testing, or gives that to one that does.
func adds(files []*ast.File, f *ast.FuncDecl, depth int) (found bool) {
	if f == nil || f.Body == nil || depth == 0 {
		return false
	}
	arguments := map[string]bool{}
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			arguments[name.Name] = true
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return !found
		}
		switch callee := call.Fun.(type) {
		case *ast.SelectorExpr:
			receiver, ok := callee.X.(*ast.Ident)
			found = found || ok && callee.Sel.Name == "Add" && arguments[receiver.Name]
		case *ast.Ident:
			for _, arg := range call.Args {
				if given, ok := arg.(*ast.Ident); ok && arguments[given.Name] {
					found = found || adds(files, function(files, callee.Name), depth-1)
				}
			}
		}
		return !found
	})
	return found
}
