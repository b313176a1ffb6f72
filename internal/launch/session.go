// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package launch // import "github.com/lenscol/lenscol/internal/launch"

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/lenscol/lenscol/sdk/rank"
	"github.com/lenscol/lenscol/sdk/semconv"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

// Session says as whom spans are sent. Where to, the environment says, as it does to NeMo Lens.
type Session struct {
	Service string    // service.name; "": as the environment has it
	RunID   string    // nemo.run.id; "": as the environment has it
	Out     io.Writer // where the exporter console writes to
}

// start sets up telemetry for traces alone, and says where they go. Launch scripts are no ranks: no export strategy is asked.
func (s Session) start(ctx context.Context, opts ...telemetry.Option) (*telemetry.Handle, telemetry.Target, error) {
	cfg, err := telemetry.FromEnv(telemetry.Source{})
	if err != nil {
		return nil, telemetry.Target{}, err
	}
	// What fails is returned at the end; the SDK would print it as well, in lines of its own.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	cfg.Enabled = !strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_SDK_DISABLED")), "true")
	cfg.TracesEnabled, cfg.MetricsEnabled, cfg.LogsEnabled = true, false, false
	host, _ := os.Hostname() // "" where the system has none
	opts = append(opts, telemetry.WithOutput(s.Out),
		telemetry.WithResource(attribute.String(semconv.ServiceInstanceID, host+"-"+strconv.Itoa(os.Getpid()))))
	cfg.ExportStrategy = rank.NameAllRanks
	if cfg.Exporter == telemetry.ExporterConsole {
		cfg.Traces.Protocol = telemetry.ProtocolConsole
	}
	if s.Service != "" {
		cfg.ServiceName = s.Service
		opts = append(opts, telemetry.WithResource(attribute.String(semconv.ServiceName, s.Service)))
	}
	if s.RunID != "" {
		cfg.RunID = s.RunID
	}
	h, err := telemetry.Setup(ctx, cfg, opts...)
	if err != nil {
		return nil, telemetry.Target{}, fmt.Errorf("start telemetry: %w", err)
	}
	return h, cfg.Traces, nil
}
