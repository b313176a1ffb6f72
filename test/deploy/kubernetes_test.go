// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/lenscol/lenscol/internal/testbed"
)

// object is a Kubernetes object, as YAML has it.
type object map[string]any

// at is the value at a path of keys, nil where there is none.
func (o object) at(path ...string) any {
	var value any = map[string]any(o)
	for _, key := range path {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return value
}

// container is lenscol's container in a rendered overlay.
type container struct {
	Image           string
	RestartPolicy   string `yaml:"restartPolicy"`
	Args            []string
	Env             []struct{ Name, Value string }
	SecurityContext map[string]any `yaml:"securityContext"`
	Resources       struct{ Limits map[string]string }
	VolumeMounts    []struct{ Name, MountPath string } `yaml:"volumeMounts"`
	LivenessProbe   probe                              `yaml:"livenessProbe"`
	ReadinessProbe  probe                              `yaml:"readinessProbe"`
}

type probe struct {
	HTTPGet struct {
		Path string
		Port string
	} `yaml:"httpGet"`
}

// render renders an overlay as kubectl apply -k does, and holds it against the schemas of Kubernetes.
func render(t *testing.T, overlay string) []object {
	t.Helper()
	text := run(t, deployed(t, "kubernetes", "overlays", overlay), tool(t, "sigs.k8s.io/kustomize/kustomize/v5"), "build", ".")
	path := filepath.Join(t.TempDir(), overlay+".yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	if validate := os.Getenv("LENSCOL_KUBERNETES_VALIDATE"); validate == "" {
		t.Log("LENSCOL_KUBERNETES_VALIDATE is not set: the schemas are SKIPPED")
	} else {
		run(t, ".", validate, "--strict", path)
	}
	var objects []object
	for decoder := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o map[string]any
		if err := decoder.Decode(&o); err != nil {
			require.Equal(t, "EOF", err.Error())
			return objects
		}
		objects = append(objects, o)
	}
}

// only is the object of a kind, which there is one of.
func only(t *testing.T, objects []object, kind string) object {
	t.Helper()
	objects = slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return o["kind"] != kind })
	require.Len(t, objects, 1, kind)
	return objects[0]
}

// as decodes what is at a path into a type of its own.
func as[T any](t *testing.T, value any) (to T) {
	t.Helper()
	text, err := yaml.Marshal(value)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &to))
	return to
}

var overlays = []struct{ name, kind, containers string }{
	{"sidecar", "Job", "initContainers"},
	{"daemonset", "DaemonSet", "containers"},
	{"gateway", "StatefulSet", "containers"},
}

// Each overlay renders to valid objects, runs hardened, is probed, and has configs that lenscol takes.
func TestKubernetes(t *testing.T) {
	user := final(t)["USER"][0]
	for _, tt := range overlays {
		t.Run(tt.name, func(t *testing.T) {
			objects := render(t, tt.name)
			pod := only(t, objects, tt.kind).at("spec", "template", "spec")
			lenscol := as[[]container](t, object(pod.(map[string]any)).at(tt.containers))[0]
			require.Equal(t, compose(t, "compose.file.yaml")["lenscol"].Image, lenscol.Image)
			require.Equal(t, map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
				"runAsUser": 65532, "runAsGroup": 65532, "capabilities": map[string]any{"drop": []any{"ALL"}},
				"seccompProfile": map[string]any{"type": "RuntimeDefault"}}, lenscol.SecurityContext)
			require.True(t, strings.HasPrefix(user, "65532:"))
			require.NotEmpty(t, lenscol.Resources.Limits["memory"])
			require.Equal(t, "/live", lenscol.LivenessProbe.HTTPGet.Path)
			require.Equal(t, "/ready", lenscol.ReadinessProbe.HTTPGet.Path)

			args, env := mounted(t, lenscol, only(t, objects, "ConfigMap"))
			cmd := exec.CommandContext(t.Context(), testbed.Binary(t), append([]string{"validate"}, args...)...)
			cmd.Env = env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)

			// Rights in the cluster are those of k8s_attributes alone.
			roles := slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return o["apiVersion"] != "rbac.authorization.k8s.io/v1" })
			agent, _ := only(t, objects, "ConfigMap").at("data", "agent.yaml").(string)
			uses := strings.Contains(agent, "k8s_attributes")
			require.Equal(t, uses, len(roles) > 0)
		})
	}
}

// mounted gives a container's arguments and variables as they are in the pod, with the config map's files in a folder of the test and
// stand-ins for what the cluster fills in.
func mounted(t *testing.T, c container, configs object) (args, env []string) {
	dir := t.TempDir()
	for name, text := range configs.at("data").(map[string]any) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text.(string)), 0o600))
	}
	for _, arg := range c.Args {
		arg = strings.ReplaceAll(arg, "/etc/lenscol/config", dir)
		args = append(args, strings.ReplaceAll(arg, "--config=/", "--config=file:/"))
	}
	env = slices.Clone(final(t)["ENV"])
	for _, v := range c.Env {
		if v.Value == "" {
			v.Value = "from-the-cluster-01234"
		}
		env = append(env, v.Name+"="+v.Value)
	}
	return args, env
}

// The gateway's service, scaling and budget are those of its pods, and so is the network policy.
func TestKubernetesSelectors(t *testing.T) {
	objects := render(t, "gateway")
	set := only(t, objects, "StatefulSet")
	labels := set.at("spec", "template", "metadata", "labels")
	require.Equal(t, labels, set.at("spec", "selector", "matchLabels"))
	require.Equal(t, labels, only(t, objects, "PodDisruptionBudget").at("spec", "selector", "matchLabels"))
	require.Equal(t, set.at("metadata", "name"), only(t, objects, "HorizontalPodAutoscaler").at("spec", "scaleTargetRef", "name"))
	for _, o := range objects {
		if o["kind"] == "Service" {
			require.Equal(t, labels, o.at("spec", "selector"))
		}
	}
	policy := only(t, objects, "NetworkPolicy").at("spec", "podSelector", "matchLabels").(map[string]any)
	for _, overlay := range []string{"gateway", "daemonset"} {
		kind := map[string]string{"gateway": "StatefulSet", "daemonset": "DaemonSet"}[overlay]
		pods := only(t, render(t, overlay), kind).at("spec", "template", "metadata", "labels").(map[string]any)
		for key, value := range policy {
			require.Equal(t, value, pods[key])
		}
	}
	role := only(t, render(t, "daemonset"), "ClusterRole")
	require.Equal(t, []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", "list", "watch"}}}, role["rules"])
}

// The sidecar starts as its pod has it, and answers the kubelet, which has no token.
func TestKubernetesProbes(t *testing.T) {
	objects := render(t, "sidecar")
	lenscol := as[[]container](t, only(t, objects, "Job").at("spec", "template", "spec", "initContainers"))[0]
	require.Equal(t, "Always", lenscol.RestartPolicy, "a sidecar")
	args, env := mounted(t, lenscol, only(t, objects, "ConfigMap"))
	health, metrics, prometheus := "127.0.0.1:"+testbed.FreePort(t), testbed.FreePort(t), "127.0.0.1:"+testbed.FreePort(t)
	dir := t.TempDir()
	testbed.Start(t, testbed.Options{
		Args: append(args, "--set", "extensions.lens_health.endpoint="+health, "--set", "exporters.prometheus.endpoint="+prometheus,
			"--set", "service.telemetry.metrics.readers=[{pull: {exporter: {prometheus: {host: 127.0.0.1, port: "+metrics+"}}}}]"),
		Env: append(env, "LENSCOL_DATA_DIR="+dir),
	})
	for _, probe := range []probe{lenscol.LivenessProbe, lenscol.ReadinessProbe} {
		require.Equal(t, "13133", probe.HTTPGet.Port)
		require.Eventually(t, func() bool { return status(t, "http://"+health+probe.HTTPGet.Path) == http.StatusOK },
			time.Minute, 100*time.Millisecond, probe.HTTPGet.Path)
	}
	require.Equal(t, http.StatusUnauthorized, status(t, "http://"+health+"/health"))
}

// status is the status code of a GET, 0 where nobody answers.
func status(t *testing.T, url string) int {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
