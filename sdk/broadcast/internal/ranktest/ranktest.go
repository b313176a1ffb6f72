// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package ranktest tries a transport among processes: the test binary starts itself once for each rank.
package ranktest // import "github.com/lenscol/lenscol/sdk/broadcast/internal/ranktest"

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast"
)

// Spec is what a process is to do.
type Spec struct {
	broadcast.Member
	Where        string   // an address or a folder
	Source       int      // rank
	Traceparents []string // what the source has in each round; empty: no trace
	Timeout      time.Duration
}

// Report is what became of it, by round.
type Report struct {
	Carriers []map[string]string
	Errors   []string
	TimedOut []bool // by the context
	Leak     string // goroutines that are left
}

// variable holds the spec of a process, as JSON.
const variable = "LENS_RANKTEST"

// Main is for TestMain. open makes the transport of a process, and closes what it needs besides.
func Main(m *testing.M, open func(Spec) (transport lens.Transport, end func(), err error)) {
	text, isRank := os.LookupEnv(variable)
	if !isRank {
		goleak.VerifyTestMain(m)
		return
	}
	var spec Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		panic(err)
	}
	transport, end, err := open(spec)
	if err != nil {
		panic(err)
	}
	report := spec.run(transport)
	end()
	if err := goleak.Find(); err != nil {
		report.Leak = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		panic(err)
	}
	os.Exit(0)
}

func (s Spec) run(transport lens.Transport) (report Report) {
	for _, traceparent := range s.Traceparents {
		ctx := context.Background()
		if s.Rank == s.Source {
			ctx = lens.Extract(ctx, map[string]string{"traceparent": traceparent})
		}
		ctx, cancel := context.WithTimeout(ctx, s.Timeout)
		carrier, err := lens.Broadcast(ctx, transport, s.Source)
		cancel()
		text := ""
		if err != nil {
			text = err.Error()
		}
		report.Carriers = append(report.Carriers, carrier)
		report.Errors = append(report.Errors, text)
		report.TimedOut = append(report.TimedOut, errors.Is(err, context.DeadlineExceeded))
	}
	return report
}

// Process is a rank that runs.
type Process struct {
	t        *testing.T
	rank     int
	cmd      *exec.Cmd
	out, err bytes.Buffer
	ended    chan struct{}
}

// Start starts a rank. The test kills it in the end, if it still runs.
func (s Spec) Start(t *testing.T, rank int) *Process {
	t.Helper()
	s.Rank = rank
	spec, err := json.Marshal(s)
	require.NoError(t, err)
	p := &Process{t: t, rank: rank, cmd: exec.Command(os.Args[0], "-test.run=^$"), ended: make(chan struct{})}
	// The race detector sleeps for a second at the end of a process, unless it is told not to.
	p.cmd.Env = append(os.Environ(), variable+"="+string(spec), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(p.Kill)
	return p
}

// Kill ends the process at once.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Report waits for the end of the process.
func (p *Process) Report() (report Report) {
	p.t.Helper()
	<-p.ended
	require.Truef(p.t, p.cmd.ProcessState.Success(), "rank %d: %s", p.rank, &p.err)
	require.NoErrorf(p.t, json.Unmarshal(p.out.Bytes(), &report), "rank %d: %s", p.rank, &p.out)
	require.Empty(p.t, report.Leak)
	return report
}

// carriers are those of traceparents.
func carriers(traceparents ...string) (out []map[string]string) {
	for _, traceparent := range traceparents {
		carrier := map[string]string{}
		if traceparent != "" {
			carrier["traceparent"] = traceparent
		}
		out = append(out, carrier)
	}
	return out
}

// Traceparent is one of trace n.
func Traceparent(n int) string { return fmt.Sprintf("00-%032x-%016x-03", n, n) }
