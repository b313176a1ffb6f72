// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"

	"github.com/lenscol/lenscol/sdk/resource"
)

func ExampleDetector_IDs() {
	env := map[string]string{"SLURM_JOB_ID": "12345", "SLURM_CLUSTER_NAME": "cluster-a"}
	d := resource.New(resource.System{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	for _, a := range d.IDs("") {
		fmt.Println(a.Key, a.Text())
	}
	// Output:
	// nv.dl.job.uuid be34ba0f-41ed-5d53-84c1-e3f3dd25bfd7
	// nv.dl.run.uuid 1a280c0a-71d2-54bd-bd00-fa82efd94290
}
