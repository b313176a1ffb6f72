// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Target is where a signal goes by OTLP. Its variables and their rules are OpenTelemetry's (OTLP exporter configuration): the
// signal's own, as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, else those for all, as OTEL_EXPORTER_OTLP_ENDPOINT.
type Target struct {
	Protocol string // grpc, http/protobuf, http/json, console or none; grpc
	// Endpoint is the whole URL that requests go to. For HTTP, that of a signal's own variable is used as it is, and to the
	// one for all /v1/traces, /v1/metrics or /v1/logs is added. gRPC takes host:port too.
	Endpoint string
	Headers  map[string]Secret // those of a signal's own variable replace the ones for all
	Timeout  time.Duration     // of one export, with its retries; 0 is 10 s
}

const defaultTimeout = 10 * time.Second

// timeout is that of one export.
func (t Target) timeout() time.Duration { return cmp.Or(t.Timeout, defaultTimeout) }

// Protocols.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http/protobuf"
	ProtocolJSON = "http/json"

	ProtocolConsole = "console" // NeMo Lens's console lines; see [WithOutput]
	ProtocolNone    = "none"    // exports nothing
)

const protocols = "grpc, http/protobuf, http/json, console or none"

// Secret is text that is never printed.
type Secret string

// String stands for the secret.
func (Secret) String() string { return "[REDACTED]" }

// GoString stands for the secret.
func (Secret) GoString() string { return "[REDACTED]" }

// MarshalText stands for the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte("[REDACTED]"), nil }

// signals are the three, in the order of their variables.
var signals = []struct {
	name, path string
	of         func(*Config) *Target
}{
	{"traces", "v1/traces", func(c *Config) *Target { return &c.Traces }},
	{"metrics", "v1/metrics", func(c *Config) *Target { return &c.Metrics }},
	{"logs", "v1/logs", func(c *Config) *Target { return &c.Logs }},
}

func validProtocol(protocol string) error {
	switch protocol {
	case ProtocolGRPC, ProtocolHTTP, ProtocolJSON, ProtocolConsole, ProtocolNone:
		return nil
	}
	return fmt.Errorf("unknown protocol %q, must be %s", protocol, protocols)
}

// sends reports whether t has an endpoint.
func (t Target) sends() bool { return t.Protocol != ProtocolConsole && t.Protocol != ProtocolNone }

// The texts of these errors leave the endpoint out: it may hold credentials.
var (
	errEndpoint     = errors.New("it is no endpoint, must be a URL that begins with http:// or https://")
	errGRPCEndpoint = errors.New("it is no endpoint, must be host:port or a URL that begins with http:// or https://")
	errQuery        = errors.New("it has a query or a fragment, which exporters do not send: must be without ? and #")
)

func (t Target) validEndpoint() error {
	if !t.sends() {
		return nil
	}
	if t.Protocol == ProtocolGRPC && !strings.Contains(t.Endpoint, "://") {
		if host, port, err := net.SplitHostPort(t.Endpoint); err != nil || host == "" || port == "" || strings.Contains(host, "@") {
			return errGRPCEndpoint
		}
		return nil
	}
	u, err := parseEndpoint(t.Endpoint)
	if err == nil && (u.RawQuery != "" || u.ForceQuery || u.Fragment != "") {
		return errQuery
	}
	return err
}

// validHeaders checks that headers can be sent (RFC 9110, 5.1 and 5.5). Its errors leave the values out.
func (t Target) validHeaders() error {
	for _, key := range slices.Sorted(maps.Keys(t.Headers)) {
		if key == "" || strings.ContainsFunc(key, isOutsideOfTokens) {
			return fmt.Errorf("%q is no name of a header, must be letters, digits and -", key)
		}
		if strings.ContainsFunc(string(t.Headers[key]), func(r rune) bool { return r < ' ' || r > '~' }) {
			return fmt.Errorf("the value of %q must be printable ASCII", key)
		}
	}
	return nil
}

func isOutsideOfTokens(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

// headers are those of a request: t's, and what the endpoint's credentials make, which exporters would leave out.
func (t Target) headers() map[string]string {
	headers := make(map[string]string, len(t.Headers))
	for key, value := range t.Headers {
		headers[strings.ToLower(key)] = string(value)
	}
	u, err := parseEndpoint(t.Endpoint)
	if err != nil || u.User == nil || headers["authorization"] != "" {
		return headers
	}
	password, _ := u.User.Password()
	headers["authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	return headers
}

// toConsole makes t console lines, unless it exports nothing.
func (t *Target) toConsole() {
	if t.Protocol != ProtocolNone {
		t.Protocol = ProtocolConsole
	}
}

func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errEndpoint
	}
	return u, nil
}

// endpoint is the whole URL of a signal over HTTP. add is the path that comes after that of text, empty where text is the
// signal's own. Text that is no URL is returned as it is, for the check to refuse.
func endpoint(text, add string) string {
	u, err := parseEndpoint(text)
	if err != nil {
		return text
	}
	if add != "" {
		u = u.JoinPath(add)
	} else if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// parseHeaders reads key=value with commas between, the values percent-encoded, as OpenTelemetry has them. Its errors leave the
// values out.
func parseHeaders(text string) (map[string]Secret, error) {
	headers := map[string]Secret{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, found := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if !found || key == "" {
			return nil, errors.New("must be key=value with commas between, a comma in a value written as %2C")
		}
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("the value of %q is not percent-encoded, %% must be written as %%25", key)
		}
		headers[key] = Secret(decoded)
	}
	return headers, nil
}

// String is t without secrets.
func (t Target) String() string {
	if !t.sends() {
		return t.Protocol
	}
	return fmt.Sprintf("%s %s %q timeout=%v", t.Protocol, t.where(), slices.Sorted(maps.Keys(t.Headers)), t.timeout())
}

// GoString is String.
func (t Target) GoString() string { return t.String() }

// MarshalJSON is t with neither the values of headers nor the credentials of the endpoint, for logs.
func (t Target) MarshalJSON() ([]byte, error) {
	type fields Target
	t.Endpoint = t.where()
	return json.Marshal(fields(t))
}

// where is the endpoint without credentials and query.
func (t Target) where() string {
	if u, err := parseEndpoint(t.Endpoint); err == nil {
		return u.Scheme + "://" + u.Host + u.EscapedPath()
	}
	if t.sends() && t.validEndpoint() == nil {
		return t.Endpoint
	}
	return "an endpoint that is not valid"
}
