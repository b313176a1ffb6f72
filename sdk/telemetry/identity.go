// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"

	"github.com/lenscol/lenscol/sdk/rank"
	"github.com/lenscol/lenscol/sdk/resource"
	"github.com/lenscol/lenscol/sdk/semconv"
	"github.com/lenscol/lenscol/sdk/telemetry/internal/repair"
)

// identity is whose telemetry this process's is.
type identity struct {
	runID    string
	rank     rank.Identity
	isRank   bool
	resource *sdkresource.Resource
}

// identify finds the run id and the rank, and makes the resource. Of one key, the later of these layers holds: defaults, what is
// detected, OTEL_RESOURCE_ATTRIBUTES, the Config and the rank, the caller's.
func identify(ctx context.Context, cfg Config, o *options) (identity, error) {
	detector := resource.New(resource.System{})
	stated, err := o.stated(cfg, detector)
	if err != nil {
		return identity{}, err
	}
	own := attribute.NewSet(slices.Concat(stated, o.resource)...)
	given := attribute.NewSet(slices.Concat(keyValues(inherited(ctx)), own.ToSlice())...)

	var id identity
	runID, generated := findRunID(given, detector)
	id.runID = runID
	if id.rank, id.isRank, err = findRank(own, given, o.localRank); err != nil {
		return identity{}, err
	}
	attrs, _ := repair.Attributes(slices.Concat(
		o.resourceDefaults,
		sdkAttributes(ctx),
		[]attribute.KeyValue{attribute.String(semconv.ServiceName, cfg.ServiceName)},
		detect(detector, runID),
		given.ToSlice(),
		id.derived(given, own.HasValue(semconv.DLRank) || own.HasValue(semconv.DLRankOld)),
	))
	id.resource = sdkresource.NewSchemaless(attrs...)

	if refused := detector.Refused(); len(refused) > 0 {
		slog.WarnContext(ctx, "what the environment says of the resource is left out in part", "refused", refused)
	}
	if !id.isRank {
		level := slog.LevelWarn
		if given.HasValue(semconv.ServiceInstanceID) {
			level = slog.LevelDebug
		}
		slog.Log(ctx, level, "this process has no rank: it exports, whatever the strategy; WithRank says which it is")
	} else if generated && id.rank.WorldSize > 1 {
		slog.WarnContext(ctx, "the run id is this process's alone, the other ranks have others: set NEMO_LENS_RUN_ID", "run_id", runID)
	}
	return id, nil
}

// inherited is what OTEL_RESOURCE_ATTRIBUTES says. It has texts alone, so what ranks send as integers is made one again; and it
// may come from an ancestor, whose process id it has then.
func inherited(ctx context.Context) (attrs []resource.Attribute) {
	decoded, errs := resource.Decode(os.Getenv(resourceVariable))
	for _, err := range errs {
		slog.WarnContext(ctx, "a resource attribute is left out", "error", err)
	}
	integers := semconv.ResourceIntegers()
	for _, a := range decoded {
		if a.Key == semconv.ProcessPID {
			continue
		}
		if n, err := strconv.ParseInt(a.Text(), 10, 64); err == nil && slices.Contains(integers, a.Key) {
			a.Value = n
		}
		attrs = append(attrs, a)
	}
	return attrs
}

// stated is what the Config and the options say.
func (o *options) stated(cfg Config, d *resource.Detector) ([]attribute.KeyValue, error) {
	var attrs []attribute.KeyValue
	for _, a := range []struct{ key, value string }{
		{semconv.RunID, cfg.RunID},
		{semconv.NemoUserID, cfg.User},
		{semconv.WandbEntity, cfg.WandbEntity},
		{semconv.WandbProject, cfg.WandbProject},
		{semconv.DeploymentEnvironment, cfg.DeploymentEnvironment},
	} {
		if a.value != "" {
			attrs = append(attrs, attribute.String(a.key, a.value))
		}
	}
	if cfg.ServiceName != Default().ServiceName {
		attrs = append(attrs, attribute.String(semconv.ServiceName, cfg.ServiceName))
	}
	if o.rankFromEnv {
		attrs = append(attrs, keyValues(d.Torch())...)
	}
	if o.isRank {
		if _, ok := rank.FromInt(int64(o.worldSize)); !ok || o.rank < 0 || o.rank >= o.worldSize {
			return nil, fmt.Errorf("rank %d of %d: must be from 0 to the world size - 1, and that below 2^31", o.rank, o.worldSize)
		}
		attrs = append(attrs, attribute.Int(semconv.DLRank, o.rank), attribute.Int(semconv.DLWorldSize, o.worldSize))
	}
	return attrs, nil
}

// findRunID is the given one, else what all ranks of a job have, else a new one (NeMo Lens: config, SLURM_JOB_ID, 12 hex).
func findRunID(given attribute.Set, d *resource.Detector) (id string, generated bool) {
	if v, ok := given.Value(semconv.RunID); ok && v.String() != "" {
		return v.String(), false
	}
	if a, ok := d.RunID("slurm", "torchelastic", "k8s_job"); ok {
		return a.Text(), false
	}
	return resource.NewRunID(), true
}

// findRank reads the rank as lenscol does: under the new name, the old one, or from the end of the instance id. What is this
// process's own goes before what is given, under either name. The error is of a local rank in the environment that is none.
func findRank(own, given attribute.Set, localRank int) (id rank.Identity, ok bool, err error) {
	number := func(keys ...attribute.Key) (int, bool) {
		for _, set := range []attribute.Set{own, given} {
			for _, key := range keys {
				if v, ok := set.Value(key); ok {
					return rank.Parse(v.String())
				}
			}
		}
		return 0, false
	}
	id = rank.Identity{WorldSize: rank.Unknown, LocalRank: localRank}
	if id.Rank, ok = number(semconv.DLRank, semconv.DLRankOld); !ok {
		instance, _ := given.Value(semconv.ServiceInstanceID)
		if id.Rank, ok = rank.FromInstanceID(instance.AsString()); !ok {
			return rank.Identity{}, false, nil
		}
	}
	if n, ok := number(semconv.DLWorldSize, semconv.DLWorldSizeOld); ok {
		id.WorldSize = n
	}
	if id.LocalRank >= 0 {
		return id, true, nil
	}
	if id.LocalRank, ok = number(semconv.DLLocalRank, semconv.DLLocalRankOld); !ok {
		id.LocalRank, err = localRankFromEnv()
	}
	return id, true, err
}

func localRankFromEnv() (int, error) {
	for _, name := range []string{"LOCAL_RANK", "SLURM_LOCALID"} {
		text := strings.TrimSpace(os.Getenv(name))
		if text == "" {
			continue
		}
		n, ok := rank.Parse(text)
		if !ok {
			return 0, fmt.Errorf("%s: %q is %w from 0 on", name, text, ErrInteger)
		}
		return n, nil
	}
	return rank.Unknown, nil
}

// derived is what follows from the run id and the rank. A process whose rank is inherited is not the rank itself but one that
// the rank started, a checkpoint worker for instance: its instance id has the process id too.
func (id identity) derived(given attribute.Set, own bool) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String(semconv.RunID, id.runID)}
	if !id.isRank {
		return attrs
	}
	attrs = append(attrs, attribute.Int(semconv.DLRank, id.rank.Rank))
	if id.rank.WorldSize > 0 {
		attrs = append(attrs, attribute.Int(semconv.DLWorldSize, id.rank.WorldSize))
	}
	if id.rank.LocalRank >= 0 {
		attrs = append(attrs, attribute.Int(semconv.DLLocalRank, id.rank.LocalRank))
	}
	if !given.HasValue(semconv.ServiceInstanceID) {
		instance := id.runID
		if !own {
			instance += "-" + strconv.Itoa(os.Getpid())
		}
		attrs = append(attrs, attribute.String(semconv.ServiceInstanceID, instance+"-rank"+strconv.Itoa(id.rank.Rank)))
	}
	return attrs
}

// detect is what the environment and the machine say.
func detect(d *resource.Detector, runID string) []attribute.KeyValue {
	return keyValues(slices.Concat(d.SLURM(), d.Kubernetes(), d.Host(), d.Process(), d.GPU(), d.Wandb(), d.IDs(runID)))
}

// sdkAttributes are telemetry.sdk.*.
func sdkAttributes(ctx context.Context) []attribute.KeyValue {
	r, err := sdkresource.New(ctx, sdkresource.WithTelemetrySDK())
	if err != nil {
		return nil
	}
	return r.Attributes()
}

func keyValues(attrs []resource.Attribute) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		if n, ok := a.Value.(int64); ok {
			list = append(list, attribute.Int64(a.Key, n))
		} else {
			list = append(list, attribute.String(a.Key, a.Text()))
		}
	}
	return list
}
