// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/lenscol/lenscol/internal/portfile"
)

// server is the HTTP server, from the moment that it listens.
type server struct {
	http     http.Server
	url      string // where it is reached: http://127.0.0.1:13133, unix:/run/health.sock
	portFile string
	written  string // what the port file says
	served   chan struct{}
}

func startServer(ctx context.Context, cfg *Config, host component.Host, handler http.Handler, g *guard, logger *zap.Logger) (*server, error) {
	where, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	if err := removeStale(cfg.PortFile); err != nil {
		return nil, fmt.Errorf("port_file: %w", err)
	}
	var tlsConfig *tls.Config
	if cfg.TLS.HasValue() {
		if tlsConfig, err = cfg.TLS.Get().LoadTLSConfig(ctx); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	}
	listener, err := where.listen(cfg.Required, logger)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	s := &server{portFile: cfg.PortFile, served: make(chan struct{}), url: reachableAt(listener.Addr(), where.host, tlsConfig != nil)}
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		g.cookie += "_" + strconv.Itoa(address.Port)
	}
	if tlsConfig != nil {
		tlsConfig.NextProtos = []string{"http/1.1"}
		listener = tls.NewListener(listener, tlsConfig)
	}
	base, cancel := context.WithCancel(context.Background())
	errorLog, err := zap.NewStdLogAt(logger, zap.WarnLevel)
	if err != nil {
		cancel()
		return nil, errors.Join(err, listener.Close())
	}
	s.http = http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          errorLog,
	}
	s.http.RegisterOnShutdown(cancel)
	if err := s.writePortFile(listener.Addr()); err != nil {
		cancel()
		return nil, errors.Join(err, listener.Close())
	}
	serving.add(s)
	go func() {
		defer close(s.served)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(err))
		}
	}()
	logger.Info("Health is served", zap.String("endpoint", s.url))
	return s, nil
}

// listen listens there, or, where that is in use and required does not say otherwise, somewhere near: a stale collector of an
// earlier job must not keep the next one from starting.
func (e endpoint) listen(required bool, logger *zap.Logger) (net.Listener, error) {
	listener, err := e.listenHere()
	if err == nil || required || !errors.Is(err, syscall.EADDRINUSE) {
		return listener, err
	}
	other := endpoint{host: e.host, port: "0"}
	if e.socket != "" {
		other = endpoint{socket: fmt.Sprintf("%s.%d", e.socket, os.Getpid())}
	}
	listener, otherErr := other.listenHere()
	if otherErr != nil {
		return nil, errors.Join(err, otherErr)
	}
	logger.Warn("The endpoint is in use, perhaps by another collector: another one is taken; with `required: true` this would end the start",
		zap.String("endpoint", e.String()), zap.Stringer("taken", listener.Addr()))
	return listener, nil
}

func (e endpoint) String() string {
	if e.socket != "" {
		return "unix:" + e.socket
	}
	return net.JoinHostPort(e.host, e.port)
}

func (e endpoint) listenHere() (net.Listener, error) {
	if e.socket == "" {
		return net.Listen("tcp", e.String())
	}
	if err := removeDeadSocket(e.socket); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", e.socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(e.socket, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// removeDeadSocket removes a socket that a killed process has left. One that answers, and any other file, stays.
func removeDeadSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is there and is not a socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("listen unix %s: %w", path, syscall.EADDRINUSE), conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// reachableAt is how somebody on this machine reaches an address that is listened on.
func reachableAt(address net.Addr, host string, withTLS bool) string {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		path := address.String()
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		return "unix:" + path
	}
	scheme := "http"
	if withTLS {
		scheme = "https"
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && ip.IsUnspecified():
		host = "127.0.0.1"
		if err == nil && ip.Is6() {
			host = "::1"
		}
	case err != nil && !withTLS:
		host = tcp.IP.String() // A name may lead to several addresses, and only one is listened on.
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// removeStale removes a file that an earlier process left when it was killed: a script that waits for it must not read it.
func removeStale(path string) error {
	if err := os.Remove(path); path != "" && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writePortFile says to shells where the server is.
func (s *server) writePortFile(address net.Addr) error {
	if s.portFile == "" {
		return nil
	}
	s.written = portfile.Export("LENSCOL_HEALTH_ENDPOINT", s.url)
	if tcp, ok := address.(*net.TCPAddr); ok {
		s.written += portfile.Export("LENSCOL_HEALTH_PORT", tcp.Port)
	}
	if err := portfile.Write(s.portFile, s.written); err != nil {
		return fmt.Errorf("port_file: %w", err)
	}
	return nil
}

// shutdown lets requests end that have begun, for a second, and closes what is left.
func (s *server) shutdown(ctx context.Context) error {
	serving.remove(s)
	portfile.RemoveIf(s.portFile, s.written)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	<-s.served
	return err
}

// serving are the servers of this process. A reload ends one and starts another.
var serving registry

type registry struct {
	mu      sync.Mutex
	servers []*server
}

func (r *registry) add(s *server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers = append(r.servers, s)
}

func (r *registry) remove(s *server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers = slices.DeleteFunc(r.servers, func(other *server) bool { return other == s })
}

// Serving returns where the extensions of this process are reached, as URLs or unix:PATH, in the order of their start.
func Serving() []string {
	serving.mu.Lock()
	defer serving.mu.Unlock()
	var urls []string
	for _, s := range serving.servers {
		urls = append(urls, s.url)
	}
	return urls
}
