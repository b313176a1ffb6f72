// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Command dashboard holds dashboards against Grafana's schema, strictly: panels, their options and queries included. It exits with 1 where one is not
// valid.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	plugins.RegisterDefaultPlugins()
	status := 0
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			status = 1
		}
	}
	os.Exit(status)
}

func check(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var d dashboard.Dashboard
	// What it returns is never nil, but may hold no error.
	if err := d.UnmarshalJSONStrict(text); err.Error() != "" {
		return err
	}
	return d.Validate()
}
