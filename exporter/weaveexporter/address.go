// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const (
	cloudHost  = "trace.wandb.ai"
	cloudURL   = "https://" + cloudHost
	callsPath  = "/otel/v1/traces"        // of the calls: Traces, Threads, runs
	agentsPath = "/agents/otel/v1/traces" // of the Agents view

	// dedicatedPath stands before both on a dedicated instance, but not in the cloud.
	dedicatedPath = "/traces"
)

// obsoleteHosts are those of older documentation, and W&B's own site; none of them takes traces now.
var obsoleteHosts = []string{"api.wandb.ai", "traces.wandb.ai", "wandb.ai", "www.wandb.ai", "app.wandb.ai"}

// weaveOf is the base URL of the W&B instance whose address is wandb; empty: the cloud.
func weaveOf(wandb string) string {
	u, err := url.Parse(wandb)
	if wandb == "" || err == nil && slices.Contains(obsoleteHosts, u.Hostname()) {
		return cloudURL
	}
	return strings.TrimSuffix(strings.TrimRight(wandb, "/"), dedicatedPath) + dedicatedPath
}

// parseBaseURL returns the base URL, without a slash at its end, that base_url means: what stands before /otel/v1/traces, or a whole
// address, or what other configs want, which ends in /otel. An address that Weave does not have is an error that says the right one.
func parseBaseURL(key, text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("%s: %q is no http or https URL; the cloud's is %s", key, redactUserinfo(text), cloudURL)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%s: %s://%s holds more than a host and a path; the key belongs into api_key", key, u.Scheme, u.Host)
	}
	host, path := u.Hostname(), strings.TrimRight(u.Path, "/")
	base := func(prefix string) string { return u.Scheme + "://" + u.Host + prefix }
	dedicated := strings.HasSuffix(host, ".wandb.io")
	if u.Scheme == "http" && (host == cloudHost || dedicated) {
		return "", fmt.Errorf("%s: http://%s would send the key in the clear: use https://%[2]s", key, u.Host)
	}
	if slices.Contains(obsoleteHosts, host) {
		return "", fmt.Errorf("%s: %s does not take traces: use %s", key, host, cloudURL)
	}
	for _, end := range []string{agentsPath, callsPath, "/agents/otel", "/otel"} {
		if rest, ok := strings.CutSuffix(path, end); ok {
			path = rest
			break
		}
	}
	switch right := basePath(path); {
	case right != path:
		return "", fmt.Errorf("%s: %s holds more than what stands before %s: use %s", key, text, callsPath, base(right))
	case host == cloudHost && path != "":
		return "", fmt.Errorf("%s: %s has nothing at %s: use %s", key, host, path, cloudURL)
	case path == "" && dedicated:
		path = dedicatedPath // All dedicated instances have it.
	case path != "" && !strings.HasSuffix(path, dedicatedPath):
		return "", fmt.Errorf("%s: Weave has nothing at %s: use what stands before %s, such as %s or, for a dedicated instance, %s",
			key, path, callsPath, base(""), base(dedicatedPath))
	}
	return base(path), nil
}

// basePath is what may stand before the paths of Weave in path: nothing, or a prefix up to the first /traces. The path of traces given
// twice, or that of another signal, is longer.
func basePath(path string) string {
	segments := strings.Split(path, "/")
	i := slices.IndexFunc(segments, func(s string) bool { return slices.Contains([]string{"traces", "otel", "agents", "v1"}, s) })
	switch {
	case i < 0:
		return path
	case segments[i] == "traces":
		i++
	}
	return strings.Join(segments[:i], "/")
}

// parseHost returns the base URL of a dedicated instance: host is its name, with or without scheme, port and /traces.
func parseHost(host string) (string, error) {
	text := host
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	if u, err := url.Parse(text); err == nil && u.Hostname() == cloudHost {
		return "", fmt.Errorf("host: %s is the cloud, not a dedicated instance: leave host out", cloudHost)
	}
	base, err := parseBaseURL("host", text)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(base, dedicatedPath) + dedicatedPath, nil
}

func redactUserinfo(text string) string {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		return "…" + text[at:]
	}
	return text
}
