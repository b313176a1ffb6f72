// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the binary from outside: OTLP requests go in over the wire, and the files that it writes are judged
// by the oracle.
package e2e // import "github.com/lenscol/lenscol/test/e2e"

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lenscol/lenscol/test/e2e/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// jsonl is what a test sets of a jsonl exporter, as lines of YAML below its name.
type jsonl struct {
	Name     string // jsonl, or jsonl/second
	Settings []string
}

var configTemplate = template.Must(template.New("").Parse(`
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:${env:LENSCOL_GRPC_PORT}
        max_recv_msg_size_mib: 64
      http:
        endpoint: 127.0.0.1:${env:LENSCOL_HTTP_PORT}
        max_request_body_size: 67108864
exporters:
{{- range . }}
  {{ .Name }}:
    min_free_bytes: 0
{{- range .Settings }}
    {{ . }}
{{- end }}
{{- end }}
service:
  telemetry:
    metrics:
      level: none
    logs:
      sampling:
        enabled: false
  pipelines:
{{- range $signal := $.Signals }}
    {{ $signal }}:
      receivers: [otlp]
      exporters: [{{ range $i, $e := $ }}{{ if $i }}, {{ end }}{{ $e.Name }}{{ end }}]
{{- end }}
`))

// exporters are the exporters of a config; each of the three pipelines has all of them.
type exporters []jsonl

// Signals are the pipelines, and the names of the files.
func (exporters) Signals() []string { return []string{"traces", "metrics", "logs"} }

func (e exporters) yaml() string {
	var b bytes.Buffer
	if err := configTemplate.Execute(&b, e); err != nil {
		panic(err) // The template and its data stand above.
	}
	return b.String()
}

// archive reads the files that the exporter wrote into a folder, each from where it stood the last time. Files are told
// apart by what they are, not by name, so one that was renamed goes on where it was.
type archive struct {
	dir    string
	inline bool
	files  []*archiveFile
}

type archiveFile struct {
	info   fs.FileInfo
	f      *os.File // kept open, so that a file that was removed can still be read
	reader oracle.Reader
}

func newArchive(t *testing.T, dir string) *archive {
	a := &archive{dir: dir}
	t.Cleanup(func() {
		for _, f := range a.files {
			_ = f.f.Close()
		}
	})
	return a
}

// next returns the items that were written since the last call, by signal, in the order of each file. Every file must
// end in a newline and hold nothing but whole lines whose scope and resource stand in it.
func (a *archive) next() (map[string][]oracle.Item, error) {
	if err := a.find(); err != nil {
		return nil, err
	}
	items := map[string][]oracle.Item{}
	for _, f := range a.files {
		piece, err := readOn(f.f)
		if err != nil {
			return nil, err
		}
		got, err := f.reader.Feed(piece)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.f.Name(), err)
		}
		signal := signalOf(f.f.Name())
		items[signal] = append(items[signal], got...)
	}
	return items, nil
}

// find opens the files that are new in the folder.
func (a *archive) find() error {
	paths, err := filesBelow(a.dir)
	if err != nil {
		return err
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // It was renamed since, and is found by its new name the next time.
		} else if err != nil {
			return err
		}
		if a.knows(info) {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if info, err = f.Stat(); err != nil {
			return err
		}
		if a.knows(info) {
			return f.Close()
		}
		a.files = append(a.files, &archiveFile{info: info, f: f, reader: oracle.Reader{Inline: a.inline}})
	}
	return nil
}

func (a *archive) knows(info fs.FileInfo) bool {
	for _, f := range a.files {
		if os.SameFile(f.info, info) {
			return true
		}
	}
	return false
}

// filesBelow lists the files of an archive, in all its folders.
func filesBelow(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), ".jsonl") && !strings.HasSuffix(path, ".lock") {
			paths = append(paths, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // It was removed meanwhile.
		}
		return err
	})
	return paths, err
}

// readOn reads what was appended to a file, decompressed: appended are whole frames alone.
func readOn(f *os.File) ([]byte, error) {
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil || b.Len() == 0 {
		return nil, err
	}
	switch filepath.Ext(f.Name()) {
	case ".gz":
		r, err := gzip.NewReader(&b)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case ".zst":
		r, err := zstd.NewReader(&b)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(r)
	default:
		return b.Bytes(), nil
	}
}

// signalOf is the signal that a file is named after.
func signalOf(path string) string {
	name := filepath.Base(path)
	return name[:strings.IndexAny(name, "-.")]
}

// requireNext is next in a test.
func (a *archive) requireNext(t *testing.T) map[string][]oracle.Item {
	t.Helper()
	items, err := a.next()
	require.NoError(t, err)
	return items
}
