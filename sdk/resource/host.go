// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource // import "github.com/lenscol/lenscol/sdk/resource"

import (
	"os"
	"strconv"
	"strings"

	"github.com/lenscol/lenscol/sdk/semconv"
)

const (
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	podInfo        = "/etc/podinfo" // where the Kubernetes documentation mounts the downward API
)

// jobLabels are the labels that name the job of a pod, of batch jobs and of Kubeflow's.
var jobLabels = []string{"batch.kubernetes.io/job-name", "job-name", "training.kubeflow.org/job-name"}

// Kubernetes is the pod; empty outside of Kubernetes. It comes from the variables K8S_NAMESPACE, K8S_POD_NAME, K8S_POD_UID,
// K8S_NODE_NAME, K8S_CONTAINER_NAME and K8S_JOB_NAME, which the downward API fills, else from the service account's
// namespace, the host name, and the labels of a downward API volume at /etc/podinfo.
func (d *Detector) Kubernetes() []Attribute {
	if !d.inKubernetes() {
		return nil
	}
	f := facts{d: d}
	if value, source, ok := d.env("K8S_NAMESPACE"); ok {
		f.add(semconv.K8sNamespaceName, value, source)
	} else if text, ok := d.read(serviceAccount, "namespace"); ok {
		source = "file:" + serviceAccount + "/namespace"
		if value, ok := d.take(source, text); ok {
			f.add(semconv.K8sNamespaceName, value, source)
		}
	}
	f.text(semconv.K8sPodName, "K8S_POD_NAME", "HOSTNAME")
	f.text(semconv.K8sPodUID, "K8S_POD_UID")
	f.text(semconv.K8sNodeName, "K8S_NODE_NAME")
	f.text(semconv.K8sContainerName, "K8S_CONTAINER_NAME")
	if name, source, ok := d.k8sJob(); ok {
		f.add(semconv.K8sJobName, name, source)
	}
	return f.list
}

func (d *Detector) inKubernetes() bool {
	if _, _, ok := d.env("KUBERNETES_SERVICE_HOST"); ok {
		return true
	}
	root, err := d.open(serviceAccount)
	if err != nil {
		return false
	}
	return root.Close() == nil
}

// k8sJob is the name of the job that all of its pods share.
func (d *Detector) k8sJob() (name, source string, ok bool) {
	if name, source, ok = d.env("K8S_JOB_NAME"); ok {
		return name, source, true
	}
	source = "file:" + podInfo + "/labels"
	text, _ := d.read(podInfo, "labels")
	for _, label := range jobLabels {
		for line := range strings.Lines(text) {
			key, quoted, _ := strings.Cut(strings.TrimSpace(line), "=")
			if key != label {
				continue
			}
			value, err := strconv.Unquote(quoted)
			if err != nil {
				d.refuse(source, label+" is not quoted")
				continue
			}
			if name, ok = d.take(source, value); ok {
				return name, source, true
			}
		}
	}
	return "", "", false
}

// Host is the machine's name.
func (d *Detector) Host() []Attribute {
	name, err := d.system.Hostname()
	if err != nil {
		d.refuse("hostname", err.Error())
		return nil
	}
	name, ok := d.take("hostname", name)
	if !ok {
		return nil
	}
	return []Attribute{{Key: semconv.HostName, Value: name, Source: "hostname"}}
}

// Process is this process's id.
func (d *Detector) Process() []Attribute {
	return []Attribute{{Key: semconv.ProcessPID, Value: int64(os.Getpid()), Source: "process"}}
}
