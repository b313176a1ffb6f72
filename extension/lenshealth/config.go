// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
)

// Bounds of the settings.
const (
	minToken  = 16 // characters
	minWindow = 2 * time.Second
	maxWindow = time.Hour
)

// Config says where the extension listens, who may ask, and what it writes and notifies.
type Config struct {
	// Endpoint is HOST:PORT, or unix:PATH for a socket that only the collector's user can open. With port 0 the system
	// picks one. An address that other machines reach demands Token or Auth. Default 127.0.0.1:13133.
	Endpoint string `mapstructure:"endpoint"`
	// Required makes an endpoint in use end the start. Otherwise another one is taken, with a warning. Default false.
	Required bool `mapstructure:"required"`
	// Token is what a request has to carry, as `Authorization: Bearer TOKEN`; at least 16 characters. Default: none.
	Token configopaque.String `mapstructure:"token"`
	// Auth names an extension that authenticates requests instead, bearertokenauth for one. Default: none.
	Auth configoptional.Optional[configauth.Config] `mapstructure:"auth"`
	// TLS makes it serve HTTPS. Default: none.
	TLS configoptional.Optional[configtls.ServerConfig] `mapstructure:"tls"`
	// AllowedHosts are names, without port, by which browsers may reach it besides localhost and IP addresses. Default: none.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// Window is how long a failure counts, and how long sends may fail without one that succeeds. Default 10s.
	Window time.Duration `mapstructure:"window"`
	// PortFile is a file that says, as shell exports, where it listens; it is removed at the end. Default: none.
	PortFile string `mapstructure:"port_file"`
	// ReadyFile is a file that is there while the collector is ready. Default: none.
	ReadyFile string `mapstructure:"ready_file"`
	// SDNotify tells systemd by the socket of NOTIFY_SOCKET, where that is set, when the collector is ready. Default false.
	SDNotify bool `mapstructure:"sd_notify"`
}

var _ component.Config = (*Config)(nil)

// Validate names the key of every setting that cannot be.
func (c *Config) Validate() error {
	var errs []error
	where, err := parseEndpoint(c.Endpoint)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("endpoint: %w", err))
	case where.wide() && c.Token == "" && !c.Auth.HasValue():
		errs = append(errs, fmt.Errorf("endpoint: %q is an address that other machines may reach, so it needs a token: set token or auth, "+
			"or listen on 127.0.0.1 or unix:PATH", c.Endpoint))
	}
	if c.Token != "" && c.Auth.HasValue() {
		errs = append(errs, errors.New("token and auth are both set: one of them is enough"))
	}
	if n := len(c.Token); n > 0 && n < minToken {
		errs = append(errs, fmt.Errorf("token: has %d characters, it needs %d at least", n, minToken))
	}
	if strings.ContainsFunc(string(c.Token), func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		errs = append(errs, errors.New("token: has characters that no HTTP header can carry, or spaces: use letters, digits and punctuation"))
	}
	for _, host := range c.AllowedHosts {
		if canonicalHost(host) == "" {
			errs = append(errs, fmt.Errorf("allowed_hosts: %q is not the name of a host: write it without scheme and port", host))
		}
	}
	if c.Window < minWindow || c.Window > maxWindow {
		errs = append(errs, fmt.Errorf("window: %s is not between %s and %s", c.Window, minWindow, maxWindow))
	}
	return errors.Join(errs...)
}

// endpoint is where to listen: a host and port, or the path of a socket.
type endpoint struct {
	host, port string
	socket     string
}

// parseEndpoint takes HOST:PORT and unix:PATH apart. An empty host is every address of the machine.
func parseEndpoint(text string) (endpoint, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(path, "//") // As the URL of it would be.
		if path == "" || strings.ContainsRune(path, 0) {
			return endpoint{}, fmt.Errorf("%q has no path: write unix:PATH", text)
		}
		return endpoint{socket: path}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return endpoint{}, fmt.Errorf("%q is neither HOST:PORT nor unix:PATH", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return endpoint{}, fmt.Errorf("%q: the port must be a number from 0 to 65535", text)
	}
	return endpoint{host: host, port: port}, nil
}

// wide tells whether other machines may reach it. A name other than localhost may stand for any address.
func (e endpoint) wide() bool {
	if e.socket != "" || strings.EqualFold(e.host, "localhost") {
		return false
	}
	ip, err := netip.ParseAddr(e.host)
	return err != nil || !ip.Unmap().IsLoopback()
}
