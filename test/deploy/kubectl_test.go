// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package deploy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// kinds are what the API server below serves, by group and version: the plural, and whether it stands in a namespace.
var kinds = map[string]map[string]struct {
	plural     string
	namespaced bool
}{
	"v1": {"Namespace": {"namespaces", false}, "Secret": {"secrets", true}, "ConfigMap": {"configmaps", true}, "Service": {"services", true},
		"ServiceAccount": {"serviceaccounts", true}},
	"apps/v1":                      {"StatefulSet": {"statefulsets", true}, "DaemonSet": {"daemonsets", true}},
	"autoscaling/v2":               {"HorizontalPodAutoscaler": {"horizontalpodautoscalers", true}},
	"policy/v1":                    {"PodDisruptionBudget": {"poddisruptionbudgets", true}},
	"networking.k8s.io/v1":         {"NetworkPolicy": {"networkpolicies", true}},
	"rbac.authorization.k8s.io/v1": {"ClusterRole": {"clusterroles", false}, "ClusterRoleBinding": {"clusterrolebindings", false}},
}

// strict reads objects as Kubernetes's own types, and refuses what these do not know.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// apiServer stands in for that of Kubernetes, which is no Debian package: it says what kubectl asks before it sends anything, and keeps what is
// created. It knows no more kinds than it must, refuses what has no namespace or is there already, and changes nothing.
type apiServer struct {
	mu      sync.Mutex
	objects map[string]object // by path
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	fail := func(code int, reason string) {
		answer(code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason + ": " + r.Method + " " + r.URL.Path})
	}
	url := strings.Trim(r.URL.Path, "/")
	switch {
	case url == "version":
		answer(http.StatusOK, object{"major": "1", "minor": "34", "gitVersion": "v1.34.1"})
	case url == "api":
		answer(http.StatusOK, object{"kind": "APIVersions", "versions": []string{"v1"}})
	case url == "apis":
		groups := []object{}
		for version := range kinds {
			if group, v, ok := strings.Cut(version, "/"); ok {
				preferred := object{"groupVersion": version, "version": v}
				groups = append(groups, object{"name": group, "versions": []object{preferred}, "preferredVersion": preferred})
			}
		}
		answer(http.StatusOK, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
	case url == "openapi/v3":
		paths := object{}
		for version := range kinds {
			paths[root(version)] = object{"serverRelativeURL": "/openapi/v3/" + root(version)}
		}
		answer(http.StatusOK, object{"paths": paths})
	case strings.HasPrefix(url, "openapi/v3/"):
		// That the fields of each kind are checked by the server: the test does that, with Kubernetes's schemas.
		paths := object{}
		for version, of := range kinds {
			for kind, resource := range of {
				if strings.HasSuffix(url, "/"+root(version)) {
					group, v, ok := strings.Cut(version, "/")
					if !ok {
						group, v = "", version
					}
					paths["/"+root(version)+"/"+resource.plural+"/{name}"] = object{"patch": object{
						"parameters":                      []object{{"name": "fieldValidation", "in": "query", "schema": object{"type": "string"}}},
						"x-kubernetes-group-version-kind": object{"group": group, "version": v, "kind": kind},
						"responses":                       object{},
					}}
				}
			}
		}
		answer(http.StatusOK, object{"openapi": "3.0.0", "info": object{"title": "Kubernetes", "version": "v1.34.1"}, "paths": paths})
	default:
		for version, of := range kinds {
			rest, ok := strings.CutPrefix(url, root(version))
			if !ok || rest != "" && rest[0] != '/' {
				continue
			}
			if rest == "" {
				resources := []object{}
				for kind, resource := range of {
					resources = append(resources, object{"name": resource.plural, "kind": kind, "namespaced": resource.namespaced, "verbs": []string{"create", "get", "patch"}})
				}
				answer(http.StatusOK, object{"kind": "APIResourceList", "groupVersion": version, "resources": resources})
				return
			}
			for kind, resource := range of {
				parts := strings.Split(rest[1:], "/")
				if resource.namespaced {
					if len(parts) < 2 || parts[0] != "namespaces" {
						continue
					}
					if s.objects["api/v1/namespaces/"+parts[1]] == nil && len(parts) > 2 {
						fail(http.StatusNotFound, "NotFound")
						return
					}
					parts = parts[2:]
				}
				if len(parts) == 0 || parts[0] != resource.plural || len(parts) > 2 {
					continue
				}
				switch o := s.objects[url]; {
				case r.Method == http.MethodGet && len(parts) == 2 && o != nil:
					answer(http.StatusOK, o)
				case r.Method == http.MethodGet && len(parts) == 2:
					fail(http.StatusNotFound, "NotFound")
				case r.Method == http.MethodPost && len(parts) == 1:
					text, _ := io.ReadAll(r.Body)
					typed, is, err := strict.Decode(text, nil, nil) // kubectl sends protobuf, or JSON.
					if err != nil || is.Kind != kind || is.GroupVersion().String() != version {
						fail(http.StatusBadRequest, fmt.Sprintf("%v: %v", is, err))
						return
					}
					typed.GetObjectKind().SetGroupVersionKind(*is)
					text, _ = json.Marshal(typed)
					_ = json.Unmarshal(text, &o)
					name := path.Join(url, fmt.Sprint(o.at("metadata", "name")))
					if s.objects[name] != nil {
						fail(http.StatusConflict, "AlreadyExists")
						return
					}
					s.objects[name] = o
					answer(http.StatusCreated, o)
				default:
					fail(http.StatusMethodNotAllowed, "MethodNotAllowed")
				}
				return
			}
		}
		fail(http.StatusNotFound, "NotFound")
	}
}

// root is where a group and version stands below the server.
func root(version string) string {
	if strings.Contains(version, "/") {
		return "apis/" + version
	}
	return "api/" + version
}

// A real kubectl has created all that a pod asks for, of which Kubernetes's schemas take every field.
func followKubernetes(t *testing.T, commands string) {
	kubectl := filepath.Join(debian13(t), "usr/bin")
	dir := checkout(t)
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} { // What the reader has.
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("-----BEGIN\n"), 0o600))
	}
	server := &apiServer{objects: map[string]object{}}
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(config, []byte(`{apiVersion: v1, kind: Config, current-context: here,
  clusters: [{name: here, cluster: {server: "`+listener.URL+`"}}], users: [{name: here, user: {}}],
  contexts: [{name: here, context: {cluster: here, user: here}}]}`), 0o600))
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", commands)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+kubectl+":"+os.Getenv("PATH"), "KUBECONFIG="+config, "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)

	created := map[string]bool{}
	file := filepath.Join(t.TempDir(), "created.yaml")
	var all strings.Builder
	for _, o := range server.objects {
		created[fmt.Sprint(o["kind"], " ", o.at("metadata", "name"))] = true
		text, err := yaml.Marshal(map[string]any(o))
		require.NoError(t, err)
		all.WriteString("---\n" + string(text))
	}
	require.NoError(t, os.WriteFile(file, []byte(all.String()), 0o600))
	for _, want := range []string{"Namespace lenscol", "Secret lenscol-token", "Secret lenscol-tls", "StatefulSet lenscol-gateway", "DaemonSet lenscol-agent"} {
		require.True(t, created[want], "%s: %v\n%s", want, created, out)
	}
	for _, o := range server.objects {
		each(map[string]any(o), func(m map[string]any) {
			for _, ref := range []string{"secretName", "serviceAccountName"} {
				kind := map[string]string{"secretName": "Secret ", "serviceAccountName": "ServiceAccount "}[ref]
				if name, is := m[ref].(string); is {
					require.True(t, created[kind+name], "%s of %v", ref, o.at("metadata", "name"))
				}
			}
		})
	}
	if validate := os.Getenv("LENSCOL_KUBERNETES_VALIDATE"); validate != "" {
		run(t, ".", validate, "--strict", file)
	}
}
