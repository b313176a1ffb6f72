// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// restoreGroups leaves the process's groups as a test of a fresh process finds them.
func restoreGroups(t testing.TB) {
	t.Cleanup(func() {
		DefaultRegistry().Clear()
		SetGroups("")
	})
}

func logged(t testing.TB) *bytes.Buffer {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

func TestImportsTheAPIOnly(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "go.opentelemetry.io/otel/trace\n")
	for dep := range strings.FieldsSeq(string(out)) {
		for _, banned := range []string{"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "go.opentelemetry.io/collector", "google.golang.org/"} {
			require.NotContains(t, dep, banned)
		}
	}
}

func TestGroupIsOffBeforeSetGroups(t *testing.T) {
	require.False(t, Group("step").Enabled())
	require.False(t, SpanGroup{}.Enabled())
	require.Empty(t, SpanGroup{}.Name())
}

func TestSetGroupsSwitchesWhileRunning(t *testing.T) {
	restoreGroups(t)
	step, job := Group(" Step "), Group("job")
	require.Equal(t, "step", step.Name())
	require.Empty(t, SetGroups("default"))
	require.True(t, job.Enabled())
	require.False(t, step.Enabled())
	require.Equal(t, []string{"checkpoint", "evaluate", "job"}, EnabledGroups())
	require.Empty(t, SetGroups("STEP"))
	require.True(t, step.Enabled())
	require.False(t, job.Enabled())
	require.True(t, Group("step").Enabled(), "groups of one name share a switch")
	require.Empty(t, SetGroups(""))
	require.False(t, step.Enabled())
}

func TestGroupMadeAfterSetGroupsIsOn(t *testing.T) {
	restoreGroups(t)
	require.NoError(t, DefaultRegistry().Register(GroupSet{Namespace: "late", Groups: []string{"made_late"}}, false))
	require.Empty(t, SetGroups("made_late"))
	require.True(t, Group("made_late").Enabled())
}

func TestPendingGroupsAreAWarningAndTurnOnWhenRegistered(t *testing.T) {
	restoreGroups(t)
	log := logged(t)
	rollout := Group("rollout")
	require.Equal(t, []string{"per_rollout", "rollout"}, SetGroups("rollout,job,per_rollout"))
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "per_rollout")
	require.False(t, rollout.Enabled())
	require.NoError(t, DefaultRegistry().Register(GymGroups(), false))
	require.True(t, rollout.Enabled())
	require.NoError(t, DefaultRegistry().Unregister("nemo_gym"))
	require.False(t, rollout.Enabled())
	require.True(t, Group("job").Enabled(), "the base groups are back")
}

func TestManyGroups(t *testing.T) {
	restoreGroups(t)
	many := GroupSet{Namespace: "many", Presets: map[string][]string{}}
	for i := range 200 {
		name := fmt.Sprintf("many_%d", i)
		many.Groups = append(many.Groups, name)
		if i%3 == 0 {
			many.Presets["third"] = append(many.Presets["third"], name)
		}
	}
	require.NoError(t, DefaultRegistry().Register(many, false))
	SetGroups("third")
	for i, name := range many.Groups {
		require.Equal(t, i%3 == 0, Group(name).Enabled(), name)
	}
}

func TestGroupsConcurrently(t *testing.T) {
	restoreGroups(t)
	step := Group("step")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				switch i % 4 {
				case 0:
					SetGroups([]string{"default", "per_step", ""}[j%3])
				case 1:
					_ = step.Enabled()
					_ = Group(fmt.Sprintf("concurrent_%d", j%10)).Enabled()
				case 2:
					_ = DefaultRegistry().Register(NVRxGroups(), true)
				default:
					DefaultRegistry().Presets()["all"][0] = "a copy"
				}
			}
		})
	}
	wg.Wait()
	SetGroups("step,nvrx.ft")
	require.Equal(t, []string{"nvrx.ft"}, EnabledGroups())
}

func BenchmarkGroupDisabled(b *testing.B) {
	b.ReportAllocs()
	step := Group("step")
	on := 0
	for b.Loop() {
		if step.Enabled() {
			on++
		}
	}
	require.Zero(b, on)
}
