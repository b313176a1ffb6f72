// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

func ExampleSetup() {
	config, err := telemetry.FromEnv(telemetry.Source{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // the program goes on without telemetry
	}
	config.Enabled, config.RunID = true, "run-7"
	config.Traces.Protocol, config.Metrics.Protocol = telemetry.ProtocolNone, telemetry.ProtocolNone

	handle, err := telemetry.Setup(context.Background(), config,
		telemetry.WithRank(3, 4), telemetry.WithResource(attribute.String("service.version", "1.2")), telemetry.WithReinit())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	defer handle.Shutdown(context.Background())

	_, span := lens.Start(context.Background(), "job")
	defer span.End()
	fmt.Println(handle.RunID(), handle.IsExporting(), span.IsRecording(), lens.EnabledGroups())
	// Output: run-7 true true [checkpoint evaluate job]
}
