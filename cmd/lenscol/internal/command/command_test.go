// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/nopexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"

	"github.com/lenscol/lenscol/confmap/lenscolprovider"
	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/extension/lenshealth"
	"github.com/lenscol/lenscol/telemetry"

	"github.com/lenscol/lenscol/configs"
)

// testSettings are those of a small distribution: what the embedded configs and the tests' own use.
func testSettings(receivers ...receiver.Factory) otelcol.CollectorSettings {
	return otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "lenscol", Description: "Test", Version: "0.0.1"},
		Factories: func() (f otelcol.Factories, err error) {
			f.Telemetry = telemetry.NewFactory()
			if f.Receivers, err = otelcol.MakeFactoryMap(append(receivers, otlpreceiver.NewFactory())...); err != nil {
				return f, err
			}
			if f.Processors, err = otelcol.MakeFactoryMap[processor.Factory](memorylimiterprocessor.NewFactory()); err != nil {
				return f, err
			}
			if f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](nopexporter.NewFactory(), jsonlexporter.NewFactory()); err != nil {
				return f, err
			}
			f.Extensions, err = otelcol.MakeFactoryMap[extension.Factory](lenshealth.NewFactory())
			return f, err
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{
				envprovider.NewFactory(), fileprovider.NewFactory(), yamlprovider.NewFactory(), lenscolprovider.NewFactory(),
			},
			DefaultScheme: "env",
		}},
	}
}

// execute runs the command line and returns what it prints to stdout.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := New(testSettings(), "abc")
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := root.ExecuteContext(t.Context())
	require.Empty(t, stderr.String(), "errors are printed by Main, once")
	return stdout.String(), err
}

func TestUnknownIsAnErrorWithASuggestion(t *testing.T) {
	for _, tt := range []struct {
		name, args, want string
	}{
		{"command", "validat", `unknown command "validat", did you mean "lenscol validate"? ` + "`lenscol --help` lists all commands"},
		{"command far off", "frobnicate", `unknown command "frobnicate", ` + "`lenscol --help` lists all commands"},
		{"subcommand", "configs shwo", `unknown command "shwo", did you mean "lenscol configs show"? ` + "`lenscol configs --help` lists all commands"},
		{"flag", "--confg my.yaml", "unknown flag: --confg, did you mean --config?"},
		{"start of a flag", "--feat=x", "unknown flag: --feat, did you mean --feature-gates?"},
		{"flag far off", "--frobnicate", "unknown flag: --frobnicate, `lenscol --help` lists all flags"},
		{"flag of a subcommand", "version --jason", "unknown flag: --jason, did you mean --json?"},
		{"short flag", "-c my.yaml", "unknown shorthand flag: 'c' in -c, `lenscol --help` lists all flags"},
		{"file instead of a command", "my.yaml", `"lenscol" takes no argument "my.yaml", did you mean --config my.yaml?`},
		{"file after a command", "validate my.yaml", `"lenscol validate" takes no argument "my.yaml", did you mean --config my.yaml?`},
		{"embedded config after a command", "validate lenscol:archive", `"lenscol validate" takes no argument "lenscol:archive", did you mean --config lenscol:archive?`},
		{"argument", "version now", `"lenscol version" takes no argument, got "now"`},
		{"help of a command", "help validat", `unknown command "validat", did you mean "lenscol validate"? ` + "`lenscol --help` lists all commands"},
		{"variable that is not set", "--config=", `invalid argument "" for "--config" flag: it is empty, ` + "`lenscol --help` lists all flags"},
		{"embedded config", "configs show archiv", `no embedded config "archiv", there are: ` + strings.Join(configs.Names(), ", ")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, err := execute(t, strings.Fields(tt.args)...)
			require.EqualError(t, err, tt.want)
			require.Empty(t, stdout)
		})
	}
}

func TestConfigsGolden(t *testing.T) {
	stdout, err := execute(t, "configs")
	require.NoError(t, err)
	golden := filepath.Join("testdata", "configs.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(stdout), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), stdout)
}

func TestDefaultConfigHoldsForEveryCommand(t *testing.T) {
	for _, tt := range []struct {
		name, args, contains, err string
	}{
		{"validate", "validate", "", ""},
		{"validate with --set alone", "validate --set processors.memory_limiter.check_interval=0s", "", "check_interval"},
		{"print-config", "print-config", "127.0.0.1:4317", ""},
		{"print-config with --set alone", "print-config --set receivers.otlp.protocols.grpc.endpoint=127.0.0.1:1", "127.0.0.1:1\n", ""},
		{"a config given replaces it", "print-config --config yaml:receivers::otlp::protocols::grpc:", "", "service must have at least one pipeline"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, err := execute(t, strings.Fields(tt.args)...)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Contains(t, stdout, tt.contains)
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	stdout, err := execute(t, "--help")
	require.NoError(t, err)
	for _, flag := range []string{"--config URI", "--set KEY=VALUE", "--feature-gates LIST", "--ports LIST", "--port-file FILE"} {
		require.Contains(t, stdout, flag)
	}
	require.NotContains(t, stdout, "service.partialReload", "the list of all gates drowns the rest")
}

// docs/cli.md is the page for every command and flag.
func TestPageHasEveryCommandAndFlag(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "cli.md"))
	require.NoError(t, err)
	root := New(testSettings(), "")
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.HasParent() && cmd.Parent().Name() == "completion" {
			return // One a shell: SHELL.
		}
		require.Contains(t, string(page), "`"+cmd.CommandPath())
		cmd.Flags().VisitAll(func(f *pflag.Flag) { require.Contains(t, string(page), "--"+f.Name, cmd.CommandPath()) })
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

func TestVersionJSON(t *testing.T) {
	stdout, err := execute(t, "version", "--json")
	require.NoError(t, err)
	var got map[string]string
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	// A test binary does not record its modules.
	require.Equal(t, map[string]string{"version": "0.0.1", "commit": "abc", "go": runtime.Version(), "core": "unknown"}, got)
}

func TestDescribeBuild(t *testing.T) {
	stamped := &debug.BuildInfo{
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "cafe"}},
		Deps:     []*debug.Module{{Path: "go.opentelemetry.io/collector/otelcol", Version: "v0.158.0"}},
	}
	for _, tt := range []struct {
		name   string
		commit string
		info   *debug.BuildInfo
		want   build
	}{
		{"nothing recorded", "", nil, build{"1.2.3", "unknown", runtime.Version(), "unknown"}},
		{"by the toolchain", "", stamped, build{"1.2.3", "cafe", runtime.Version(), "v0.158.0"}},
		{"the linker goes first", "beef", stamped, build{"1.2.3", "beef", runtime.Version(), "v0.158.0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, describeBuild("1.2.3", tt.commit, tt.info))
		})
	}
}

func TestCompletion(t *testing.T) {
	for _, tt := range []struct{ name, args, want string }{
		{"names of embedded configs", "configs show arch", "archive"},
		{"URIs of embedded configs", "--config lenscol:", "lenscol:archive"},
		{"for validate too", "validate --config lenscol:a", "lenscol:archive"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout bytes.Buffer
			root := New(testSettings(), "")
			root.SetArgs(append([]string{"__complete"}, strings.Fields(tt.args)...))
			root.SetOut(&stdout)
			root.SetErr(&bytes.Buffer{}) // It explains itself there.
			require.NoError(t, root.Execute())
			require.Contains(t, strings.Split(stdout.String(), "\n"), tt.want)
		})
	}
}
