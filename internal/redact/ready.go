// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package redact // import "github.com/lenscol/lenscol/internal/redact"

import (
	"maps"
	"slices"
)

// readyPattern finds the tokens of one service.
type readyPattern struct {
	keys        []string // keys under which a token stands that cannot be told from other text
	expressions []expression
}

// expression matches only texts that have one of the literals.
type expression struct {
	re       string
	literals []string
}

// The forms of tokens that their services document or issue. Each is strict: a git commit is not a W&B key.
var readyPatterns = map[string]readyPattern{
	"wandb": {
		// An old key is 40 hex digits, as a commit is: it is one only under such a key, or after such a word.
		keys: []string{"WANDB_API_KEY", "wandb_api_key", "wandb-api-key", "wandb.api_key"},
		expressions: []expression{
			{`\bwandb_v1_[A-Za-z0-9_]{40,}`, []string{"wandb_v1_"}},
			{`(?i)wandb[_.\- ]?api[_.\- ]?key["']?\s*[:=]\s*["']?(?P<secret>(?:local-)?[0-9a-f]{40})\b`, []string{"wandb"}},
			{`(?i)machine\s+\S*wandb\S*\s+login\s+\S+\s+password\s+(?P<secret>(?:local-)?[0-9a-f]{40})\b`, []string{"wandb"}},
			{`\blocal-[0-9a-f]{40}\b`, []string{"local-"}},
		},
	},
	"huggingface": {expressions: []expression{
		{`\bhf_[A-Za-z0-9]{34,40}\b`, []string{"hf_"}},
		{`\bapi_org_[A-Za-z0-9]{34,40}\b`, []string{"api_org_"}},
	}},
	"openai": {expressions: []expression{
		{`\bsk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,}`, []string{"sk-proj-", "sk-svcacct-", "sk-admin-", "sk-none-"}},
		{`\bsk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}\b`, []string{"t3blbkfj"}},
		{`\bsk-[A-Za-z0-9]{48}\b`, []string{"sk-"}},
	}},
	"aws": {
		// A secret key is 40 characters of base64, as much else is: it is one only under such a key, or after such a word.
		keys: []string{"AWS_SECRET_ACCESS_KEY", "aws_secret_access_key", "aws-secret-access-key", "aws.secret_access_key", "SecretAccessKey", "secretAccessKey"},
		expressions: []expression{
			{`\b(?:AKIA|ASIA)[A-Z2-7]{16}\b`, []string{"akia", "asia"}},
			{`(?i)secret[_.\- ]?access[_.\- ]?key["']?\s*[:=]\s*["']?(?P<secret>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)`, []string{"secret"}},
		},
	},
	"github": {expressions: []expression{
		{`\bgh[pousr]_[A-Za-z0-9]{36,251}\b`, []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}},
		{`\bgithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}\b`, []string{"github_pat_"}},
	}},
	"email": {expressions: []expression{
		{`[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b`, []string{"@"}},
	}},
}

// Ready lists the names of the ready patterns.
func Ready() []string { return slices.Sorted(maps.Keys(readyPatterns)) }

// LooksLikeToken reports whether a text has what a ready pattern, other than email, finds.
func LooksLikeToken(text string) bool {
	_, found := Tokens.Text(text, Tokens.NewCounts())
	return found
}

// Tokens redacts what must not be shown: NeMo Lens's keys and all ready patterns but email.
var Tokens = func() *Redactor {
	cfg := DefaultConfig()
	cfg.Patterns = slices.DeleteFunc(Ready(), func(name string) bool { return name == "email" })
	r, err := New(cfg)
	if err != nil {
		panic(err) // The ready patterns are tested.
	}
	return r
}()
