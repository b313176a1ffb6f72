// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments_test

import (
	"context"
	"fmt"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lenscol/lenscol/sdk/instruments"
)

func Example() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("example")

	gym := instruments.NewGym(meter, instruments.NewNames)
	gym.VerifyDuration.RecordDuration(ctx, 20*time.Millisecond)

	// A framework's own series, recorded by key.
	registry := instruments.NewRegistry(instruments.NewNames)
	err := registry.Register("sampler", []instruments.Spec{
		{Key: "accept", Name: "sampler.acceptance", Description: "Share of accepted drafts."},
		{Key: "drafts", Name: "sampler.drafts", Kind: instruments.Counter, Integer: true, Unit: "{draft}"},
	}, false)
	if err != nil {
		fmt.Println(err)
	}
	var unknown *float64
	registry.Record(ctx, meter, "sampler", instruments.Values{"drafts": 8, "accept": unknown})

	var got metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &got); err != nil {
		fmt.Println(err)
	}
	for _, m := range got.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name, m.Unit)
	}
	// Output:
	// gym.verify.duration_ms ms
	// sampler.drafts {draft}
}
