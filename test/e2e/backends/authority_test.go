// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package backends

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its own certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.crt")}
	a.cert = &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "authority of " + t.Name()}}
	signed := a.sign(a.cert)
	a.cert, a.key = signed.Leaf, signed.PrivateKey.(*ecdsa.PrivateKey)
	require.NoError(t, os.WriteFile(a.file, pemOf(signed), 0o600))
	return a
}

// sign completes a template, and signs it: with the authority's key, or the first one with its own.
func (a *authority) sign(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(a.t, err)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	template.NotBefore = template.NotAfter.Add(-24 * time.Hour)
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, signer)
	require.NoError(a.t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// server is a certificate for a host, valid until then.
func (a *authority) server(host string, until time.Time) tls.Certificate {
	a.t.Helper()
	return a.sign(&x509.Certificate{DNSNames: []string{host}, NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

func (a *authority) client() tls.Certificate {
	a.t.Helper()
	return a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "agent"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

func pemOf(cert tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
}

// files are a certificate and its key on disk, which a collector reads again when they change.
type files struct{ cert, key string }

func newFiles(t *testing.T, cert tls.Certificate) files {
	dir := t.TempDir()
	f := files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	f.renew(t, cert)
	return f
}

// renew replaces both.
func (f files) renew(t *testing.T, cert tls.Certificate) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(f.cert, pemOf(cert), 0o600))
}

// renewable is the certificate of a stand-in, which changes while that runs.
type renewable struct {
	atomic.Pointer[tls.Certificate]
}

func newRenewable(cert tls.Certificate) *renewable {
	r := &renewable{}
	r.Store(&cert)
	return r
}

func (r *renewable) config() *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.Load(), nil }}
}
