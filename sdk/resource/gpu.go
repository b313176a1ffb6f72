// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource // import "github.com/lenscol/lenscol/sdk/resource"

import (
	"strings"

	"github.com/lenscol/lenscol/sdk/semconv"
)

const (
	nvidia  = "/proc/driver/nvidia"
	maxGPUs = 1024
)

// GPU is how many GPUs the process may use, and what they are: CUDA_VISIBLE_DEVICES, else what the NVIDIA driver lists below
// /proc. The model is there where all are of one. Which of them a rank uses is not to be had without NVML.
func (d *Detector) GPU() []Attribute {
	f := facts{d: d}
	models := d.gpuModels()
	if list, ok := d.system.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		if n, ok := visibleDevices(list); ok {
			f.add(semconv.HostGPUCount, n, "env:CUDA_VISIBLE_DEVICES")
		} else {
			d.refuse("env:CUDA_VISIBLE_DEVICES", "no list of devices")
		}
	} else if len(models) > 0 {
		f.add(semconv.HostGPUCount, int64(len(models)), "file:"+nvidia+"/gpus")
	}
	if len(models) > 0 && models[0] != "" && allEqual(models) {
		f.add(semconv.GPUModel, models[0], "file:"+nvidia+"/gpus")
	}
	if version, ok := d.driverVersion(); ok {
		f.add(semconv.GPUDriverVersion, version, "file:"+nvidia+"/version")
	}
	return f.list
}

// visibleDevices counts as CUDA does: the list ends at the first -1.
func visibleDevices(list string) (n int64, ok bool) {
	if len(list) > 64<<10 {
		return 0, false
	}
	if strings.TrimSpace(list) == "" {
		return 0, true
	}
	for device := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(device) {
		case "-1":
			return n, true
		case "":
			return 0, false
		}
		n++
	}
	return n, true
}

// gpuModels lists the model of each GPU that the driver knows, "" for an unknown one.
func (d *Detector) gpuModels() (models []string) {
	root, err := d.open(nvidia)
	if err != nil {
		return nil
	}
	defer root.Close()
	folder, err := root.Open("gpus")
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(maxGPUs)
	for _, name := range names {
		text, err := readSmall(root, "gpus/"+name+"/information")
		if err != nil {
			continue
		}
		model := ""
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, "Model:"); ok {
				model, _ = d.take("file:"+nvidia+"/gpus", value)
			}
		}
		models = append(models, model)
	}
	return models
}

func (d *Detector) driverVersion() (string, bool) {
	text, _ := d.read(nvidia, "version")
	first, _, _ := strings.Cut(text, "\n")
	for word := range strings.FieldsSeq(first) {
		if strings.Contains(word, ".") && strings.Trim(word, "0123456789.") == "" {
			return d.take("file:"+nvidia+"/version", word)
		}
	}
	return "", false
}

func allEqual(list []string) bool {
	for _, other := range list {
		if other != list[0] {
			return false
		}
	}
	return true
}
