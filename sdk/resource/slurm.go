// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource // import "github.com/lenscol/lenscol/sdk/resource"

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lenscol/lenscol/sdk/semconv"
)

// SLURM is the job, as NeMo Lens after 0.2 describes it; empty outside of SLURM. All parts of a heterogeneous job have
// the id of the first one.
func (d *Detector) SLURM() []Attribute {
	f := facts{d: d}
	job, jobSource, isJob := d.slurmJob()
	if isJob {
		array, arraySource, isArray := d.env("SLURM_ARRAY_JOB_ID")
		task, taskSource, hasTask := d.env("SLURM_ARRAY_TASK_ID")
		if !isArray {
			array, arraySource = job, jobSource
		}
		if !hasTask {
			task, taskSource = "0", "default"
		}
		if isArray && hasTask {
			f.add(semconv.SlurmJobID, array+"_"+task, arraySource)
		} else {
			f.add(semconv.SlurmJobID, job, jobSource)
		}
		f.text(semconv.SlurmJobIDRaw, "SLURM_JOB_ID", "SLURM_JOBID")
		f.add(semconv.SlurmArrayJobID, array, arraySource)
		f.add(semconv.SlurmArrayTaskID, task, taskSource)
		if !f.integer(semconv.SlurmArrayCount, "SLURM_ARRAY_TASK_COUNT") {
			f.add(semconv.SlurmArrayCount, int64(1), "default")
		}
		if !f.integer(semconv.SlurmRestartCount, "SLURM_RESTART_COUNT") {
			f.add(semconv.SlurmRestartCount, int64(0), "default")
		}
	}
	f.text(semconv.SlurmSLUID, "LENS_SLURM_SLUID", "NV_LAUNCH_SLUID")
	f.text(semconv.SlurmArraySLUID, "LENS_SLURM_ARRAY_SLUID", "NV_LAUNCH_ARRAY_SLUID")
	f.text(semconv.SlurmJobName, "SLURM_JOB_NAME")
	f.text(semconv.SlurmJobUser, "SLURM_JOB_USER")
	f.text(semconv.SlurmJobAccount, "SLURM_JOB_ACCOUNT")
	f.text(semconv.SlurmJobQOS, "SLURM_JOB_QOS")
	f.text(semconv.SlurmJobReservation, "SLURM_JOB_RESERVATION")
	f.text(semconv.SlurmClusterName, "SLURM_CLUSTER_NAME")
	f.text(semconv.SlurmPartition, "SLURM_JOB_PARTITION", "SLURM_PARTITION")
	f.integer(semconv.SlurmNNodes, "SLURM_JOB_NUM_NODES", "SLURM_NNODES")
	f.integer(semconv.SlurmNTasks, "SLURM_NTASKS")
	f.text(semconv.SlurmSegment, "SLURM_SEGMENT")
	f.text(semconv.SlurmTopologyAddr, "SLURM_TOPOLOGY_ADDR")
	f.text(semconv.SlurmTopologyAddrPattern, "SLURM_TOPOLOGY_ADDR_PATTERN")
	if _, _, inStep := d.env("SLURM_STEP_ID", "SLURM_STEPID"); !inStep {
		f.text(semconv.SlurmHeadNodeName, "SLURMD_NODENAME")
	}
	return f.list
}

// SLURMOld is the job as NeMo Lens up to 0.2 describes it: seven texts, the job id without the array task.
func (d *Detector) SLURMOld() []Attribute {
	job, source, ok := d.slurmJob()
	if !ok {
		return nil
	}
	f := facts{d: d}
	f.add(semconv.SlurmJobID, job, source)
	f.text(semconv.SlurmJobName, "SLURM_JOB_NAME")
	f.text(semconv.SlurmNodelistOld, "SLURM_NODELIST", "SLURM_JOB_NODELIST")
	f.text(semconv.SlurmNNodes, "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
	f.text(semconv.SlurmNTasks, "SLURM_NTASKS")
	f.text(semconv.SlurmPartition, "SLURM_PARTITION", "SLURM_JOB_PARTITION")
	f.text(semconv.SlurmClusterName, "SLURM_CLUSTER_NAME")
	return f.list
}

// maxHetSize bounds how many parts a heterogeneous job is taken to have.
const maxHetSize = 128

// SLURMJobIDs are all ids under which a process of this job may name it: raw, of the array's task, and of every part of a
// heterogeneous job, which have sequential ids (SLURM, heterogeneous jobs). None outside of SLURM.
func (d *Detector) SLURMJobIDs() (ids []string) {
	job, _, ok := d.slurmJob()
	if !ok {
		return nil
	}
	ids = append(ids, job)
	if raw, _, ok := d.env("SLURM_JOB_ID", "SLURM_JOBID"); ok && raw != job {
		ids = append(ids, raw)
	}
	array, _, isArray := d.env("SLURM_ARRAY_JOB_ID")
	if task, _, ok := d.env("SLURM_ARRAY_TASK_ID"); ok && isArray {
		ids = append(ids, array+"_"+task)
	}
	first, err := strconv.ParseUint(job, 10, 32)
	size, _, _ := d.env("SLURM_HET_SIZE")
	if parts, errSize := strconv.ParseUint(size, 10, 32); err == nil && errSize == nil {
		for i := range min(parts, maxHetSize) {
			if id := strconv.FormatUint(first+i, 10); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// slurmJob is the id of the job that all of its ranks share: of the first part, where it is heterogeneous.
func (d *Detector) slurmJob() (id, source string, ok bool) {
	for _, name := range []string{"SLURM_HET_JOB_ID", "SLURM_JOB_ID_HET_GROUP_0", "SLURM_JOB_ID", "SLURM_JOBID"} {
		id, source, ok = d.env(name)
		if ok && strings.Trim(id, "0123456789") == "" {
			return id, source, true
		}
		if ok {
			d.refuse(source, "no job id")
		}
	}
	return "", "", false
}
