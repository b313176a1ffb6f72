// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"fmt"
	"os"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"

	"github.com/lenscol/lenscol/sdk/resource"
	"github.com/lenscol/lenscol/sdk/semconv"
)

const resourceVariable = "OTEL_RESOURCE_ATTRIBUTES"

// notForChildren are attributes of one process.
var notForChildren = []attribute.Key{
	semconv.ServiceName, semconv.ServiceVersion, semconv.ServiceInstanceID,
	"telemetry.sdk.name", "telemetry.sdk.language", "telemetry.sdk.version",
}

// local are attributes that each process finds out itself: a child may be on another machine (NeMo Lens, local resource
// attributes: the first three).
var local = []attribute.Key{
	semconv.HostName, semconv.HostGPUCount, semconv.ProcessPID,
	semconv.GPUModel, semconv.GPUDriverVersion, semconv.SlurmTopologyAddr, semconv.SlurmTopologyAddrPattern,
}

// publish writes r into the environment and returns what sets the variable back to what it was, unless somebody else has changed
// it meanwhile. What the variable has already, and need not change, stays byte for byte; what is local is taken out.
func publish(r *sdkresource.Resource) (restore func(), err error) {
	before, was := os.LookupEnv(resourceVariable)
	kept := without(before, func(member string) bool {
		attrs, _ := resource.Decode(member)
		return len(attrs) == 1 && slices.Contains(local, attribute.Key(attrs[0].Key))
	})
	have, _ := resource.Decode(kept) // what cannot be read was logged
	var attrs []resource.Attribute
	for _, kv := range r.Attributes() {
		a := resource.Attribute{Key: string(kv.Key), Value: kv.Value.String()}
		isThere := slices.ContainsFunc(have, func(h resource.Attribute) bool { return h.Key == a.Key && h.Text() == a.Text() })
		if !isThere && isScalar(kv.Value) && !slices.Contains(notForChildren, kv.Key) && !slices.Contains(local, kv.Key) {
			attrs = append(attrs, a)
		}
	}
	text, _ := resource.Merge(kept, attrs, true) // a key that cannot be written stays this process's
	if err := os.Setenv(resourceVariable, text); err != nil {
		return nil, fmt.Errorf("publish the resource: %w", err)
	}
	return func() {
		if now, _ := os.LookupEnv(resourceVariable); now != text {
			return
		}
		if was {
			_ = os.Setenv(resourceVariable, before) // it was there, so it can be set
		} else {
			_ = os.Unsetenv(resourceVariable)
		}
	}, nil
}

func isScalar(v attribute.Value) bool {
	switch v.Type() {
	case attribute.BOOL, attribute.INT64, attribute.FLOAT64, attribute.STRING:
		return true
	}
	return false
}
