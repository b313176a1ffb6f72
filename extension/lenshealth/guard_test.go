// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/extension/extensionauth"
)

const testToken = "correct-horse-battery"

func newTestGuard(t testing.TB, change func(*Config)) *guard {
	cfg := createDefaultConfig().(*Config)
	if change != nil {
		change(cfg)
	}
	g, err := newGuard(t.Context(), cfg, componenttest.NewNopHost())
	require.NoError(t, err)
	return g
}

func TestHosts(t *testing.T) {
	g := newTestGuard(t, func(c *Config) { c.AllowedHosts = []string{"Login01.cluster"}; c.Endpoint = "node7:13133" })
	for host, want := range map[string]bool{
		"127.0.0.1:13133": true, "127.0.0.1": true, "[::1]:13133": true, "[::1]": true, "::1": true, "10.1.2.3:13133": true,
		"localhost": true, "LOCALHOST:13133": true, "localhost.": true, "a.localhost:1": true,
		"login01.cluster:13133": true, "LOGIN01.CLUSTER": true, "node7": true,
		"": true, // HTTP/1.0

		"evil.example": false, "evil.example:13133": false, "127.0.0.1.evil.example": false, "localhost.evil.example": false,
		"notlocalhost": false, "login01.cluster.evil.example": false, "evil.example@127.0.0.1": false, "127.0.0.1@evil.example": false,
		"127.0.0.1/evil.example": false, "[::1": false, "[evil.example]": false, "[::1%25eth0]": false, "127.0.0.1:": false,
		"2130706433": false, "0x7f.1": false, "localhost:80:80": false, "localhost:x": false, "loc alhost": false,
	} {
		require.Equal(t, want, g.hostAllowed(host), "%q", host)
	}
	require.True(t, newTestGuard(t, func(c *Config) { c.Endpoint = "unix:/tmp/x" }).hostAllowed("evil.example"), "no name leads a browser to a socket")
}

func TestOrigins(t *testing.T) {
	for _, tt := range []struct {
		origin, host string
		want         bool
	}{
		{"http://127.0.0.1:13133", "127.0.0.1:13133", true},
		{"http://LOCALHOST:13133", "localhost:13133", true},
		{"http://[::1]:13133", "[::1]:13133", true},
		{"http://localhost", "localhost:80", true},
		{"https://health.example", "health.example", true},
		{"https://health.example:443", "health.example", true},

		{"null", "127.0.0.1:13133", false},
		{"", "127.0.0.1:13133", false},
		{"http://127.0.0.1:8080", "127.0.0.1:13133", false},
		{"http://localhost:13133", "127.0.0.1:13133", false},
		{"http://evil.example", "127.0.0.1:13133", false},
		{"http://127.0.0.1:13133@evil.example", "127.0.0.1:13133", false},
		{"http://x@127.0.0.1:13133", "127.0.0.1:13133", false},
		{"http://127.0.0.1:13133/path", "127.0.0.1:13133", false},
		{"http://127.0.0.1:13133?", "127.0.0.1:13133", false},
		{"file://127.0.0.1:13133", "127.0.0.1:13133", false},
		{"chrome-extension://127.0.0.1:13133", "127.0.0.1:13133", false},
		{"//127.0.0.1:13133", "127.0.0.1:13133", false},
	} {
		require.Equal(t, tt.want, sameOrigin([]string{tt.origin}, tt.host), "%+v", tt)
	}
	require.True(t, sameOrigin(nil, "127.0.0.1"), "not a browser's cross-origin request")
	require.False(t, sameOrigin([]string{"http://localhost", "http://localhost"}, "localhost"))
}

// What is let in as a host is an address, or localhost, or what the config names, however it is spelled: read again by
// another parser, it is the same.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:13133", "[::1]:1", "localhost", "a.localhost.", "evil@localhost", "localhost#", "LoCaLhOsT:1", "[::ffff:127.0.0.1]", "x.login01"} {
		f.Add(seed)
	}
	g := newTestGuard(f, func(c *Config) { c.AllowedHosts = []string{"login01"} })
	f.Fuzz(func(t *testing.T, hostport string) {
		if hostport == "" || !g.hostAllowed(hostport) {
			return
		}
		host := hostport
		if _, err := netip.ParseAddr(host); err == nil {
			return
		}
		if bracket := strings.LastIndexByte(host, ']'); strings.LastIndexByte(host, ':') > bracket {
			host = host[:strings.LastIndexByte(host, ':')]
		}
		host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
		if _, err := netip.ParseAddr(host); err == nil {
			return
		}
		require.True(t, host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "login01", "%q is let in", hostport)
		require.NotContains(t, host, "@")
	})
}

// An origin that is taken for the host's own names it, in whatever way the two are spelled.
func FuzzOrigin(f *testing.F) {
	f.Add("http://localhost:1", "localhost:1")
	f.Add("https://[::1]", "[::1]:443")
	f.Add("http://a@localhost", "localhost")
	f.Add("null", "null")
	f.Add("http://[::]", "00::0")
	f.Fuzz(func(t *testing.T, origin, host string) {
		if !sameOrigin([]string{origin}, host) {
			return
		}
		scheme, rest, ok := strings.Cut(origin, "://")
		require.True(t, ok)
		require.Contains(t, []string{"http", "https"}, strings.ToLower(scheme))
		require.NotContains(t, rest, "@")
		require.NotContains(t, rest, "/")
		o, err := url.Parse(origin)
		require.NoError(t, err)
		if bare, err := netip.ParseAddr(host); err == nil { // An IPv6 address without brackets is no host of a URL.
			addr, err := netip.ParseAddr(o.Hostname())
			require.NoError(t, err)
			require.Equal(t, bare, addr)
			return
		}
		u, err := url.Parse("http://" + host)
		require.NoError(t, err)
		a, errA := netip.ParseAddr(u.Hostname())
		b, errB := netip.ParseAddr(o.Hostname())
		if errA == nil && errB == nil {
			require.Equal(t, a, b)
			return
		}
		require.Equal(t, strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), strings.ToLower(strings.TrimSuffix(o.Hostname(), ".")))
	})
}

// ask sends a request by way of the guard to a handler that answers 200 to those who have the token.
func ask(g *guard, method, target string, change func(*http.Request)) *http.Response {
	mux := http.NewServeMux()
	mux.Handle("GET /secret", g.demandToken(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	mux.HandleFunc("POST /login", g.login)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if !g.loginByQuery(w, r) {
			w.WriteHeader(http.StatusOK)
		}
	})
	r := httptest.NewRequest(method, "http://127.0.0.1:13133"+target, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	g.protect(mux).ServeHTTP(w, r)
	return w.Result()
}

func TestTokenIsDemanded(t *testing.T) {
	g := newTestGuard(t, func(c *Config) { c.Token = testToken })
	for header, want := range map[string]int{
		"": 401, "Bearer": 401, "Bearer ": 401, "Bearer x": 401, testToken: 401, "Basic " + testToken: 401,
		"Bearer " + testToken + " ": 401, "Bearer " + testToken[1:]: 401,
		"Bearer " + testToken: 200, "bearer " + testToken: 200,
	} {
		resp := ask(g, "GET", "/secret", func(r *http.Request) { r.Header.Set("Authorization", header) })
		require.Equal(t, want, resp.StatusCode, "%q", header)
		if want == 401 {
			require.Equal(t, "Bearer", resp.Header.Get("WWW-Authenticate"))
		}
	}
	require.Equal(t, 401, ask(g, "GET", "/secret?token="+testToken, nil).StatusCode, "a link that goes round must not open it")
	require.Equal(t, 200, ask(newTestGuard(t, nil), "GET", "/secret", nil).StatusCode, "no token is set")
}

func TestTokenIsTradedForACookie(t *testing.T) {
	g := newTestGuard(t, func(c *Config) { c.Token = testToken })
	now := time.Now()
	g.now = func() time.Time { return now }
	form := func(token string) func(*http.Request) {
		return func(r *http.Request) {
			*r = *httptest.NewRequest("POST", "http://127.0.0.1:13133/login", strings.NewReader(url.Values{"token": {token}}.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	wrong := ask(g, "POST", "/login", form("wrong"))
	require.Equal(t, 401, wrong.StatusCode)
	require.Empty(t, wrong.Cookies())
	require.Equal(t, 401, ask(g, "GET", "/?token=wrong", nil).StatusCode)
	require.Equal(t, 401, ask(g, "POST", "/login", form(strings.Repeat("x", 1<<20))).StatusCode)

	for name, resp := range map[string]*http.Response{
		"form":   ask(g, "POST", "/login", form(testToken)),
		"header": ask(g, "POST", "/login", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) }),
		"link":   ask(g, "GET", "/?token="+testToken, func(r *http.Request) { r.Header.Set("Accept", "text/html") }),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "link" {
				require.Equal(t, 303, resp.StatusCode)
				require.Equal(t, "/", resp.Header.Get("Location"), "the token leaves the address")
			} else {
				require.Equal(t, 204, resp.StatusCode)
			}
			require.Len(t, resp.Cookies(), 1)
			cookie := resp.Cookies()[0]
			require.True(t, cookie.HttpOnly)
			require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
			require.Equal(t, "/", cookie.Path)
			require.NotContains(t, cookie.String(), testToken)
			with := func(value string) int {
				return ask(g, "GET", "/secret", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie.Name, Value: value}) }).StatusCode
			}
			require.Equal(t, 200, with(cookie.Value))
			require.Equal(t, 401, with("9"+cookie.Value), "it lasts as long as was said")
			require.Equal(t, 401, with(""))
			require.Equal(t, 401, with("1."))
			other := newTestGuard(t, func(c *Config) { c.Token = testToken })
			require.Equal(t, 401, ask(other, "GET", "/secret", func(r *http.Request) { r.AddCookie(cookie) }).StatusCode, "another process's")
			now = now.Add(sessionLasts - time.Second)
			require.Equal(t, 200, with(cookie.Value))
			now = now.Add(time.Second)
			require.Equal(t, 401, with(cookie.Value))
			now = time.Now()
		})
	}
}

// authExtension accepts one header.
type authExtension struct {
	component.StartFunc
	component.ShutdownFunc
	extensionauth.Server
}

type hostWithAuth struct{ auth component.Component }

func (h hostWithAuth) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("auth"): h.auth}
}

func TestAuthExtension(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Auth = configoptional.Some(configauth.Config{AuthenticatorID: component.MustNewID("auth")})
	require.Equal(t, []component.ID{component.MustNewID("auth")}, newHealth(testSettings(), cfg).Dependencies())
	g, err := newGuard(t.Context(), cfg, hostWithAuth{authExtension{Server: fixedToken(testToken)}})
	require.NoError(t, err)
	require.Equal(t, 401, ask(g, "GET", "/secret", nil).StatusCode)
	require.Equal(t, 200, ask(g, "GET", "/secret", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) }).StatusCode)
	require.Len(t, ask(g, "POST", "/login", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testToken) }).Cookies(), 1)

	_, err = newGuard(t.Context(), cfg, componenttest.NewNopHost())
	require.Error(t, err, "there is no such extension")
}

// A page of somebody else gets nothing, and so not even what is open.
func TestForeignPagesAreRefused(t *testing.T) {
	g := newTestGuard(t, nil)
	resp := ask(g, "GET", "/secret", func(r *http.Request) { r.Host = "evil.example:13133" })
	require.Equal(t, 403, resp.StatusCode)
	require.Equal(t, 403, ask(g, "GET", "/", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }).StatusCode)
	require.Equal(t, 403, ask(g, "POST", "/login", func(r *http.Request) { r.Header.Set("Origin", "null") }).StatusCode)
	require.Equal(t, 200, ask(g, "GET", "/secret", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:13133") }).StatusCode)
	for key, value := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
	} {
		require.Equal(t, value, resp.Header.Get(key))
	}
	require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"))
}

func TestSecretsAreNotPrinted(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Token = configopaque.String(testToken)
	cfg.Endpoint = "0.0.0.0:x"
	require.NotContains(t, cfg.Validate().Error(), testToken)
}
