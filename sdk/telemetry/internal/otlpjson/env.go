// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package otlpjson // import "github.com/lenscol/lenscol/sdk/telemetry/internal/otlpjson"

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// The exporters for http/protobuf read these variables for a client of their own only.

// fromEnv is the value of a signal's own variable, else of the one for all, and the name of the variable it stood in.
func fromEnv(signal, key string) (value, variable string) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_" + key, "OTEL_EXPORTER_OTLP_" + key} {
		if value := strings.TrimSpace(os.Getenv(variable)); value != "" {
			return value, variable
		}
	}
	return "", ""
}

func timeoutFromEnv(signal string) (time.Duration, error) {
	text, variable := fromEnv(signal, "TIMEOUT")
	if text == "" {
		return 10 * time.Second, nil
	}
	millis, err := strconv.ParseInt(text, 10, 64)
	if err != nil || millis <= 0 || millis > math.MaxInt64/int64(time.Millisecond) {
		return 0, fmt.Errorf("%s: %q must be milliseconds above 0", variable, text)
	}
	return time.Duration(millis) * time.Millisecond, nil
}

func tlsFromEnv(signal string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, variable := fromEnv(signal, "CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM", variable, file)
		}
	}
	certificate, certVariable := fromEnv(signal, "CLIENT_CERTIFICATE")
	key, keyVariable := fromEnv(signal, "CLIENT_KEY")
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
