// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func redactor(t testing.TB, patterns ...string) *Redactor {
	cfg := DefaultConfig()
	cfg.Patterns = patterns
	r, err := New(cfg)
	require.NoError(t, err)
	return r
}

func redacted(r *Redactor, s string) string {
	s, _ = r.Text(s, r.NewCounts())
	return s
}

// The tokens are made up: the forms are those that the services give out.
const (
	hex40  = "0123456789abcdef0123456789abcdef01234567"
	alnum  = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6hJ9kL2nP5rS8tU1wX4yZ7bC0eF3gH6jK9mN2pQ5sT8vW1xY4zA7cD0fG3hJ6kL9nP"
	redact = Redacted
)

func TestReadyPatternsFind(t *testing.T) {
	tests := []struct{ pattern, name, text, want string }{
		{"wandb", "new key", "key wandb_v1_" + alnum[:77] + ", ok", "key " + redact + ", ok"},
		{"wandb", "old key in an environment", "WANDB_API_KEY=" + hex40 + " python train.py", "WANDB_API_KEY=" + redact + " python train.py"},
		{"wandb", "old key in JSON", `{"wandb-api-key": "` + hex40 + `"}`, `{"wandb-api-key": "` + redact + `"}`},
		{"wandb", "netrc", "machine api.wandb.ai\n  login user\n  password " + hex40, "machine api.wandb.ai\n  login user\n  password " + redact},
		{"wandb", "self-managed", "local-" + hex40, redact},
		{"huggingface", "user token", "HF_TOKEN=hf_" + alnum[:34], "HF_TOKEN=" + redact},
		{"openai", "project key", "Bearer sk-proj-" + alnum[:74] + "_-x", "Bearer " + redact},
		{"openai", "old key", "sk-" + alnum[:20] + "T3BlbkFJ" + alnum[20:40], redact},
		{"aws", "access key id", "AKIAIOSFODNN7EXAMPLE in us-east-1", redact + " in us-east-1"},
		{"aws", "secret key", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = " + redact},
		{"aws", "secret key with dashes", "aws-secret-access-key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY region", "aws-secret-access-key=" + redact + " region"},
		{"aws", "secret key in JSON", `{"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}`, `{"SecretAccessKey": "` + redact + `"}`},
		{"github", "personal token", "https://x:ghp_" + alnum[:36] + "@github.com/a/b", "https://x:" + redact + "@github.com/a/b"},
		{"github", "fine-grained token", "github_pat_" + alnum[:22] + "_" + alnum[:59], redact},
		{"email", "address", "mail alice.b@lab.example.com.", "mail " + redact + "."},
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" "+tt.name, func(t *testing.T) {
			r := redactor(t, tt.pattern)
			counts := r.NewCounts()
			got, found := r.Text(tt.text, counts)
			require.True(t, found)
			require.Equal(t, tt.want, got)
			require.Equal(t, []int64{0, 0, 1}, []int64(counts))
			require.Equal(t, []string{"key", "depth", tt.pattern}, r.Labels())
		})
	}
}

func TestReadyPatternsLeaveAlone(t *testing.T) {
	tests := []struct{ pattern, name, text string }{
		{"wandb", "a commit", "commit " + hex40},
		{"wandb", "a commit of a wandb folder", "wandb/run-20261129_173700-k3xq9a2b git=" + hex40},
		{"wandb", "a longer hash", "local-" + hex40 + hex40[:24]},
		{"huggingface", "a function", "hf_hub_download_with_a_long_name_of_34_chars"},
		{"huggingface", "a word that ends alike", "self_" + alnum[:34]},
		{"openai", "a package", "sk-learn-contrib-projects-with-very-long-names-everywhere-in-them"},
		{"openai", "a word that ends alike", "task-" + alnum[:48]},
		{"aws", "a region", "ASIA-PACIFIC-SOUTHEAST-1"},
		{"aws", "a longer word", "XAKIAIOSFODNN7EXAMPLE AKIAIOSFODNN7EXAMPLEX"},
		{"aws", "a secret's name", "secret_access_key_rotation=weekly"},
		{"aws", "a secret's name with dashes", "aws-secret-access-key-rotation=weekly"},
		{"aws", "a longer text behind the name", "aws-secret-access-key=" + alnum[:41]},
		{"aws", "a commit", "commit=" + hex40},
		{"github", "a variable", "ghp_token_of_the_user_that_runs_the_job"},
		{"email", "a host", "alice@gpu-07"},
		{"email", "a version", "model@v1.2"},
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" "+tt.name, func(t *testing.T) {
			r := redactor(t, tt.pattern)
			counts := r.NewCounts()
			got, found := r.Text(tt.text, counts)
			require.False(t, found)
			require.Equal(t, tt.text, got)
			require.Equal(t, r.NewCounts(), counts)
		})
	}
}

// Under keys that name a secret a bare value is one; under their neighbours it is not.
func TestReadyKeys(t *testing.T) {
	tests := []struct {
		pattern, key string
		want         bool
	}{
		{"aws", "AWS_SECRET_ACCESS_KEY", true}, {"aws", "aws_secret_access_key", true}, {"aws", "aws-secret-access-key", true}, {"aws", "SecretAccessKey", true},
		{"aws", "AWS_SECRET_ACCESS_KEY_ROTATION", false}, {"aws", "git.commit", false}, {"aws", "WANDB_API_KEY", false},
		{"wandb", "WANDB_API_KEY", true}, {"wandb", "git.commit", false}, {"wandb", "AWS_SECRET_ACCESS_KEY", false},
	}
	for _, tt := range tests {
		t.Run(tt.pattern+" "+tt.key, func(t *testing.T) {
			r, m := redactor(t, tt.pattern), pcommon.NewMap()
			m.PutStr(tt.key, hex40)
			r.Map(m, r.NewCounts())
			v, _ := m.Get(tt.key)
			require.Equal(t, tt.want, v.Str() == redact)
		})
	}
}

func TestOwnPatterns(t *testing.T) {
	require.Equal(t, "card [REDACTED] and [REDACTED]", redacted(redactor(t, `\b\d{4}-\d{4}\b`), "card 1234-5678 and 4321-8765"))
	require.Equal(t, "pin=[REDACTED];", redacted(redactor(t, `pin=(?P<secret>\d+)`), "pin=123;"))
	require.Equal(t, "[REDACTED] x", redacted(redactor(t, `(?P<secret>a)b|c`), "c x"), "a match without its group")
}

func TestHash(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Action, cfg.HashKey, cfg.Patterns = ActionHash, "0123456789abcdef", []string{"email"}
	r, err := New(cfg)
	require.NoError(t, err)
	one, other := redacted(r, "a@example.com"), redacted(r, "b@example.com")
	require.Regexp(t, `^\[hmac:[0-9a-f]{16}\]$`, one)
	require.Equal(t, one, redacted(r, "a@example.com"))
	require.NotEqual(t, one, other)
	cfg.HashKey = "fedcba9876543210"
	r, err = New(cfg)
	require.NoError(t, err)
	require.NotEqual(t, one, redacted(r, "a@example.com"), "another key, another hash")
}

func TestConfigRefused(t *testing.T) {
	tests := []struct {
		name string
		edit func(*Config)
		want string
	}{
		{"unknown ready pattern", func(c *Config) { c.Patterns = []string{"githb"} }, `patterns: "githb" is no ready pattern: must be one of aws, email, github`},
		{"bad expression", func(c *Config) { c.Patterns = []string{"a(b"} }, `patterns: "a(b": error parsing regexp`},
		{"empty match", func(c *Config) { c.Patterns = []string{`x*`} }, `matches the empty text`},
		{"too many", func(c *Config) { c.Patterns = strings.Split(strings.Repeat("a-b c-d ", 33)[:263], " ") }, "there can be 64"},
		{"action", func(c *Config) { c.Action = "mask" }, `action: "mask" must be replace or hash`},
		{"hash without a key", func(c *Config) { c.Action = "hash"; c.HashKey = "short" }, "hash_key: action hash needs one of at least 16 bytes"},
		{"key without hash", func(c *Config) { c.HashKey = "0123456789abcdef" }, "hash_key: is of use with action hash only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.edit(&cfg)
			require.ErrorContains(t, cfg.Validate(), tt.want)
			require.NotContains(t, cfg.Validate().Error(), "0123456789abcdef")
		})
	}
}

func TestRequired(t *testing.T) {
	tests := []struct {
		expression string
		want       []string
	}{
		{`abc`, []string{"abc"}},
		{`\d+-abc\d+x`, []string{"-abc"}},
		{`(?:foo|ba[rz])\d`, []string{"foo", "ba"}},
		{`(?:foo|\d)`, nil},
		{`\d+`, nil},
		{`(abc)?`, nil},
		{`(?:abc){2,}`, []string{"abc"}},
		{`(?i)token`, []string{"TO"}}, // K is the Kelvin sign, too
		{`(?i)sk`, nil},
		{`[a-z]+@[a-z]+`, []string{"@"}},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) { require.ElementsMatch(t, tt.want, required(tt.expression)) })
	}
}

// Looking for literals first changes nothing: what each expression finds by itself is found.
func FuzzScanFindsWhatTheExpressionsFind(f *testing.F) {
	own := []string{`(?i)token[0-9]`, `@`, `[0-9]{3}`, `x@y|secret-(?:a|b)`, `é+`, `(?i)KEY`}
	r := redactor(f, append(Ready(), own...)...)
	for _, seed := range []string{
		"", "@", "a@b.cc", "TO\u212aEN7", "to\u212aen7", "x@y", "éé", "hf_" + alnum[:34], "\u212aey", "secret-b", "AKIAIOSFODNN7EXAMPLE", "ſk-", "local-" + hex40,
		"WANDB_API_KEY=" + hex40, "ghs_" + alnum[:40], "sk-proj-" + alnum,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := r.scanner.scan(text)
		for i, p := range r.scanner.patterns {
			if p.re.MatchString(text) && found&(1<<i) == 0 {
				t.Errorf("%s matches %q and is not looked for", p.re, text)
			}
		}
	})
}

func TestReadyLiteralsAreNeeded(t *testing.T) {
	for name, ready := range readyPatterns {
		for _, e := range ready.expressions {
			require.NotEmpty(t, e.literals, name)
			require.NotNil(t, regexp.MustCompile(e.re), name)
			for _, literal := range e.literals {
				require.Equal(t, strings.ToLower(literal), literal, name)
			}
		}
	}
}
