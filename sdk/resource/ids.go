// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource // import "github.com/lenscol/lenscol/sdk/resource"

import (
	"crypto/rand"
	"crypto/sha1" // uuid5 is defined on it
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// DefaultRunID is where a run id comes from when nobody says otherwise.
var DefaultRunID = []string{"env:NEMO_LENS_RUN_ID", "slurm", "torchelastic", "k8s_job"}

// CheckSource is the error of a source that RunID would not know, or that reads a variable that by its name holds a secret.
func CheckSource(source string) error {
	kind, name, _ := strings.Cut(source, ":")
	switch {
	case source == "slurm", source == "torchelastic", source == "k8s_job":
		return nil
	case kind == "env" && name != "":
		upper := strings.ToUpper(name)
		for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"} {
			if strings.Contains(upper, word) {
				return fmt.Errorf("%q: a variable with %s in its name is not read, its value would go into every resource", source, word)
			}
		}
		return nil
	case kind == "file" && filepath.IsAbs(name):
		return nil
	}
	return fmt.Errorf("%q is no source: must be env:NAME, slurm, torchelastic, k8s_job or file: and an absolute path", source)
}

// RunID is the id of the run, the same on every rank: that of the first source that has one.
//
//	env:NAME      a variable
//	slurm         the job id, of the first part of a heterogeneous job, as NeMo Lens takes it
//	torchelastic  TORCHELASTIC_RUN_ID, if it was given one (torchrun writes none else)
//	k8s_job       the name of the pod's job
//	file:PATH     the first line of a file of at most 64 KiB; a link out of its folder is not followed
func (d *Detector) RunID(sources ...string) (Attribute, bool) {
	for _, s := range sources {
		value, source, ok := "", "", false
		kind, name, _ := strings.Cut(s, ":")
		switch {
		case CheckSource(s) != nil:
		case kind == "env":
			value, source, ok = d.env(name)
		case kind == "slurm":
			value, source, ok = d.slurmJob()
		case kind == "torchelastic":
			value, source, ok = d.torchRunID()
		case kind == "k8s_job":
			value, source, ok = d.k8sJob()
		case kind == "file":
			var text string
			if text, ok = d.read(filepath.Dir(name), filepath.Base(name)); ok {
				text, _, _ = strings.Cut(text, "\n")
				source = s
				value, ok = d.take(source, text)
			}
		}
		if ok {
			return Attribute{Key: semconv.RunID, Value: value, Source: source}, true
		}
	}
	return Attribute{}, false
}

func (d *Detector) torchRunID() (id, source string, ok bool) {
	if id, source, ok = d.env("TORCHELASTIC_RUN_ID"); id == "none" {
		return "", "", false
	}
	return id, source, ok
}

// NewRunID makes an id as NeMo Lens does where it is given none: 12 hex digits.
func NewRunID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return hex.EncodeToString(b[:])
}

// IsGenerated reports whether id looks as if NeMo Lens had made it up for one process: 12 lower-case hex digits, of which one
// is a letter (a number may be a job's id).
func IsGenerated(id string) bool {
	if len(id) != 12 {
		return false
	}
	letter := false
	for i := range len(id) {
		switch c := id[i]; {
		case '0' <= c && c <= '9':
		case 'a' <= c && c <= 'f':
			letter = true
		default:
			return false
		}
	}
	return letter
}

// IDs are nv.dl.job.uuid and nv.dl.run.uuid, as NeMo Lens after 0.2 computes them: one id a job and one an attempt, the same
// on every rank without a word between them. Outside of SLURM the run's needs a run id, else TORCHELASTIC_RUN_ID. Two things differ:
//
//   - Outside of SLURM there is no job uuid. Lens gives all that has no job the one of the job "nojob", which tells nothing apart.
//   - All parts of a heterogeneous job have the ids of its first part. Lens takes SLURM_JOB_ID, another one in each part.
func (d *Detector) IDs(runID string) []Attribute {
	te, _, isElastic := d.env("TORCHELASTIC_RESTART_COUNT")
	job, _, isJob := d.slurmJob()
	if !isJob {
		if runID == "" {
			runID, _, _ = d.torchRunID()
		}
		if runID == "" {
			return nil
		}
		if !isElastic {
			te = "0"
		}
		return []Attribute{{Key: semconv.DLRunUUID, Value: UUID5("nemo.lens.run/local/" + runID + "/te" + te), Source: "uuid5"}}
	}
	cluster, _, ok := d.env("SLURM_CLUSTER_NAME")
	if !ok {
		cluster = "nocluster"
	}
	array, _, isArray := d.env("SLURM_ARRAY_JOB_ID")
	if isArray {
		job = array
	}
	run := cluster + "/" + job
	if !isArray {
		restarts, _, ok := d.env("SLURM_RESTART_COUNT")
		if !ok {
			restarts = "0"
		}
		run += "/sr" + restarts
	}
	if isElastic {
		run += "/te" + te
	}
	return []Attribute{
		{Key: semconv.DLJobUUID, Value: UUID5("nemo.lens.job/" + cluster + "/" + job), Source: "uuid5"},
		{Key: semconv.DLRunUUID, Value: UUID5("nemo.lens.run/" + run), Source: "uuid5"},
	}
}

// urlNamespace is the name space of URLs (RFC 9562, 6.6).
var urlNamespace = [16]byte{0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8}

// UUID5 is the uuid, version 5, of a name in the name space of URLs (RFC 9562, 5.5).
func UUID5(name string) string {
	sum := sha1.Sum(append(urlNamespace[:], name...))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
