// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package launch // import "github.com/lenscol/lenscol/internal/launch"

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/telemetry"
)

// fromEnviron is the trace context in this process's environment (OpenTelemetry, environment variables as carriers).
func fromEnviron() map[string]string {
	carrier := map[string]string{}
	for _, field := range lens.Propagator().Fields() {
		if value := os.Getenv(strings.ToUpper(field)); value != "" {
			carrier[field] = value
		}
	}
	return carrier
}

// toEnviron is a carrier as variables; those without a value are there too, empty, so that none of an outer span stays.
func toEnviron(carrier map[string]string) (environ []string) {
	for _, field := range lens.Propagator().Fields() {
		environ = append(environ, strings.ToUpper(field)+"="+carrier[field])
	}
	return environ
}

// lastChance is how long the end of a command may wait for a connection.
const lastChance = 250 * time.Millisecond

// reach begins to find out whether anybody listens where spans go to; what it returns tells, within lastChance. Through a proxy
// that cannot be told, and counts as reached.
func reach(t telemetry.Target) (reached func() error) {
	endpoint := t.Endpoint
	if !strings.Contains(endpoint, "://") {
		endpoint = "http://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" || t.Protocol == telemetry.ProtocolConsole || t.Protocol == telemetry.ProtocolNone {
		return func() error { return nil }
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); proxy != nil || err != nil {
		return func() error { return nil }
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port, "4317"))
	dial := func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("nobody takes spans at %s: %w", address, err)
		}
		return conn.Close()
	}
	life, end := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- dial(life) }()
	return func() error {
		defer end()
		last, cancel := context.WithTimeout(life, lastChance)
		defer cancel()
		select {
		case err := <-result:
			if err != nil {
				err = dial(last) // It may have come meanwhile.
			}
			return err
		case <-last.Done():
			return fmt.Errorf("nobody answers at %s", address)
		}
	}
}
