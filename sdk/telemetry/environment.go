// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lenscol/lenscol/sdk/resource"
)

// mendEnvironment takes out of the environment what says nothing, and what OpenTelemetry's SDK and exporters, which read it
// themselves, would take wrong:
//
//   - variables OTEL_* that are blank, which count as not set (OpenTelemetry, environment variable specification), but are
//     a bad sampler to the SDK;
//   - members of OTEL_RESOURCE_ATTRIBUTES that cannot be read, which the SDK exports as they are, as no UTF-8 for instance;
//   - members of OTEL_EXPORTER_OTLP_HEADERS and of the signals' own that are empty or cannot be read, which the exporters report
//     as they are, secrets included.
func mendEnvironment() error {
	for _, setting := range os.Environ() {
		name, value, _ := strings.Cut(setting, "=")
		if !strings.HasPrefix(name, "OTEL_") {
			continue
		}
		mended := value
		switch {
		case name == resourceVariable:
			mended = without(value, func(member string) bool {
				_, errs := resource.Decode(member)
				return len(errs) > 0
			})
		case strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") && strings.HasSuffix(name, "HEADERS"):
			mended = without(value, func(member string) bool {
				headers, err := parseHeaders(member)
				return err != nil || len(headers) == 0
			})
		}
		var err error
		if isBlank(mended) {
			err = os.Unsetenv(name)
		} else if mended != value {
			err = os.Setenv(name, mended)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// maxQueue bounds queues and batches: more is memory, of which a rank has better use, and is mostly a typing error.
const maxQueue = 1 << 20

// checkBatches refuses sizes of queues and batches at which the SDK panics, or runs out of memory, and a delay at which it exports
// without a pause, on a core of its own. What is no number it ignores and logs.
func checkBatches() error {
	for _, v := range []struct {
		name string
		most int64
	}{
		{"OTEL_BSP_MAX_QUEUE_SIZE", maxQueue}, {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", maxQueue}, {"OTEL_BSP_SCHEDULE_DELAY", maxMillis},
		{"OTEL_BLRP_MAX_QUEUE_SIZE", maxQueue}, {"OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", maxQueue},
	} {
		text := strings.TrimSpace(os.Getenv(v.name))
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && (n < 1 || n > v.most) || errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("%s: %q must be 1 to %d", v.name, text, v.most)
		}
	}
	return nil
}

// spanQueue is how many ended spans the SDK's batch processor has room for.
func spanQueue() int {
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil {
		return n
	}
	return sdktrace.DefaultMaxQueueSize
}

// without is a list with commas between, without the members that are bad.
func without(list string, bad func(member string) bool) string {
	return strings.Join(slices.DeleteFunc(strings.Split(list, ","), bad), ",")
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }
