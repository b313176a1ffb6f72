// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// What OpenTelemetry's exporters make of these variables themselves is not what is wanted: an endpoint of http:// is sent TLS, or
// refused, where there is a certificate for others, and a certificate that cannot be read is one that is not there.

// tlsConfig is what OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_CERTIFICATE and _CLIENT_KEY say, nil where t is sent to without TLS.
// signal is its name in variables of its own, which go first: TRACES, METRICS or LOGS.
func (t Target) tlsConfig(signal string) (*tls.Config, error) {
	if t.isPlain(signal) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, variable := exporterVariable(signal, "CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM", variable, file)
		}
	}
	certificate, certVariable := exporterVariable(signal, "CLIENT_CERTIFICATE")
	key, keyVariable := exporterVariable(signal, "CLIENT_KEY")
	switch {
	case certificate == "" && key == "":
		return config, nil
	case key == "":
		return nil, fmt.Errorf("%s is set without OTEL_EXPORTER_OTLP_CLIENT_KEY", certVariable)
	case certificate == "":
		return nil, fmt.Errorf("%s is set without OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", keyVariable)
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", certVariable, keyVariable, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// credentials is tlsConfig for gRPC.
func (t Target) credentials(signal string) (credentials.TransportCredentials, error) {
	config, err := t.tlsConfig(signal)
	if err != nil {
		return nil, err
	}
	if config == nil {
		return insecure.NewCredentials(), nil
	}
	return credentials.NewTLS(config), nil
}

// isPlain reports whether t is sent to without TLS. Of host:port, OTEL_EXPORTER_OTLP_INSECURE says so.
func (t Target) isPlain(signal string) bool {
	if t.isHostPort() {
		value, _ := exporterVariable(signal, "INSECURE")
		return strings.EqualFold(value, "true")
	}
	u, err := parseEndpoint(t.Endpoint)
	return err == nil && u.Scheme == "http"
}

func (t Target) isHostPort() bool { return !strings.Contains(t.Endpoint, "://") }

// exporterVariable is the value of a signal's own variable, else of the one for all, and the name of the variable it stood in.
func exporterVariable(signal, key string) (value, variable string) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_" + key, "OTEL_EXPORTER_OTLP_" + key} {
		if value := strings.TrimSpace(os.Getenv(variable)); value != "" {
			return value, variable
		}
	}
	return "", ""
}
