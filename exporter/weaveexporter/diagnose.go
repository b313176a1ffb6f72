// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/shape"
	"github.com/lenscol/lenscol/sdk/semconv"
)

// Check is one thing that has to be right for spans to reach Weave.
type Check struct {
	Name   string `json:"check"` // key, project, address, dns, tls or export
	Status string `json:"status"`
	Detail string `json:"detail"` // one line: what was found, or what is wrong and what would help; never the key
}

// The statuses of a Check.
const (
	CheckOK      = "ok"
	CheckFailed  = "failed"
	CheckSkipped = "skipped"
)

// checkTime bounds each step that waits for the network.
const checkTime = 5 * time.Second

// Diagnose goes the way of a span with an exporter's config, each step once: the key's form, the project, the address, its name in the
// DNS, the TLS handshake, and an export without spans. What builds on a step that failed is skipped.
func Diagnose(ctx context.Context, cfg *Config) []Check {
	checks := []Check{check("key", func() (string, error) { return checkKey(string(cfg.APIKey)) }), check("project", cfg.checkProject)}
	c, err := newClient(cfg, component.BuildInfo{Description: "lenscol doctor"})
	checks = append(checks, check("address", func() (string, error) { return urlOf(c, cfg.Mode), err }))
	for _, step := range []struct {
		name string
		try  func(context.Context) (string, error)
	}{{"dns", c.checkDNS}, {"tls", c.checkTLS}, {"export", c.checkExport}} {
		if last := checks[len(checks)-1]; last.Status == CheckFailed || err != nil {
			err = errors.New(last.Name)
			checks = append(checks, Check{step.name, CheckSkipped, "not tried"})
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, checkTime)
		checks = append(checks, check(step.name, func() (string, error) { return step.try(ctx) }))
		cancel()
	}
	return checks
}

// errSkip is the error of a check that does not apply.
type errSkip string

func (e errSkip) Error() string { return string(e) }

func check(name string, try func() (string, error)) Check {
	detail, err := try()
	var skip errSkip
	switch {
	case errors.As(err, &skip):
		return Check{name, CheckSkipped, err.Error()}
	case err != nil:
		return Check{name, CheckFailed, err.Error()}
	}
	return Check{name, CheckOK, detail}
}

// The forms of W&B's keys, the older one with the prefix that a self-managed server gives.
var (
	hexKey = regexp.MustCompile(`^(local-)?[0-9a-f]{40}$`)
	newKey = regexp.MustCompile(`^wandb_v1_[A-Za-z0-9_]{40,}$`)
)

func checkKey(key string) (string, error) {
	switch {
	case key == "":
		return "", errNoKey
	case hexKey.MatchString(key):
		return "40 hex digits", nil
	case newKey.MatchString(key):
		return "wandb_v1_ and a secret", nil
	}
	return "", fmt.Errorf("%d characters that are no key of W&B: one has 40 hex digits, or begins with wandb_v1_", len(key))
}

func (cfg *Config) checkProject() (string, error) {
	for _, part := range []struct{ key, name, variable string }{{"entity", cfg.Entity, "WANDB_ENTITY"}, {"project", cfg.Project, "WANDB_PROJECT"}} {
		if err := validateName(part.key, part.name); err != nil {
			return "", err
		}
		if part.name == "" {
			return "", fmt.Errorf("%s: is empty; set it, or the variable %s, else spans whose resource has no wandb.%s are dropped", part.key, part.variable, part.key)
		}
	}
	return shape.Target{Entity: cfg.Entity, Project: cfg.Project}.String(), nil
}

func urlOf(c *client, mode string) string {
	switch {
	case c == nil:
		return ""
	case mode == shape.ModeAgents:
		return c.url(shape.Agents)
	}
	return c.url(shape.Calls)
}

// proxied is an error where requests go through a proxy, which looks up the name and is what is connected to.
func (c *client) proxied() (*url.URL, error) {
	u, err := url.Parse(c.base)
	if err != nil {
		return nil, err
	}
	proxy := c.cfg.ClientConfig.ProxyURL
	if p, err := http.ProxyFromEnvironment(&http.Request{URL: u}); proxy == "" && err == nil && p != nil {
		proxy = p.Host
	}
	if proxy != "" {
		return nil, errSkip("requests go through a proxy")
	}
	return u, nil
}

func (c *client) checkDNS(ctx context.Context) (string, error) {
	u, err := c.proxied()
	if err != nil {
		return "", err
	}
	if net.ParseIP(u.Hostname()) != nil {
		return "", errSkip(u.Hostname() + " is an address")
	}
	if _, err := net.DefaultResolver.LookupHost(ctx, u.Hostname()); err != nil {
		return "", fmt.Errorf("%s has no address: check base_url or host, and the DNS: %w", u.Hostname(), err)
	}
	return u.Hostname() + " has an address", nil
}

func (c *client) checkTLS(ctx context.Context) (string, error) {
	u, err := c.proxied()
	if err != nil {
		return "", err
	}
	if u.Scheme == "http" {
		return "", errSkip("plain HTTP: the key is sent in the clear")
	}
	settings, err := c.cfg.ClientConfig.TLS.LoadTLSConfig(ctx)
	if err != nil {
		return "", err
	}
	dialer := tls.Dialer{Config: settings}
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))
	conn, err := dialer.DialContext(ctx, "tcp", address)
	var refused *net.OpError
	switch {
	case errors.As(err, &refused) && refused.Op == "dial":
		return "", fmt.Errorf("%s does not answer: check the address and firewalls: %w", address, err)
	case err != nil:
		return "", fmt.Errorf("%s is not trusted: check tls::ca_file, or what stands in between: %w", address, err)
	}
	return "the certificate of " + u.Hostname() + " is trusted", conn.Close()
}

func (c *client) checkExport(ctx context.Context) (string, error) {
	if _, err := checkKey(string(c.cfg.APIKey)); err != nil {
		return "", errSkip("not tried without a key")
	}
	if err := c.start(ctx, nil, component.TelemetrySettings{}); err != nil {
		return "", err
	}
	defer c.close()
	a, err := c.exportNothing(ctx)
	switch {
	case err != nil:
		return "", err
	case a.verdict == taken:
		return "an export without spans is taken", nil
	case a.readsRequests():
		return "an export without spans is read, and refused: " + a.text, nil
	case a.verdict == unavailable:
		return "", fmt.Errorf("no answer from Weave: %s", a.text)
	}
	return "", fmt.Errorf("%s (%s)", lossLogs[a.drop], a.text)
}

// readsRequests tells that Weave knows the key and reads what it gets. Whether it takes an export without spans is not documented.
func (a *answer) readsRequests() bool {
	return a.verdict == taken || a.status == http.StatusBadRequest || a.status == http.StatusUnprocessableEntity
}

// exportNothing sends a request that names the project and has no spans. It tells whether Weave would take spans, and leaves none.
func (c *client) exportNothing(ctx context.Context) (answer, error) {
	td := ptrace.NewTraces()
	if _, err := c.cfg.checkProject(); err == nil {
		resource := td.ResourceSpans().AppendEmpty().Resource().Attributes()
		resource.PutStr(semconv.WandbEntity, c.cfg.Entity)
		resource.PutStr(semconv.WandbProject, c.cfg.Project)
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		return answer{}, err
	}
	return c.post(ctx, urlOf(c, c.cfg.Mode), "", body, time.Now), nil
}

// probe says at the start what would go wrong later. It stops nothing: a backend that is down comes back.
func (e *weaveExporter) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	a, err := e.client.exportNothing(ctx)
	fields := []zap.Field{zap.String("url", urlOf(e.client, e.cfg.Mode)), zap.String("answer", a.text), zap.Error(err)}
	switch {
	case err == nil && a.readsRequests():
		e.logger.Info("Weave takes spans", fields[0])
	case a.verdict == unavailable:
		e.logger.Error("Weave does not answer; spans wait in the queue", fields...)
	default:
		e.logger.Error(lossLogs[a.drop], fields...)
	}
}
