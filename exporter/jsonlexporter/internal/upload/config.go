// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package upload // import "github.com/lenscol/lenscol/exporter/jsonlexporter/internal/upload"

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
)

// Config says where closed files of an archive go.
type Config struct {
	// URL names the store: `s3://bucket/prefix`, `gs://bucket/prefix`, `azblob://container/prefix`, or `file:///folder` on a
	// shared file system. An object's name is the prefix and the file's path below the archive's root, so hosts whose files
	// have the same paths need a prefix each. The query is the driver's, like `?region=eu-west-1`
	// (https://pkg.go.dev/gocloud.dev/blob). Credentials come from where the store's own tools take them.
	URL URL `mapstructure:"url"`

	// DeleteAfter deletes a file once it is in the store and was verified there. Default false.
	DeleteAfter bool `mapstructure:"delete_after"`

	// Concurrency is how many files are uploaded at a time; each takes up to about 48 MiB of memory. Default 2.
	Concurrency int `mapstructure:"concurrency"`

	// Timeout is the longest time in which an upload makes no progress; it is then tried again. Default 5m.
	Timeout time.Duration `mapstructure:"timeout"`
}

// URL is the address of a store, which may hold a secret: as configopaque.String, but an empty one shows that it is empty, so
// that a printed config without upload can be loaded again.
type URL string

var (
	_ confmap.Validator = (*Config)(nil)
	_ fmt.GoStringer    = URL("")
)

func (u URL) String() string {
	if u == "" {
		return ""
	}
	return configopaque.String(u).String()
}

// GoString hides the address from %#v.
func (u URL) GoString() string { return fmt.Sprintf("%q", u.String()) }

// MarshalText hides the address from printed configs.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// NewDefaultConfig returns the defaults, which lack a URL.
func NewDefaultConfig() Config { return Config{Concurrency: 2, Timeout: 5 * time.Minute} }

// Validate checks what can be checked without the store. Without a URL nothing is uploaded, so nothing else may be set.
func (cfg *Config) Validate() error {
	if *cfg == NewDefaultConfig() {
		return nil
	}
	_, err := parseStore(string(cfg.URL))
	errs := []error{err}
	if cfg.Concurrency < 1 {
		errs = append(errs, fmt.Errorf("concurrency: must be at least 1, is %d", cfg.Concurrency))
	}
	if cfg.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout: must be greater than 0, is %s; write it with a unit, like 5m", cfg.Timeout))
	}
	return errors.Join(errs...)
}

// store is a parsed URL.
type store struct {
	url    *url.URL // as its driver opens it: without a prefix
	prefix string   // of every object's name; empty or ends in /
	name   string   // for people: the URL without its query
}

const exampleURL = "write it like s3://bucket/prefix?region=eu-west-1, gs://bucket/prefix, azblob://container/prefix or file:///folder"

// parseStore reads a URL. Its errors show no more of it than scheme, bucket and path: people put secrets into the rest.
func parseStore(raw string) (*store, error) {
	if raw == "" {
		return nil, errors.New("url: is empty; " + exampleURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("url: is not a URL; " + exampleURL) // url.Parse's error quotes all of it.
	}
	s := &store{url: u, name: u.Scheme + "://" + u.Host + u.Path}
	if u.Opaque != "" {
		return nil, errors.New("url: lacks the // after its scheme; " + exampleURL)
	}
	if u.User != nil {
		return nil, fmt.Errorf("url: %q holds a user or a password; credentials come from the environment, a profile or the machine's role", s.name)
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("url: %q goes on with a #; write %%23 where it belongs to the path", s.name)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("url: the query of %q cannot be read; write it like ?region=eu-west-1&use_path_style=true", s.name)
	}
	for _, key := range []string{"prefix", "key"} {
		if query.Has(key) {
			return nil, fmt.Errorf("url: %q has the query parameter %q; write the prefix as its path, like s3://bucket/prefix", s.name, key)
		}
	}
	bucket := *u
	s.url = &bucket
	switch u.Scheme {
	case "s3", "gs", "azblob":
		if u.Host == "" {
			return nil, fmt.Errorf("url: %q names no bucket; %s", s.name, exampleURL)
		}
		s.prefix = strings.Trim(u.Path, "/")
		if s.prefix != "" && !fs.ValidPath(s.prefix) {
			return nil, fmt.Errorf("url: the path of %q has an empty part, . or ..; write the prefix without", s.name)
		}
		if s.prefix != "" {
			s.prefix += "/"
		}
		bucket.Path, bucket.RawPath = "", ""
	case "file":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return nil, fmt.Errorf("url: %q is not an absolute path; write it with three slashes, like file:///mnt/archive", s.name)
		}
		// Unfinished files stand beside the others, since a rename cannot leave a file system, and nothing else does.
		query.Set("no_tmp_dir", "true")
		query.Set("metadata", "skip")
		bucket.RawQuery = query.Encode()
	default:
		return nil, fmt.Errorf("url: %q is not a scheme of a store; %s", u.Scheme, exampleURL)
	}
	return s, nil
}

// identity tells stores apart: what was uploaded to one is not in another. Parameters that say only how a store is
// reached are no part of it.
func (s *store) identity() string {
	id := s.name
	for _, key := range []string{"endpoint", "storage_account", "domain"} {
		id += "\n" + s.url.Query().Get(key)
	}
	return id
}

// shown are the query parameters whose values may stand in errors and logs.
var shown = []string{"region", "endpoint", "domain", "protocol", "storage_account", "profile", "no_tmp_dir", "metadata"}

// clean wraps an error of the store, or of its driver, so that its text holds nothing secret of the URL, nor a signature of
// a request, and is one line of bounded length.
func (s *store) clean(err error) error {
	if err == nil {
		return nil
	}
	text := queries.ReplaceAllString(err.Error(), "?…")
	for key, values := range s.url.Query() {
		for _, v := range values {
			if len(v) >= minSecret && !slices.Contains(shown, key) {
				text = strings.ReplaceAll(text, v, "…")
			}
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxErrorText {
		text = string(r[:maxErrorText]) + "…"
	}
	return &storeError{text: text, err: err}
}

const (
	maxErrorText = 500 // runes
	minSecret    = 6   // bytes; what is shorter is a switch, and stands in other words too
)

var queries = regexp.MustCompile(`\?[^\s"']+`)

// storeError has a clean text; what it wraps is for errors.Is and errors.As alone.
type storeError struct {
	text string
	err  error
}

func (e *storeError) Error() string { return e.text }
func (e *storeError) Unwrap() error { return e.err }
