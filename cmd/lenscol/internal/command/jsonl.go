// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lenscol/lenscol/exporter/jsonlexporter"
	"github.com/lenscol/lenscol/internal/archive"
)

// The jsonl commands read files of telemetry, whoever wrote them (internal/archive). One file of this package holds one of them; this
// one holds what they share: filter flags, what is said of damage, and progress.

func newJSONLCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "jsonl",
		Short: "Reads what is kept in files: cat, stat, verify, convert, replay",
		Long: `Reads files of telemetry: those of the jsonl exporter, of NeMo Lens's console exporter (with an application's output in between), of
contrib's file exporter, and spans of hand-written exporters; plain, gzip or zstd. What a file holds is told from its bytes.

FILE is a file, a folder (all *.jsonl, *.ndjson, *.json, *.pb and *.proto in it and below, compressed or not) or - for stdin.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newJSONLCatCommand(), newJSONLStatCommand(), newJSONLVerifyCommand(), newJSONLConvertCommand(), newJSONLReplayCommand())
	return cmd
}

// filterFlags are the flags that choose records.
func filterFlags(cmd *cobra.Command) *archive.FilterText {
	var f archive.FilterText
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Runs, "run", nil, "Keep these runs: `GLOB`s, commas between")
	flags.StringVar(&f.Ranks, "rank", "", "Keep these ranks: a `LIST` like 0,8-15,0-1023/64,-1")
	flags.StringArrayVar(&f.Names, "name", nil, "Keep spans, metrics and log events whose name matches a `GLOB`; may be repeated")
	flags.StringVar(&f.Since, "since", "", "Keep what began at this `TIME` or later: RFC 3339, or a duration before now like 90m, 2h, 3d")
	flags.StringVar(&f.Until, "until", "", "Keep what began before this `TIME`, written likewise")
	flags.StringSliceVar(&f.Statuses, "status", nil, "Keep spans of these statuses: a `LIST` of ok, error, unset")
	return &f
}

// layoutFlag takes the layouts that can be written.
func layoutFlag(cmd *cobra.Command, layout *string, usage string) {
	cmd.Flags().StringVar(layout, "to", string(jsonlexporter.LayoutCompact), usage+": compact, console or otlp_json")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{"compact", "console", "otlp_json"}, cobra.ShellCompDirectiveNoFileComp))
}

// reading reads the files of one command and says what is wrong with them.
type reading struct {
	*archive.Files
	stderr   io.Writer
	progress *progress

	problems int64
	perFile  map[string]int
}

// namedProblems is how many problems of a file are named; the others are counted.
const namedProblems = 10

// startReading finds the files of the arguments. What is wrong goes to stderr, and progress too, where that does not disturb.
func startReading(cmd *cobra.Command, args []string) (*reading, error) {
	inputs, err := archive.Find(args)
	if err != nil {
		return nil, err
	}
	return readInputs(cmd, inputs), nil
}

func readInputs(cmd *cobra.Command, inputs []archive.Input) *reading {
	r := &reading{stderr: cmd.ErrOrStderr(), perFile: map[string]int{}, progress: newProgress(cmd)}
	r.Files = archive.NewFiles(inputs, r.problem)
	r.OnFile = r.file
	return r
}

// next returns the next record that the filter keeps, or io.EOF.
func (r *reading) next(f *archive.Filter) (archive.Record, archive.Input, error) {
	for {
		rec, in, err := r.Next()
		if err != nil {
			r.progress.end()
			return rec, in, err
		}
		r.progress.update(r.Progress)
		if f == nil || f.Keep(rec) {
			return rec, in, nil
		}
	}
}

func (r *reading) problem(in archive.Input, err error) {
	r.problems++
	if r.perFile[in.Path]++; r.perFile[in.Path] <= namedProblems {
		r.say("%v\n", err)
	}
}

func (r *reading) file(in archive.Input, s archive.Stats) {
	if n := r.perFile[in.Path]; n > namedProblems {
		r.say("%s: %s more\n", in.Name(), count(int64(n-namedProblems), "damaged place"))
	}
	if s.Foreign > 0 {
		r.say("%s: %s of other output passed over\n", in.Name(), count(s.Foreign, "line"))
	}
	if s.Torn > 0 {
		r.say("%s: %s\n", in.Name(), describeTorn(in, s))
	}
}

func (r *reading) say(format string, args ...any) {
	r.progress.clear()
	fmt.Fprintf(r.stderr, format, args...)
}

// done is the error of a command that has done all it could: that not everything could be read.
func (r *reading) done() error {
	r.progress.end()
	if r.problems == 0 {
		return nil
	}
	return fmt.Errorf("%s, what could be read was read; `lenscol jsonl verify` lists them all", count(r.problems, "damaged place"))
}

// describeTorn says what the torn end of a file is.
func describeTorn(in archive.Input, s archive.Stats) string {
	what := "line"
	if s.Compression != archive.Plain {
		what = "frame"
	}
	if in.Rotated {
		return fmt.Sprintf("the last %d bytes are no whole %s, though the file was ended", s.Torn, what)
	}
	return fmt.Sprintf("the last %d bytes are no whole %s: one that is being written, or that a killed writer left and never acknowledged", s.Torn, what)
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(n) + " " + noun + "s"
}

// progress is a line on a terminal that says how far a command is, from its second second on.
type progress struct {
	out   io.Writer // nil where there is no terminal
	now   func() time.Time
	start time.Time
	last  time.Time
	calls int
	shown bool
}

const (
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
	progressCalls = 256 // records between two looks at the clock
)

// newProgress shows nothing unless stderr is a terminal and what the command prints goes elsewhere.
func newProgress(cmd *cobra.Command) *progress {
	p := &progress{now: time.Now}
	if cmd.ErrOrStderr() == io.Writer(os.Stderr) && term.IsTerminal(int(os.Stderr.Fd())) &&
		!(cmd.OutOrStdout() == io.Writer(os.Stdout) && term.IsTerminal(int(os.Stdout.Fd())) && cmd.Name() == "cat") {
		p.out = os.Stderr
	}
	p.start = p.now()
	return p
}

func (p *progress) update(at func() (read, size int64)) {
	if p.out == nil {
		return
	}
	if p.calls++; p.calls%progressCalls != 0 {
		return
	}
	now := p.now()
	if now.Sub(p.start) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	read, size := at()
	fmt.Fprintf(p.out, "\r\x1b[K%s", progressLine(read, size, now.Sub(p.start)))
}

// progressLine is a bar where the whole is known.
func progressLine(read, size int64, elapsed time.Duration) string {
	line := fmt.Sprintf("%s, %s/s", humanize.IBytes(uint64(read)), humanize.IBytes(uint64(float64(read)/elapsed.Seconds())))
	if size <= 0 {
		return line
	}
	const width = 30
	part := min(float64(read)/float64(size), 1)
	filled := int(part * width)
	return fmt.Sprintf("[%s%s] %3.0f%% %s", strings.Repeat("=", filled), strings.Repeat(" ", width-filled), 100*part, line)
}

// clear makes room for a line of its own.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) end() { p.clear() }
