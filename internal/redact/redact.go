// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package redact takes secrets and personal text out of telemetry: the values of some keys, and what looks like a token
// in any text.
//
// A text is scanned once for all patterns: for pairs of bytes that stand in a literal that one of them needs. Only the
// patterns whose literal is there run as regular expressions.
package redact // import "github.com/lenscol/lenscol/internal/redact"

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// Redacted stands where a secret was.
const Redacted = "[REDACTED]"

// What becomes of a secret.
const (
	ActionReplace = "replace"
	ActionHash    = "hash"
)

// Config says what is redacted.
type Config struct {
	// Keys are attribute keys, exact, whose text is redacted as a whole, in lists and maps below them too; numbers and
	// booleans stay. Default: NeMo Lens's.
	Keys []string `mapstructure:"keys"`
	// Patterns are names of ready patterns (wandb, huggingface, openai, aws, github, email) and regular expressions
	// (RE2). Of a match, the group named secret is redacted, or all of it where there is no such group. Default: none.
	Patterns []string `mapstructure:"patterns"`
	// Action is replace (default: [REDACTED] stands where the secret was) or hash ([hmac:] and 16 hex digits that are the
	// same for the same secret).
	Action string `mapstructure:"action"`
	// HashKey is the key of the hash, at least 16 bytes; whoever knows it can try out values.
	HashKey configopaque.String `mapstructure:"hash_key"`
}

// DefaultConfig redacts what NeMo Lens does.
func DefaultConfig() Config { return Config{Keys: semconv.RedactedKeys(), Action: ActionReplace} }

// Validate names the key of every setting that cannot be.
func (c *Config) Validate() error {
	_, err := New(*c)
	return err
}

// Redactor redacts. It is safe for concurrent use.
type Redactor struct {
	keys     map[string]struct{}
	keySizes uint64 // bit len(key) & 63 is set for every key
	scanner  scanner
	labels   []string
	hashKey  []byte // nil: replace
}

// pattern is one regular expression; several may stand under one label.
type pattern struct {
	re     *regexp.Regexp
	secret int // group that is the secret, 0: all of it
	label  int
}

// New makes the Redactor of a config. Its errors name the key.
func New(cfg Config) (*Redactor, error) {
	r := &Redactor{keys: make(map[string]struct{}, len(cfg.Keys)), labels: []string{"key", "depth"}}
	var errs []error
	for _, key := range cfg.Keys {
		r.addKey(key)
	}
	var patterns []pattern
	var literals [][]string
	for i, text := range cfg.Patterns {
		if ready, ok := readyPatterns[text]; ok {
			if slices.Contains(cfg.Patterns[:i], text) {
				continue
			}
			for _, key := range ready.keys {
				r.addKey(key)
			}
			for _, e := range ready.expressions {
				patterns = append(patterns, newPattern(regexp.MustCompile(e.re), len(r.labels)))
				literals = append(literals, e.literals)
			}
			r.labels = append(r.labels, text)
			continue
		}
		if isWord(text) {
			errs = append(errs, fmt.Errorf("patterns: %q is no ready pattern: must be one of %s, or a regular expression", text, strings.Join(Ready(), ", ")))
			continue
		}
		re, err := regexp.Compile(text)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("patterns: %q: %w", text, err))
			continue
		case re.MatchString(""):
			errs = append(errs, fmt.Errorf("patterns: %q matches the empty text, it must need at least one character", text))
			continue
		}
		patterns = append(patterns, newPattern(re, len(r.labels)))
		literals = append(literals, required(text))
		r.labels = append(r.labels, fmt.Sprintf("patterns[%d]", i))
	}
	if len(patterns) > maxPatterns {
		errs = append(errs, fmt.Errorf("patterns: %d regular expressions, there can be %d", len(patterns), maxPatterns))
	} else {
		r.scanner = newScanner(patterns, literals)
	}
	switch cfg.Action {
	case ActionReplace:
		if cfg.HashKey != "" {
			errs = append(errs, errors.New("hash_key: is of use with action hash only"))
		}
	case ActionHash:
		if r.hashKey = []byte(cfg.HashKey); len(r.hashKey) < 16 {
			errs = append(errs, errors.New("hash_key: action hash needs one of at least 16 bytes, such as ${env:LENSCOL_HASH_KEY}: without it, a hash is soon guessed"))
		}
	default:
		errs = append(errs, fmt.Errorf("action: %q must be %s or %s", cfg.Action, ActionReplace, ActionHash))
	}
	return r, errors.Join(errs...)
}

func newPattern(re *regexp.Regexp, label int) pattern {
	return pattern{re: re, secret: max(re.SubexpIndex("secret"), 0), label: label}
}

func (r *Redactor) addKey(key string) {
	r.keys[key] = struct{}{}
	r.keySizes |= 1 << (len(key) & 63)
}

// isWord reports whether text could be the name of a ready pattern.
func isWord(text string) bool {
	return strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// isKey reports whether the text under key is a secret as a whole.
func (r *Redactor) isKey(key string) bool {
	if r.keySizes&(1<<(len(key)&63)) == 0 {
		return false
	}
	_, ok := r.keys[key]
	return ok
}

// Labels names what Counts counts, in its order: key, depth, then the patterns.
func (r *Redactor) Labels() []string { return r.labels }

// Counts is how many values were redacted, by label.
type Counts []int64

const (
	byKey   = 0
	byDepth = 1
)

// NewCounts are counts of zero.
func (r *Redactor) NewCounts() Counts { return make(Counts, len(r.labels)) }

// Text redacts what the patterns find in s, and reports whether there was anything.
func (r *Redactor) Text(s string, counts Counts) (string, bool) {
	found := r.scanner.scan(s)
	if found == 0 {
		return s, false
	}
	changed := false
	for i := range r.scanner.patterns {
		if found&(1<<i) == 0 {
			continue
		}
		if p := &r.scanner.patterns[i]; p.re.MatchString(s) {
			s, changed = r.replace(p, s), true
			counts[p.label]++
		}
	}
	return s, changed
}

func (r *Redactor) replace(p *pattern, s string) string {
	var out strings.Builder
	end := 0
	for _, at := range p.re.FindAllStringSubmatchIndex(s, -1) {
		from, to := at[2*p.secret], at[2*p.secret+1]
		if from < 0 { // the group took no part in the match
			from, to = at[0], at[1]
		}
		out.WriteString(s[end:from])
		out.WriteString(r.mark(s[from:to]))
		end = to
	}
	out.WriteString(s[end:])
	return out.String()
}

// mark is what stands for a secret.
func (r *Redactor) mark(secret string) string {
	if r.hashKey == nil {
		return Redacted
	}
	mac := hmac.New(sha256.New, r.hashKey)
	mac.Write([]byte(secret))
	return "[hmac:" + hex.EncodeToString(mac.Sum(nil)[:8]) + "]"
}
