// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lenscol/lenscol/internal/identity"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// pathTemplate is the `path` of a config, split at its placeholders. What a sender says ends up in file names here, so
// there is one gate: every value that a resource gives passes appendName, which leaves nothing that could name another folder,
// and the files are opened beneath root besides (os.Root).
type pathTemplate struct {
	root  string // the folder before the first placeholder; relative as in the config
	parts []templatePart
	ext   string         // what compression adds
	depth int            // folders below root
	match *regexp.Regexp // the paths below root that it can render, with any compression; its groups are dates

	foldsCase bool // the file system does not tell letters by their case
}

type templatePart struct {
	literal string
	field   string // what stands between the braces, "" for a literal
	attr    string // the key of {attr:key}
}

// Values that stand in for what a resource does not say, and for those beyond max_partitions.
const (
	unknownValue  = "unknown"
	overflowValue = "overflow"
)

const (
	namePattern   = `[A-Za-z0-9_+=@,-][A-Za-z0-9._+=@,-]*`
	datePattern   = `(\d{4}-\d{2}-\d{2})`
	dateFormat    = "2006-01-02"
	maxNameBytes  = 64  // of one value
	maxComponent  = 200 // of one folder or file name; the time of a rotation and .lock come to it
	nameHashBytes = 4
)

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// parsePath splits a path. Its error names the placeholder that is not known.
func parsePath(path string, c Compression) (*pathTemplate, error) {
	below := strings.TrimSuffix(filepath.Clean(path), c.extension())
	fixed := len(below)
	if first := placeholder.FindStringIndex(below); first != nil {
		fixed = first[0]
	}
	folder := strings.LastIndexByte(below[:fixed], filepath.Separator) + 1
	t := &pathTemplate{root: filepath.Clean(below[:folder] + "."), ext: c.extension()}
	below = below[folder:]
	t.depth = strings.Count(below, string(filepath.Separator))
	pattern := strings.Builder{}
	pattern.WriteByte('^')
	add := func(p templatePart) {
		t.parts = append(t.parts, p)
		switch p.field {
		case "":
			pattern.WriteString(regexp.QuoteMeta(p.literal))
		case "date":
			pattern.WriteString(datePattern)
		case "signal":
			pattern.WriteString("(?:traces|metrics|logs)")
		default:
			pattern.WriteString(namePattern)
		}
	}
	for below != "" {
		at := placeholder.FindStringIndex(below)
		if at == nil {
			add(templatePart{literal: below})
			break
		}
		if at[0] > 0 {
			add(templatePart{literal: below[:at[0]]})
		}
		field := below[at[0]+1 : at[1]-1]
		p := templatePart{field: field}
		if key, ok := strings.CutPrefix(field, "attr:"); ok && key != "" {
			p = templatePart{field: "attr", attr: key}
		} else if !slices.Contains([]string{"run", "rank", "service", "host", "signal", "date"}, field) {
			return nil, fmt.Errorf("path: %q has the unknown placeholder {%s}; there are {signal}, {run}, {rank}, {service}, {host}, {date} and {attr:KEY}", path, field)
		}
		add(p)
		below = below[at[1]:]
	}
	pattern.WriteString(`(?:\.gz|\.zst)?$`)
	t.match = regexp.MustCompile(pattern.String())
	return t, nil
}

// partitioned tells whether a path depends on what is written, beyond its signal.
func (t *pathTemplate) partitioned() bool {
	return slices.ContainsFunc(t.parts, func(p templatePart) bool { return p.field != "" && p.field != "signal" })
}

// rendered is a path below the root, and its key: the path with the date left open.
type rendered struct {
	path, key []byte
	missing   int // values that the resource does not say
}

// render appends the path for one resource to r, whose slices are reused.
func (t *pathTemplate) render(r *rendered, signal string, attrs pcommon.Map, now time.Time) {
	r.path, r.key, r.missing = r.path[:0], r.key[:0], 0
	for _, p := range t.parts {
		switch p.field {
		case "":
			r.path = append(r.path, p.literal...)
			r.key = append(r.key, p.literal...)
		case "date":
			r.path = now.UTC().AppendFormat(r.path, dateFormat)
			r.key = append(r.key, "{date}"...)
		case "signal":
			r.path = append(r.path, signal...)
			r.key = append(r.key, signal...)
		default:
			start := len(r.path)
			value := p.value(attrs)
			if value == "" {
				value = unknownValue
				r.missing++
			}
			r.path = appendName(r.path, value, t.foldsCase)
			r.key = append(r.key, r.path[start:]...)
		}
	}
	r.path = append(ownName(boundComponents(r.path)), t.ext...)
}

// overflow is the path for all resources beyond the bound of partitions.
func (t *pathTemplate) overflow(signal string, now time.Time) string {
	var b strings.Builder
	for _, p := range t.parts {
		switch p.field {
		case "":
			b.WriteString(p.literal)
		case "date":
			b.WriteString(now.UTC().Format(dateFormat))
		case "signal":
			b.WriteString(signal)
		default:
			b.WriteString(overflowValue)
		}
	}
	return b.String() + t.ext
}

// keyOf is the key of an active path that the template rendered, false for any other.
func (t *pathTemplate) keyOf(path string) (string, bool) {
	path = strings.TrimSuffix(strings.TrimSuffix(path, gzipExtension), zstdExtension)
	groups := t.match.FindStringSubmatchIndex(path)
	if groups == nil || strings.HasSuffix(path, lockExtension) {
		return "", false
	}
	for i := len(groups) - 2; i >= 2; i -= 2 {
		path = path[:groups[i]] + "{date}" + path[groups[i+1]:]
	}
	return path, true
}

func (p templatePart) value(attrs pcommon.Map) string {
	switch p.field {
	case "run":
		return identity.Run(attrs)
	case "rank":
		if rank, ok := identity.Rank(attrs); ok {
			return strconv.Itoa(rank)
		}
		return ""
	case "service":
		return identity.Service(attrs)
	case "host":
		p.attr = semconv.HostName
	}
	v, ok := attrs.Get(p.attr)
	if !ok {
		return ""
	}
	switch v.Type() {
	case pcommon.ValueTypeStr, pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		return v.AsString()
	default: // A list or a map names nothing, and may be nested without end.
		return ""
	}
}

// appendName writes a value as a part of a file name. What it has to change it marks with a hash of the whole value, so that
// two values share a name only where they are equal. Where case is folded, it changes upper case.
func appendName(b []byte, value string, foldsCase bool) []byte {
	start := len(b)
	for i := 0; i < len(value) && len(b)-start < maxNameBytes; i++ {
		c := value[i]
		switch {
		case foldsCase && 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_+=@,-", c) >= 0:
		case c == '.' && i > 0:
		default:
			c = '_'
		}
		b = append(b, c)
	}
	if string(b[start:]) == value && !reserved(value) && !hashed.MatchString(value) {
		return b
	}
	return appendHash(b, value)
}

// hashed is how a value ends that appendHash had to mark, so none that is written as it stands may.
var hashed = regexp.MustCompile(`-[0-9a-f]{8}$`)

func appendHash(b []byte, value string) []byte {
	sum := sha256.Sum256([]byte(value))
	return hex.AppendEncode(append(b, '-'), sum[:nameHashBytes])
}

// reserved tells the names that mean a device on some systems, with any extension.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && stem[3] >= '0' && stem[3] <= '9'
}

// ownName keeps a sender's values from spelling a name that means something here: a lock, or a rotated file.
func ownName(path []byte) []byte {
	text := string(path)
	if _, _, backup := splitBackup(text); !backup && !strings.HasSuffix(text, lockExtension) {
		return path
	}
	ext := extension(text)
	if ext == lockExtension {
		ext = ""
	}
	return append(appendHash(path[:len(path)-len(ext)], text), ext...)
}

// boundComponents shortens a name that several long values made too long for a file system; the file's extension stays.
func boundComponents(path []byte) []byte {
	long := false
	for rest := path; len(rest) > 0; {
		end := slices.Index(rest, filepath.Separator)
		if end < 0 {
			end = len(rest)
		}
		long = long || end > maxComponent
		rest = rest[min(end+1, len(rest)):]
	}
	if !long {
		return path
	}
	components := strings.Split(string(path), string(filepath.Separator))
	for i, c := range components {
		if len(c) > maxComponent {
			ext := extension(c)
			components[i] = string(appendHash([]byte(c[:maxComponent-2*nameHashBytes-1-len(ext)]), c)) + ext
		}
	}
	return []byte(strings.Join(components, string(filepath.Separator)))
}

// extension is the end of a file's name that stays at the end when the file is rotated: `.jsonl`, `.jsonl.zst`.
func extension(name string) string {
	name = filepath.Base(name)
	ext := filepath.Ext(name)
	if ext == gzipExtension || ext == zstdExtension {
		ext = filepath.Ext(strings.TrimSuffix(name, ext)) + ext
	}
	if ext == name || !extensionPattern.MatchString(ext) {
		return ""
	}
	return ext
}

var extensionPattern = regexp.MustCompile(`^(\.[A-Za-z][A-Za-z0-9]{0,9}){1,2}$`)
