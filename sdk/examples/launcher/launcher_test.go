// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/lenstest"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// launchers run a shell script as each rank; it finds a folder in $OUT.
type launcher struct {
	*lenstest.Memory
	out     string
	signals chan os.Signal
}

func newLauncher(t *testing.T) launcher {
	l := launcher{lenstest.NewMemory(t), t.TempDir(), make(chan os.Signal, 1)}
	for name, value := range map[string]string{
		"NEMO_LENS_ENABLED": "true", "NEMO_LENS_SPAN_GROUPS": "per_step", "NEMO_LENS_RUN_ID": "", "SLURM_JOB_ID": "", "OTEL_RESOURCE_ATTRIBUTES": "", "OUT": l.out,
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() { lens.DefaultRegistry().Clear() })
	return l
}

func (l launcher) run(t *testing.T, script string, flags ...string) error {
	return run(t.Context(), append(flags, "--", "sh", "-c", script), l.signals, l.Options()...)
}

// file is what a rank wrote.
func (l launcher) file(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join(l.out, name))
	require.NoError(t, err)
	return string(text)
}

func TestRanksShareRunResourceAndTrace(t *testing.T) {
	l := newLauncher(t)
	require.NoError(t, l.run(t, `echo "$RANK/$WORLD_SIZE/$LOCAL_RANK $TRACEPARENT $OTEL_RESOURCE_ATTRIBUTES" > $OUT/$RANK`, "-n=3"))
	root := l.Span("nv.nvrx.ftl.run")
	require.Equal(t, "nvrx.ft_launcher", root.Resource[semconv.ServiceName])
	require.Equal(t, "completed", root.Attributes[semconv.NVRxCycleOutcome])
	runID := root.Resource[semconv.RunID].(string)
	require.NotEmpty(t, runID)

	launches := l.SpansNamed("nv.nvrx.ftl.worker_launch")
	require.Len(t, launches, 3)
	for _, span := range launches {
		require.Equal(t, root.SpanID, span.ParentID)
		require.Equal(t, int64(0), span.Attributes[semconv.ProcessExitCode])
		rank := string('0' + rune(span.Attributes[semconv.NVRxGroupRank].(int64)))
		fields := strings.Fields(l.file(t, rank))
		require.Equal(t, rank+"/3/"+rank, fields[0])
		require.Regexp(t, "^00-"+span.TraceID+"-"+span.SpanID+"-0[13]$", fields[1])
		require.Contains(t, strings.Split(fields[2], ","), semconv.RunID+"="+runID)
		require.NotContains(t, fields[2], semconv.ServiceName)
	}
	require.Empty(t, os.Getenv("OTEL_RESOURCE_ATTRIBUTES"), "it is as it was")
}

func TestOneRankThatFailsEndsTheOthers(t *testing.T) {
	l := newLauncher(t)
	require.EqualError(t, l.run(t, `test $RANK = 1 && exit 3; exec sleep 600`, "-n=3"), "rank 1: exit status 3")
	root := l.Span("nv.nvrx.ftl.run")
	require.Equal(t, codes.Error, root.Status)
	require.Equal(t, "failed", root.Attributes[semconv.NVRxCycleOutcome])
	for _, span := range l.SpansNamed("nv.nvrx.ftl.worker_launch") {
		require.Equal(t, codes.Error, span.Status)
	}
}

// stopWhenReady sends SIGTERM to the launcher when that many ranks have written a line into $OUT/ready.
func (l launcher) stopWhenReady(t *testing.T, ranks int) {
	ready := filepath.Join(l.out, "ready")
	require.NoError(t, syscall.Mkfifo(ready, 0o600)) // who opens it waits for the other side
	go func() {
		for there := 0; there < ranks; {
			text, err := os.ReadFile(ready)
			if err != nil {
				t.Error(err)
				break
			}
			there += strings.Count(string(text), "\n")
		}
		l.signals <- syscall.SIGTERM
	}()
}

func TestSignalsGoOnToTheRanks(t *testing.T) {
	l := newLauncher(t)
	l.stopWhenReady(t, 2)
	require.NoError(t, l.run(t, `trap 'echo SIGTERM > $OUT/$RANK; exit 0' TERM; echo $RANK > $OUT/ready; while :; do sleep 0.01; done`))
	require.Equal(t, "terminated", l.Span("nv.nvrx.ftl.run").Attributes[semconv.NVRxCycleOutcome])
	require.Equal(t, "SIGTERM\n", l.file(t, "0"))
	require.Equal(t, "SIGTERM\n", l.file(t, "1"))
}

func TestRanksThatDoNotEndAreKilled(t *testing.T) {
	l := newLauncher(t)
	l.stopWhenReady(t, 2)
	require.ErrorContains(t, l.run(t, `trap '' TERM; echo $RANK > $OUT/ready; exec sleep 600`, "-n=2", "-grace=100ms"), "signal: killed")
	require.Equal(t, "terminated", l.Span("nv.nvrx.ftl.run").Attributes[semconv.NVRxCycleOutcome])
}

func TestCommandThatIsNone(t *testing.T) {
	l := newLauncher(t)
	err := run(t.Context(), []string{"-n=2", "--", "/no/such/program"}, l.signals, l.Options()...)
	require.ErrorContains(t, err, "rank 0: fork/exec /no/such/program")
	require.Len(t, l.SpansNamed("nv.nvrx.ftl.worker_launch"), 2)
	require.ErrorContains(t, run(t.Context(), []string{"-n=0"}, l.signals), "want -n above 0 and a command")
}
