// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/lenscol/lenscol/extension/lenshealth/internal/metadata"
)

func testSettings() extension.Settings {
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = componenttest.NewNopTelemetrySettings()
	return set
}

func TestConfigDefaults(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, componenttest.CheckConfigStruct(cfg))
	require.NoError(t, confmap.Validate(cfg))
	require.Equal(t, "127.0.0.1:13133", cfg.Endpoint)
	require.Equal(t, 10*time.Second, cfg.Window)
}

func TestConfigAllKeys(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/all.yaml")
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	require.Equal(t, "bearertokenauth", cfg.Auth.Get().AuthenticatorID.String())
	require.Equal(t, 30*time.Second, cfg.Window)
	require.True(t, cfg.TLS.HasValue() && cfg.Required && cfg.SDNotify)
}

func TestConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		"endpoint: 0.0.0.0:13133":                             `endpoint: "0.0.0.0:13133" is an address that other machines may reach, so it needs a token: set token or auth, or listen on 127.0.0.1 or unix:PATH`,
		"endpoint: ':13133'":                                  `endpoint: ":13133" is an address that other machines`,
		"endpoint: '[::]:13133'":                              "is an address that other machines",
		"endpoint: 10.0.0.1:13133":                            "is an address that other machines",
		"endpoint: login01:13133":                             "is an address that other machines",
		"endpoint: 127.0.0.1":                                 `endpoint: "127.0.0.1" is neither HOST:PORT nor unix:PATH`,
		"endpoint: 127.0.0.1:health":                          "the port must be a number from 0 to 65535",
		"endpoint: 127.0.0.1:65536":                           "the port must be a number from 0 to 65535",
		"endpoint: 'unix:'":                                   `endpoint: "unix:" has no path`,
		"token: short":                                        "token: has 5 characters, it needs 16 at least",
		`token: "0123456789 abcdef"`:                          "token: has characters that no HTTP header can carry",
		"window: 1s":                                          "window: 1s is not between 2s and 1h0m0s",
		"window: 2h":                                          "window: 2h0m0s is not between",
		"allowed_hosts: ['http://a']":                         `allowed_hosts: "http://a" is not the name of a host`,
		"{token: 0123456789abcdef, auth: {authenticator: a}}": "token and auth are both set",
		"tls: {cert_file: a}":                                 "TLS",
	} {
		t.Run(text, func(t *testing.T) {
			retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
			require.NoError(t, err)
			conf, err := retrieved.AsConf()
			require.NoError(t, err)
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, conf.Unmarshal(cfg))
			err = confmap.Validate(cfg)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "0123456789")
		})
	}
}

func TestConfigGood(t *testing.T) {
	for _, text := range []string{
		"endpoint: localhost:0", "endpoint: '[::1]:13133'", "endpoint: 127.0.0.5:1", "endpoint: unix:/run/health.sock", "endpoint: unix:///run/health.sock",
		"{endpoint: 0.0.0.0:13133, token: 0123456789abcdef}", "{endpoint: ':13133', auth: {authenticator: bearertokenauth}}", "allowed_hosts: [login01.cluster]",
	} {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, conf.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg), text)
	}
}

// docs/health.md is the page of every setting, and of every reason that the schema knows.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "health.md"))
	require.NoError(t, err)
	fields := reflect.TypeFor[Config]()
	for i := range fields.NumField() {
		require.Contains(t, string(page), "| `"+fields.Field(i).Tag.Get("mapstructure")+"` |")
	}
	schema, err := os.ReadFile(filepath.Join("..", "..", "docs", "health.schema.json"))
	require.NoError(t, err)
	codes := regexp.MustCompile(`"code": \{"enum": \[([^]]+)\]`).FindSubmatch(schema)
	require.NotNil(t, codes)
	for _, code := range strings.Split(string(codes[1]), ", ") {
		require.Contains(t, string(page), "| `"+strings.Trim(code, `"`)+"` |")
	}
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, example)
	requireSchema(t, "health", example[1])
	for _, block := range regexp.MustCompile("(?s)```yaml\n(extensions:.*?)```").FindAllSubmatch(page, -1) {
		retrieved, err := confmap.NewRetrievedFromYAML(block[1])
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		section, err := conf.Sub("extensions::lens_health")
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, section.Unmarshal(cfg))
		cfg.Token = configopaque.String(strings.ReplaceAll(string(cfg.Token), "${env:LENSCOL_HEALTH_TOKEN}", testToken))
		require.NoError(t, confmap.Validate(cfg))
	}
}
