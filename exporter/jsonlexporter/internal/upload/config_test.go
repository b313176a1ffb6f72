// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

const secret = "hunter2hunter2"

func TestConfigValidate(t *testing.T) {
	for name, test := range map[string]struct {
		url   string
		alter func(*Config)
		want  string // part of the error; empty: valid
	}{
		"s3":                    {url: "s3://bucket"},
		"s3 with prefix, query": {url: "s3://bucket/runs/host7/?region=eu-west-1&use_path_style=true"},
		"gs":                    {url: "gs://bucket/runs"},
		"azblob":                {url: "azblob://container/runs?storage_account=lens"},
		"file":                  {url: "file:///mnt/archive"},

		"off":              {},
		"no url":           {alter: func(c *Config) { c.DeleteAfter = true }, want: "url: is empty; write it like s3://"},
		"memory":           {url: "mem://", want: `url: "mem" is not a scheme of a store; write it like s3://`},
		"web":              {url: "https://bucket.s3.amazonaws.com/x?X-Amz-Signature=" + secret, want: `url: "https" is not a scheme of a store`},
		"no scheme":        {url: "bucket/runs", want: `url: "" is not a scheme of a store`},
		"no slashes":       {url: "s3:bucket", want: "url: lacks the // after its scheme; write it like"},
		"not a URL":        {url: "s3://bucket/%zz?token=" + secret, want: "url: is not a URL; write it like"},
		"no bucket":        {url: "gs:///runs", want: `url: "gs:///runs" names no bucket; write it like`},
		"user":             {url: "s3://AKIA:" + secret + "@bucket", want: `url: "s3://bucket" holds a user or a password; credentials come from`},
		"fragment":         {url: "s3://bucket/run#" + secret, want: `url: "s3://bucket/run" goes on with a #; write %23`},
		"bad query":        {url: "s3://bucket?token=" + secret + ";b", want: `url: the query of "s3://bucket" cannot be read; write it like`},
		"prefix as query":  {url: "s3://bucket?prefix=runs", want: `has the query parameter "prefix"; write the prefix as its path`},
		"prefix going up":  {url: "s3://bucket/a/../b", want: `url: the path of "s3://bucket/a/../b" has an empty part, . or ..; write`},
		"prefix with hole": {url: "s3://bucket/a//b", want: "has an empty part"},
		"relative file":    {url: "file://archive/x", want: `url: "file://archive/x" is not an absolute path; write it with three slashes`},

		"no concurrency": {url: "s3://b", alter: func(c *Config) { c.Concurrency = 0 }, want: "concurrency: must be at least 1, is 0"},
		"no timeout":     {url: "s3://b", alter: func(c *Config) { c.Timeout = -time.Second }, want: "timeout: must be greater than 0, is -1s; write it with a unit"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := NewDefaultConfig()
			cfg.URL = URL(test.url)
			if test.alter != nil {
				test.alter(&cfg)
			}
			err := cfg.Validate()
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func TestNewErrorsNameURLAndHideItsQuery(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	archive := t.TempDir()
	for name, test := range map[string]struct{ url, want string }{
		"unknown parameter":     {"s3://bucket?region=eu-west-1&secret_key=" + secret, "url: open s3://bucket: "},
		"value of parameter":    {"s3://bucket?region=eu-west-1&use_path_style=" + secret, "use_path_style"},
		"azure without account": {"azblob://container", "url: open azblob://container: azureblob: Options.AccountName is required"},
		"azure with secret":     {"azblob://container?sig=" + secret, `url: open azblob://container: unknown query parameter "sig"`},
		"missing folder":        {"file:///no/such/folder?x=" + secret, "no such file or directory; create it"},
		"the archive":           {"file://" + archive, "it is in the archive " + archive + " itself; name another folder"},
		"below the archive":     {"file://" + mkdir(t, archive, "copy"), "name another folder"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := NewDefaultConfig()
			cfg.URL = URL(test.url)
			_, err := New(cfg, Settings{Root: archive, Logger: zap.NewNop()})
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func TestGoogleWithoutCredentialsDoesNotStart(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	cfg := NewDefaultConfig()
	cfg.URL = "gs://bucket"
	_, err := New(cfg, Settings{Root: t.TempDir(), Logger: zap.NewNop()})
	require.ErrorContains(t, err, "url: open gs://bucket: ")
}

func TestStoreErrorsAreClean(t *testing.T) {
	s, err := parseStore("s3://bucket/p?region=eu-west-1&token=" + secret)
	require.NoError(t, err)
	cause := errors.New("PUT \"https://h/bucket?X-Amz-Signature=abc&x=1\": " + secret + " in\n\teu-west-1 " + strings.Repeat("x", 2000))
	err = s.clean(cause)
	require.ErrorIs(t, err, cause)
	require.Contains(t, err.Error(), `PUT "https://h/bucket?…": … in eu-west-1 xxx`)
	require.Len(t, []rune(err.Error()), maxErrorText+1)
	require.NoError(t, s.clean(nil))
}

func TestStoreIdentity(t *testing.T) {
	of := func(raw string) string {
		s, err := parseStore(raw)
		require.NoError(t, err)
		return newMarkers(s).folder
	}
	base := of("s3://bucket/p?region=eu-west-1")
	require.Equal(t, base, of("s3://bucket/p?region=us-east-1&profile=x"), "how it is reached")
	require.NotEqual(t, base, of("s3://other/p"))
	require.NotEqual(t, base, of("s3://bucket/q"))
	require.NotEqual(t, base, of("gs://bucket/p"))
	require.NotEqual(t, base, of("s3://bucket/p?endpoint=http://127.0.0.1:9000"))
}
