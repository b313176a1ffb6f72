// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/extension/lenshealth/internal/page"
	"github.com/lenscol/lenscol/telemetry"
)

// lookEvery is how often the metrics are read, and freshFor how old a look may be that a request is answered from.
const (
	lookEvery = 2 * time.Second
	freshFor  = time.Second
)

// health is the extension.
type health struct {
	cfg     *Config
	logger  *zap.Logger
	version string
	started time.Time
	now     func() time.Time
	looker  *looker // used by one look at a time, under mu

	server *server
	parts  []Part
	notice notice

	stop    context.CancelFunc
	stopped chan struct{} // closed when the last look is done

	instances instances
	phase     atomic.Value // a Status: Starting, Healthy, Stopping; not under mu, so that /ready never waits

	mu        sync.Mutex // of all below
	topology  topology
	streams   map[flow]*stream
	decisions map[decision]int64
	fullDisks int64
	lookedAt  time.Time
	lookErr   error  // of the last look
	source    string // of the last look
	history   history
}

var (
	_ extension.Extension                         = (*health)(nil)
	_ componentstatus.Watcher                     = (*health)(nil)
	_ extensioncapabilities.PipelineWatcher       = (*health)(nil)
	_ extensioncapabilities.ConfigSnapshotWatcher = (*health)(nil)
	_ extensioncapabilities.Dependent             = (*health)(nil)
	_ View                                        = (*health)(nil)
)

func newHealth(set extension.Settings, cfg *Config) *health {
	h := &health{
		cfg: cfg, logger: set.Logger, version: set.BuildInfo.Version, started: time.Now(), now: time.Now, looker: newLooker(),
		notice: notice{readyFile: cfg.ReadyFile, systemd: cfg.SDNotify}, parts: newParts(set),
		streams: map[flow]*stream{}, source: fromNone, history: history{},
	}
	h.phase.Store(Starting)
	return h
}

// Dependencies has the extension that authenticates started first.
func (h *health) Dependencies() []component.ID {
	if !h.cfg.Auth.HasValue() {
		return nil
	}
	return []component.ID{h.cfg.Auth.Get().AuthenticatorID}
}

// Start listens and begins to look. The address answers from here on: /live with 200, /ready not yet.
func (h *health) Start(ctx context.Context, host component.Host) error {
	h.notice.remove(h.logger) // A script that waits for the file must not see that of an earlier life.
	guard, err := newGuard(ctx, h.cfg, host)
	if err != nil {
		return err
	}
	handler := h.routes(guard)
	if h.server, err = startServer(ctx, h.cfg, host, handler, guard, h.logger); err != nil {
		return err
	}
	looking, stop := context.WithCancel(context.Background())
	h.stop, h.stopped = stop, make(chan struct{})
	go h.lookOn(looking)
	return nil
}

// NotifyConfigSnapshot comes after Start, before the pipelines start.
func (h *health) NotifyConfigSnapshot(_ context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	effective := snapshot.Effective()
	if effective == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topology = readTopology(effective)
	h.looker.scrape = scrapeURL(effective)
	return nil
}

// ComponentStatusChanged takes the status events of all components.
func (h *health) ComponentStatusChanged(source *componentstatus.InstanceID, event *componentstatus.Event) {
	h.instances.changed(source, event)
}

// Ready is called when all pipelines have started.
func (h *health) Ready() error {
	h.phase.Store(Healthy)
	h.notice.ready(h.logger)
	return nil
}

// NotReady is called before the receivers stop: at once when the collector is told to end, or to reload.
func (h *health) NotReady() error {
	h.phase.Store(Stopping)
	h.notice.remove(h.logger)
	return nil
}

// Shutdown is called after the pipelines have drained.
func (h *health) Shutdown(ctx context.Context) error {
	if h.stop == nil { // It has never started.
		return nil
	}
	h.stop()
	<-h.stopped
	var errs []error
	for _, part := range h.parts {
		errs = append(errs, part.Shutdown(ctx))
	}
	return errors.Join(append(errs, h.server.shutdown(ctx))...)
}

func (h *health) lookOn(ctx context.Context) {
	defer close(h.stopped)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			h.mu.Lock()
			h.look(ctx)
			h.mu.Unlock()
		}
	}
}

// look reads the metrics and has the streams learn from them. h.mu is held.
func (h *health) look(ctx context.Context) {
	now := h.now()
	source, r, failed, err := h.looker.look(ctx, now)
	if err != nil && (h.lookErr == nil || h.lookErr.Error() != err.Error()) && ctx.Err() == nil {
		h.logger.Warn("The collector's own metrics cannot be read, so the health of its exporters is unknown", zap.Error(err))
	}
	h.lookedAt, h.source, h.lookErr = now, source, err
	if r == nil {
		return
	}
	h.decisions, h.fullDisks = r.decisions, r.fullDisks
	for exporter := range failed { // Without a queue and before the first send ends no metric knows it.
		r.of(kindExporter, exporter.ID, exporter.Signal)
	}
	for f, n := range r.flows {
		if h.streams[f] == nil {
			id, _, _ := strings.Cut(f.id, "/")
			h.streams[f] = &stream{flow: f, handsOver: id == "load_balancing" || id == "loadbalancing"}
		}
		h.streams[f].learn(now, *n, failed[telemetry.Exporter{ID: f.id, Signal: f.signal}])
	}
}

// fresh has h.mu locked over a look that is not older than freshFor. The look is for others too: it goes on where who asked
// has gone.
func (h *health) fresh(ctx context.Context) (unlock func()) {
	h.mu.Lock()
	if h.now().Sub(h.lookedAt) >= freshFor {
		h.look(context.WithoutCancel(ctx))
	}
	return h.mu.Unlock
}

// Health implements [View].
func (h *health) Health(ctx context.Context) Report {
	defer h.fresh(ctx)()
	return h.report(h.now())
}

// Pipelines implements [View].
func (h *health) Pipelines(ctx context.Context) Pipelines {
	defer h.fresh(ctx)()
	return h.flows(h.now())
}

// routes mounts what the extension and its parts show.
func (h *health) routes(g *guard) http.Handler {
	m := &Mux{guard: g, mux: http.NewServeMux()}
	m.open("GET /live", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, map[string]bool{"live": true}) })
	m.open("GET /ready", h.serveReady)
	m.Handle("GET /health", http.HandlerFunc(h.serveHealth))
	m.Handle("GET /api/pipelines", http.HandlerFunc(h.servePipelines))
	m.open("POST /login", g.login)
	m.Page(page.Handler())
	for _, part := range h.parts {
		part.Mount(m, h)
	}
	m.open("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if m.page == nil || !wantsHTML(r) {
			h.serveAsHealthCheck(w)
			return
		}
		if g.loginByQuery(w, r) {
			return
		}
		m.page.ServeHTTP(w, r)
	})
	m.open("/", func(w http.ResponseWriter, _ *http.Request) {
		answerError(w, http.StatusNotFound, "there is nothing here")
	})
	return g.protect(m.mux)
}

func (h *health) isReady() bool { return h.phase.Load() == Healthy }

func (h *health) serveReady(w http.ResponseWriter, _ *http.Request) {
	ready := h.isReady()
	answer(w, statusCode(ready), map[string]bool{"ready": ready})
}

func (h *health) serveHealth(w http.ResponseWriter, r *http.Request) {
	report := h.Health(r.Context())
	answer(w, statusCode(report.Status.OK()), report)
}

func (h *health) servePipelines(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, h.Pipelines(r.Context()))
}

// serveAsHealthCheck answers as the health_check extension does (contrib v0.158).
func (h *health) serveAsHealthCheck(w http.ResponseWriter) {
	ready := h.isReady()
	body := struct {
		Status  string     `json:"status"`
		UpSince *time.Time `json:"upSince,omitempty"`
		Uptime  string     `json:"uptime,omitempty"`
	}{Status: "Server not available"}
	if ready {
		body.Status, body.UpSince, body.Uptime = "Server available", &h.started, h.now().Sub(h.started).String()
	}
	answer(w, statusCode(ready), body)
}

func statusCode(ok bool) int {
	if ok {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}
