// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensionauth"
)

// Bounds of what a request may hold.
const (
	sessionLasts = 12 * time.Hour
	maxLogin     = 4 << 10 // bytes of a login's body
)

// guard decides who may ask. A page of somebody else in a browser on this machine is kept out by Host and Origin: DNS
// rebinding makes its name lead here, but not its requests name this host. Whoever may reach the port otherwise needs the
// token where there is one.
type guard struct {
	authenticate extensionauth.Server // nil where no token is needed
	socket       bool                 // it listens on a unix socket, which no browser reaches by a name
	tls          bool
	hosts        map[string]bool // allowed besides IP addresses and localhost
	cookie       string          // name; cookies are not told apart by port, so it has the port
	sessionKey   []byte
	now          func() time.Time
}

func newGuard(ctx context.Context, cfg *Config, host component.Host) (*guard, error) {
	where, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	g := &guard{
		socket: where.socket != "", tls: cfg.TLS.HasValue(), hosts: map[string]bool{}, cookie: "lenscol_session",
		sessionKey: make([]byte, sha256.Size), now: time.Now,
	}
	_, _ = rand.Read(g.sessionKey) // It never fails.
	for _, name := range append(cfg.AllowedHosts, where.host) {
		if name = canonicalHost(name); name != "" {
			g.hosts[name] = true
		}
	}
	switch {
	case cfg.Token != "":
		g.authenticate = fixedToken(string(cfg.Token))
	case cfg.Auth.HasValue():
		g.authenticate, err = cfg.Auth.Get().GetServerAuthenticator(ctx, host.GetExtensions())
	}
	return g, err
}

var errNoToken = errors.New("the token is missing or wrong")

// fixedToken accepts `Authorization: Bearer TOKEN`.
func fixedToken(token string) extensionauth.Server {
	want := sha256.Sum256([]byte(token))
	return extensionauth.ServerAuthenticateFunc(func(ctx context.Context, headers map[string][]string) (context.Context, error) {
		scheme, got, _ := strings.Cut(http.Header(headers).Get("Authorization"), " ")
		sum := sha256.Sum256([]byte(got)) // So that the time tells nothing, not even the length.
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
			return ctx, errNoToken
		}
		return ctx, nil
	})
}

// protect sets the headers of every answer, and refuses requests that a foreign page may have caused.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for key, value := range map[string]string{
			"Content-Security-Policy":      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cache-Control":                "no-store",
		} {
			w.Header().Set(key, value)
		}
		switch {
		case !g.hostAllowed(r.Host):
			answerError(w, http.StatusForbidden, "this name of the host is not known here: use an IP address or localhost, or add it to allowed_hosts")
		case !sameOrigin(r.Header.Values("Origin"), r.Host):
			answerError(w, http.StatusForbidden, "a page of another origin must not ask")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hostAllowed tells whether a request may name this host. A name that leads here only because somebody's DNS says so is
// never an address. HTTP/1.0 may name none; no browser does that.
func (g *guard) hostAllowed(hostport string) bool {
	if g.socket || hostport == "" {
		return true
	}
	host := canonicalHost(hostport)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || g.hosts[host]
}

// canonicalHost takes the port away, brackets, and the case. It is empty for what cannot be a host.
func canonicalHost(hostport string) string {
	if addr, err := netip.ParseAddr(hostport); err == nil && addr.Zone() == "" {
		return addr.String()
	}
	u, err := url.Parse("http://" + hostport)
	if err != nil || u.Host != hostport || strings.HasSuffix(hostport, ":") {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if strings.HasPrefix(hostport, "[") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" {
			return ""
		}
		return addr.String()
	}
	for _, c := range []byte(host) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return ""
		}
	}
	return host
}

// sameOrigin tells whether the Origin headers of a request, of which a browser sends one at most, name the host that it asks.
func sameOrigin(origins []string, hostport string) bool {
	switch len(origins) {
	case 0:
		return true
	case 1:
	default:
		return false
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
		return false
	}
	defaultPort, ok := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	host := canonicalHost(u.Host)
	return ok && host != "" && host == canonicalHost(hostport) && portOf(u.Host, defaultPort) == portOf(hostport, defaultPort)
}

func portOf(hostport, defaultPort string) string {
	if u, err := url.Parse("http://" + hostport); err == nil && u.Port() != "" {
		return u.Port()
	}
	return defaultPort
}

// demandToken lets those through who have the token, or the cookie that was given for it.
func (g *guard) demandToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.authenticate == nil || g.hasSession(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, err := g.authenticate.Authenticate(r.Context(), r.Header)
		if err != nil {
			refuse(w)
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	answerError(w, http.StatusUnauthorized, "a token is needed: send it as `Authorization: Bearer TOKEN`, or post it as token to /login")
}

// login trades the token, in the form's field `token` or in the header, for a cookie. An event stream cannot carry the
// header, and a page should not keep the token.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	headers := r.Header.Clone()
	if token := r.PostFormValue("token"); token != "" {
		headers.Set("Authorization", "Bearer "+token)
	}
	g.openSession(w, r, headers)
}

// loginByQuery does the same for a link, /?token=TOKEN, and answers. It is false where the link has no token.
func (g *guard) loginByQuery(w http.ResponseWriter, r *http.Request) bool {
	token := r.URL.Query().Get("token")
	if token == "" {
		return false
	}
	headers := r.Header.Clone()
	headers.Set("Authorization", "Bearer "+token)
	g.openSession(w, r, headers)
	return true
}

func (g *guard) openSession(w http.ResponseWriter, r *http.Request, headers http.Header) {
	if g.authenticate != nil {
		if _, err := g.authenticate.Authenticate(r.Context(), headers); err != nil {
			refuse(w)
			return
		}
		http.SetCookie(w, &http.Cookie{
			Name: g.cookie, Value: g.session(g.now().Add(sessionLasts)), Path: "/", MaxAge: int(sessionLasts.Seconds()),
			Secure: g.tls, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
	}
	if wantsHTML(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther) // And so the token leaves the address.
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// session is a cookie's value: when it ends, and the proof that it was given here. Nothing is kept for it.
func (g *guard) session(ends time.Time) string {
	text := strconv.FormatInt(ends.Unix(), 10)
	mac := hmac.New(sha256.New, g.sessionKey)
	mac.Write([]byte(text))
	return text + "." + hex.EncodeToString(mac.Sum(nil))
}

func (g *guard) hasSession(r *http.Request) bool {
	for _, cookie := range r.CookiesNamed(g.cookie) {
		text, _, _ := strings.Cut(cookie.Value, ".")
		seconds, err := strconv.ParseInt(text, 10, 64)
		ends := time.Unix(seconds, 0)
		if err == nil && g.now().Before(ends) && hmac.Equal([]byte(cookie.Value), []byte(g.session(ends))) {
			return true
		}
	}
	return false
}
