// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package reckon turns SLURM's accounting of jobs into spans: how long a job waited, ran, and stood between its steps, which no
// process of the job can tell (NeMo Lens, SLURM telemetry reckoner).
package reckon // import "github.com/lenscol/lenscol/internal/reckon"

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Row is a row of sacct: an allocation, which is one attempt of a job, or a step of one.
type Row struct {
	JobID    string // as people write it: 5, 2_0 of an array, 7+1 of a heterogeneous job, each with .step
	Raw      string // JobIDRaw: 5, 5.batch, 5.0
	Attempt  string // what the rows of one attempt share: SLUID, else DBIndex, else ""
	SLUID    string
	Cluster  string
	Restarts int // -1 where SLURM does not say

	Submit, Eligible, Start, End time.Time // zero: not known, or not yet

	State, ExitCode, DerivedExitCode, Reason string
	Nodes                                    int
	NodeList, Name                           string
}

// fields are what is asked of sacct, as far as it knows them. The name comes last: it may hold the separator.
var fields = []string{
	"SLUID", "JobID", "JobIDRaw", "DBIndex", "Cluster", "Submit", "Eligible", "Start", "End", "State", "ExitCode", "DerivedExitCode", "Reason", "Restarts",
	"NNodes", "NodeList", "JobName",
}

// lensFields are those of files without a heading: what NeMo Lens asks for, in its order.
var lensFields = []string{
	"SLUID", "JobIDRaw", "Submit", "Eligible", "Start", "End", "State", "ExitCode", "DerivedExitCode", "Reason", "Restarts", "NNodes", "NodeList", "JobName",
}

// elsewhere are those of fields that every sacct of the last years knows.
const elsewhere = "JobID,JobIDRaw,DBIndex,Cluster,Submit,Eligible,Start,End,State,ExitCode,DerivedExitCode,Reason,NNodes,NodeList,JobName"

const separator = "|"

// Run asks sacct for jobs, as many as the list names: 5, 2_1, or 5,7. Every attempt is in the answer, and times are asked for in
// epoch seconds, so that no time zone is guessed.
func Run(ctx context.Context, jobs string) ([]Row, error) {
	if !jobList.MatchString(jobs) {
		return nil, fmt.Errorf("--job %q: must be a job id such as 12345, 12345_7 or 12345+1, or several with commas between", jobs)
	}
	known, err := sacct(ctx, "--helpformat")
	if err != nil {
		return nil, err
	}
	asked := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return !slices.Contains(strings.Fields(string(known)), f) })
	out, err := sacct(ctx, "--jobs", jobs, "--duplicates", "--parsable2", "--format", strings.Join(asked, ","))
	if err != nil {
		return nil, err
	}
	return Parse(bytes.NewReader(out), time.UTC)
}

var jobList = regexp.MustCompile(`^[0-9]+([_+][0-9]+)?(,[0-9]+([_+][0-9]+)?)*$`)

func sacct(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "sacct", args...)
	cmd.Env = append(os.Environ(), "SLURM_TIME_FORMAT=%s", "TZ=UTC")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("run sacct: there is no such program here; on another machine write `sacct -j ID -D -P -o " + elsewhere + "` to a file, and give that to --from")
	case err != nil:
		return nil, fmt.Errorf("run sacct: %w: %.500s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// maxLine bounds a row, in bytes: node lists of large jobs are long.
const maxLine = 1 << 20

// Parse reads what `sacct -D -P` printed: a heading and rows, or rows alone in NeMo Lens's order. Times are epoch seconds,
// RFC 3339, or SLURM's own form without a zone, which is taken to be in zone.
func Parse(r io.Reader, zone *time.Location) ([]Row, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var columns []string
	var rows []Row
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if line == "" {
			continue
		}
		cells := strings.Split(line, separator)
		if columns == nil {
			if columns = heading(cells); columns != nil {
				continue
			}
			columns = lensFields
		}
		if n := len(columns); len(cells) < n || len(cells) > n && columns[n-1] != "JobName" {
			return nil, fmt.Errorf("line %d: it has %d columns, must be %d; names, comments and commands may hold a %s, so ask sacct for few columns and JobName last: -o %s", number, len(cells), n, separator, elsewhere)
		}
		row, err := parseRow(columns, cells, zone)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read rows of sacct: %w", err)
	}
	if len(rows) == 0 {
		return nil, errors.New("sacct has no row of such a job")
	}
	return rows, nil
}

// heading returns cells where they are names of columns, among them those that must be there.
func heading(cells []string) []string {
	for _, name := range []string{"JobIDRaw", "Submit", "Start", "End"} {
		if !slices.Contains(cells, name) {
			return nil
		}
	}
	return cells
}

func parseRow(columns, cells []string, zone *time.Location) (row Row, err error) {
	row.Restarts = -1
	index := ""
	for i, column := range columns {
		cell := cells[i]
		if column == "JobName" && i == len(columns)-1 {
			cell = strings.Join(cells[i:], separator)
		}
		switch column {
		case "SLUID":
			row.SLUID = known(cell)
		case "DBIndex":
			index = known(cell)
		case "JobID":
			row.JobID = cell
		case "JobIDRaw":
			row.Raw = cell
		case "Cluster":
			row.Cluster = cell
		case "Submit":
			row.Submit, err = parseTime(column, cell, zone, err)
		case "Eligible":
			row.Eligible, err = parseTime(column, cell, zone, err)
		case "Start":
			row.Start, err = parseTime(column, cell, zone, err)
		case "End":
			row.End, err = parseTime(column, cell, zone, err)
		case "State":
			row.State = cell
		case "ExitCode":
			row.ExitCode = cell
		case "DerivedExitCode":
			row.DerivedExitCode = cell
		case "Reason":
			row.Reason = known(cell)
		case "Restarts":
			if n, convErr := strconv.Atoi(cell); convErr == nil {
				row.Restarts = n
			}
		case "NNodes":
			row.Nodes, _ = strconv.Atoi(cell)
		case "NodeList":
			row.NodeList = cell
		case "JobName":
			row.Name = cell
		}
	}
	if !rawID.MatchString(row.Raw) {
		return Row{}, fmt.Errorf("JobIDRaw %.64q is no job id", row.Raw)
	}
	if row.JobID == "" {
		row.JobID = row.Raw
	}
	row.Attempt = row.SLUID
	if row.Attempt == "" {
		row.Attempt = index
	}
	return row, err
}

var rawID = regexp.MustCompile(`^[0-9]+(\.[A-Za-z0-9_+]+)?$`)

// known is "" for the words that SLURM writes where it knows nothing.
func known(cell string) string {
	switch cell {
	case "Unknown", "None", "None assigned", "N/A", "INVALID":
		return ""
	}
	return cell
}

// parseTime reads a time; err is an earlier error of the row, which stays.
func parseTime(column, cell string, zone *time.Location, earlier error) (time.Time, error) {
	if known(cell) == "" {
		return time.Time{}, earlier
	}
	if seconds, err := strconv.ParseInt(cell, 10, 64); err == nil && seconds > 0 && seconds < 1<<33 {
		return time.Unix(seconds, 0), earlier
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, cell, zone); err == nil && t.Year() > 1970 && t.Year() < 2242 {
			return t, earlier
		}
	}
	return time.Time{}, errors.Join(earlier, fmt.Errorf("%s %.64q is no time: must be epoch seconds or like 2026-11-29T21:13:06", column, cell))
}
