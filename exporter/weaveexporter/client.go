// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"

	"github.com/lenscol/lenscol/exporter/weaveexporter/internal/shape"
	"github.com/lenscol/lenscol/internal/redact"
)

// client sends requests to Weave and reads the answers.
type client struct {
	cfg       *Config
	base      string
	userAgent string
	clean     func(string) string // makes a text of somebody else's fit for a log
	http      *http.Client        // nil before start
	writers   *sync.Pool          // of *gzip.Writer; nil where requests go as they are
}

func newClient(cfg *Config, build component.BuildInfo) (*client, error) {
	base, err := cfg.baseURL()
	if err != nil {
		return nil, err
	}
	clean, err := newCleaner(string(cfg.APIKey))
	if err != nil {
		return nil, err
	}
	userAgent := fmt.Sprintf("%s/%s (%s/%s)", build.Description, build.Version, runtime.GOOS, runtime.GOARCH)
	return &client{cfg: cfg, base: base, userAgent: userAgent, clean: clean}, nil
}

func (c *client) start(ctx context.Context, extensions map[component.ID]component.Component, set component.TelemetrySettings) error {
	settings := c.cfg.ClientConfig
	if settings.Compression == configcompression.TypeGzip {
		// confighttp's own has the standard library's gzip, which takes twice the time (BenchmarkGzip).
		settings.Compression = ""
		level := cmp.Or(int(settings.CompressionParams.Level), gzip.DefaultCompression) // 0 is not set, as confighttp has it.
		if _, err := gzip.NewWriterLevel(nil, level); err != nil {
			return err
		}
		c.writers = &sync.Pool{New: func() any { w, _ := gzip.NewWriterLevel(nil, level); return w }}
	}
	made, err := settings.ToClient(ctx, extensions, set)
	if err != nil {
		return err
	}
	// A redirected POST arrives as a GET, and takes the key to where the config does not say.
	made.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = made
	return nil
}

func (c *client) close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

func (c *client) url(endpoint shape.Endpoint) string {
	if endpoint == shape.Agents {
		return c.base + agentsPath
	}
	return c.base + callsPath
}

// send posts one request, and returns what became of it.
func (c *client) send(ctx context.Context, r *shape.Request, now func() time.Time) answer {
	return c.post(ctx, c.url(r.Endpoint), runHeader(r), r.AppendTo(nil), now)
}

// runHeader is entity/project/run, for requests to Agents, where Weave reads the run from nowhere else.
func runHeader(r *shape.Request) string {
	if r.Endpoint != shape.Agents || r.Run == "" {
		return ""
	}
	return r.Target.String() + "/" + r.Run
}

func (c *client) post(ctx context.Context, url, run string, body []byte, now func() time.Time) answer {
	if c.writers != nil {
		body = c.compress(body)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer{verdict: hopeless, drop: dropRefused, text: c.clean(err.Error())}
	}
	if c.writers != nil {
		req.Header.Set("Content-Encoding", "gzip")
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", c.userAgent)
	if run != "" {
		req.Header.Set("wb_run_id", run)
	}
	switch key := string(c.cfg.APIKey); {
	case key == "": // An auth extension has it.
	case c.cfg.AuthStyle == AuthBasic:
		req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("api:"+key)))
	default:
		req.Header.Set("wandb-api-key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{verdict: unavailable, drop: dropRefused, text: c.clean(err.Error()), err: err}
	}
	return readAnswer(resp, now(), c.clean)
}

func (c *client) compress(body []byte) []byte {
	out := bytes.NewBuffer(make([]byte, 0, len(body)/8))
	w := c.writers.Get().(*gzip.Writer)
	defer c.writers.Put(w)
	w.Reset(out)
	_, _ = w.Write(body) // A buffer takes everything.
	_ = w.Close()
	return out.Bytes()
}

// newCleaner makes a function that takes the key, and whatever looks like one, out of a text, and bounds it to one line of maxShown bytes.
func newCleaner(key string) (func(string) string, error) {
	redactor, err := redact.New(redact.Config{Action: redact.ActionReplace, Patterns: redact.Ready()})
	if err != nil {
		return nil, err
	}
	secrets := []string{}
	if key != "" {
		secrets = append(secrets, key, redact.Redacted, base64.StdEncoding.EncodeToString([]byte("api:"+key)), redact.Redacted)
	}
	literal := strings.NewReplacer(secrets...)
	return func(text string) string {
		text, _ = redactor.Text(literal.Replace(text), redactor.NewCounts())
		text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
		if len(text) > maxShown {
			text = strings.ToValidUTF8(text[:maxShown], "") + "…"
		}
		return text
	}, nil
}
