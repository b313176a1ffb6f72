// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package command // import "github.com/lenscol/lenscol/cmd/lenscol/internal/command"

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/lenscol/lenscol/extension/lenshealth"
)

// healthVariable names the variable that says where lens_health is reached: a URL, or unix:PATH.
const healthVariable = "LENSCOL_HEALTH_ENDPOINT"

// Bounds of a request to lens_health.
const (
	healthTimeout = 5 * time.Second
	maxHealth     = 64 << 20 // bytes of an answer
)

// healthFlags say where lens_health is reached and by what token.
type healthFlags struct{ endpoint, portFile, tokenFile string }

func (f *healthFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.endpoint, "endpoint", "", "Where lens_health listens, a `URL` or unix:PATH (default $"+healthVariable+", else http://"+lenshealth.DefaultEndpoint+")")
	flags.StringVar(&f.portFile, "port-file", "", "`FILE` that says where it listens: that of lenscol --port-file, or of lens_health's port_file")
	flags.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token (default $LENSCOL_HEALTH_TOKEN_FILE, else the token in $LENSCOL_HEALTH_TOKEN)")
}

// healthClient asks lens_health.
type healthClient struct {
	base  string // URL without a path
	token string
	http  http.Client
}

// client finds the address: the flags go before the variables, and these before the default. The error is fs.ErrNotExist as long
// as the port file is not there.
func (f *healthFlags) client() (*healthClient, error) {
	if f.endpoint != "" && f.portFile != "" {
		return nil, errors.New("--endpoint and --port-file both say where to ask: give one of them")
	}
	endpoint := cmp.Or(f.endpoint, os.Getenv(healthVariable))
	if f.portFile != "" {
		var err error
		if endpoint, err = endpointOfPortFile(f.portFile); err != nil {
			return nil, fmt.Errorf("--port-file: %w", err)
		}
	}
	if port := os.Getenv(portVariable("health")); endpoint == "" && port != "" {
		endpoint = "http://" + net.JoinHostPort("127.0.0.1", port)
	}
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	return newHealthClient(cmp.Or(endpoint, "http://"+lenshealth.DefaultEndpoint), token)
}

func newHealthClient(endpoint, token string) (*healthClient, error) {
	transport := &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: false}
	c := &healthClient{token: token, http: http.Client{
		Transport: transport, Timeout: healthTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if path, ok := strings.CutPrefix(endpoint, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		c.base = "http://localhost"
		return c, nil
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "http://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not where lens_health can be reached: it is a URL such as http://%s, or unix:PATH", endpoint, lenshealth.DefaultEndpoint)
	}
	c.base = u.Scheme + "://" + u.Host
	return c, nil
}

// endpointOfPortFile reads the variable's value as a shell would.
func endpointOfPortFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "export "+healthVariable+"="); ok {
			if inner, quoted := strings.CutPrefix(value, "'"); quoted {
				value = strings.ReplaceAll(strings.TrimSuffix(inner, "'"), `'\''`, "'")
			}
			return value, nil
		}
	}
	return "", fmt.Errorf("%s does not say %s: the config that runs has no lens_health extension", path, healthVariable)
}

func (f *healthFlags) token() (string, error) {
	if path := cmp.Or(f.tokenFile, os.Getenv("LENSCOL_HEALTH_TOKEN_FILE")); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	return os.Getenv("LENSCOL_HEALTH_TOKEN"), nil
}

// errRefused is of an answer that no waiting changes.
var errRefused = errors.New("refused")

// get asks for a path and decodes the answer, which is JSON, whatever its code. Codes other than 200 and 503 are errors.
func (c *healthClient) get(ctx context.Context, path string, answer any) (code int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return 0, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	if err != nil {
		return 0, err
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusServiceUnavailable:
	case http.StatusUnauthorized:
		return 0, fmt.Errorf("%w: %s wants a token: set LENSCOL_HEALTH_TOKEN, or give --token-file", errRefused, c.base)
	default:
		return 0, fmt.Errorf("%w: %s answers %s, as no lens_health does", errRefused, c.base+path, resp.Status)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return 0, fmt.Errorf("%w: %s answers something that is not lens_health's: %w", errRefused, c.base+path, err)
	}
	return resp.StatusCode, nil
}
