// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of lenscol: upstream's own (run, validate, print-config, components, featuregate)
// with a default config, and what is ours beside it (configs, version, demo, strategies, doctor). One file holds one command.
package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/collector/otelcol"

	"github.com/lenscol/lenscol/configs"
	"github.com/lenscol/lenscol/sdk/resource"
)

// defaultURI is the config that runs when none is given.
const defaultURI = "lenscol:" + configs.Default

// Main runs the command line of the process and returns its exit code. An error is printed to stderr, once.
func Main(set otelcol.CollectorSettings, commit string) int {
	err := New(set, commit).Execute()
	code, print := exitCodeOf(err)
	if print {
		fmt.Fprintf(os.Stderr, "lenscol: error: %v\n", err)
	}
	return code
}

// New builds the command tree on upstream's own.
func New(set otelcol.CollectorSettings, commit string) *cobra.Command {
	root := otelcol.NewCommand(set)
	root.Short = set.BuildInfo.Description
	root.Long = set.BuildInfo.Description + `.

Without a command it runs the collector, without --config with the embedded config ` + defaultURI + `: it takes OTLP on
127.0.0.1:4317 (gRPC) and 127.0.0.1:4318 (HTTP) and writes it to lens-data/. SIGHUP reloads the config; a bad one is
refused, and what ran before runs on. SIGINT and SIGTERM end it after what was taken is written.`
	root.Example = `  lenscol
  lenscol --config my.yaml
  lenscol --config lenscol:archive --set processors.memory_limiter.limit_percentage=10
  lenscol --ports auto --port-file collector.env   # then, in the job script: . ./collector.env
  lenscol validate --config my.yaml`
	root.SilenceErrors = true // Main prints them.
	root.PersistentPreRunE = useDefaultConfig
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(suggestFlag(cmd, err)) })
	runCommand(root, set)
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Name() != "featuregate" { // It takes the id of a gate.
			cmd.Args = noArguments
		}
		if cmd.Name() == "validate" {
			advise(cmd, set)
		}
		if cmd.Name() == "print-config" {
			cmd.Long = "Prints the config that would run: all sources merged, variables expanded, defaults filled in.\n\n" +
				"Secrets are redacted, with --mode=unredacted they are not."
		}
		if cmd.Flags().Lookup("config") != nil {
			describeFlags(cmd.Flags())
			_ = cmd.RegisterFlagCompletionFunc("config", completeConfig) // Fails for an unknown flag alone.
		}
	}
	root.AddCommand(newConfigsCommand(), newVersionCommand(set.BuildInfo, commit), newDemoCommand(), newStrategiesCommand(), newJSONLCommand(),
		newDoctorCommand(resource.System{}), newSlurmAttrsCommand(resource.System{}), newEmitSpansCommand(), newExecCommand(), newReckonCommand(), newPerfettoCommand(), newReportCommand(), newManCommand(),
		newWaitCommand(), newStatusCommand(), newTopCommand())
	checkHelp(root)
	markUsage(root)
	return root
}

// checkHelp has cobra's help command refuse what it does not know, which it answers with the help of root and 0.
func checkHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // It is there.
	help.Args = func(_ *cobra.Command, args []string) error {
		of, rest, err := root.Find(args)
		if err != nil || len(rest) == 0 {
			return err
		}
		return noArguments(of, rest)
	}
}

// describeFlags rewrites the help of upstream's flags: shorter, and without a default of seventy feature gates.
func describeFlags(flags *pflag.FlagSet) {
	for name, usage := range map[string]string{
		"config":        "Config source: a file, or a `URI` such as lenscol:NAME, yaml:..., env:..., https:...; may be repeated, later ones go before earlier ones (default " + defaultURI + ")",
		"set":           "Set one key over all sources, as `KEY=VALUE` with dots between the levels; maps are joined, lists replaced",
		"feature-gates": "Feature gates to enable, or to disable with a leading -, as a comma-separated `LIST`; lenscol featuregate lists them",
	} {
		flag := flags.Lookup(name)
		flag.Usage, flag.DefValue = usage, ""
	}
	config := flags.Lookup("config")
	config.Value = filledFlag{config.Value}
}

// filledFlag is a flag that takes no empty value, as of a variable in a script that is not set.
type filledFlag struct{ pflag.Value }

func (f filledFlag) Set(v string) error {
	if v == "" {
		return errors.New("it is empty")
	}
	return f.Value.Set(v)
}

// completeConfig completes `--config lenscol:`; a value of another scheme is completed as a file.
func completeConfig(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := configs.Names()
	for i, name := range names {
		names[i] = "lenscol:" + name
	}
	return names, cobra.ShellCompDirectiveDefault
}

// useDefaultConfig gives a command that takes --config the embedded default where no --config was given.
//
// A default in ResolverSettings.URIs would not do: upstream replaces it as soon as there is a --set. A command
// of ours must not have a PersistentPreRun of its own, which would hide this one.
func useDefaultConfig(cmd *cobra.Command, _ []string) error {
	if flag := cmd.Flags().Lookup("config"); flag != nil && !flag.Changed {
		return flag.Value.Set(defaultURI)
	}
	return nil
}
