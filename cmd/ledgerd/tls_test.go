package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// authority signs certificates of the test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t}
	pair := a.sign("authority", nil, nil)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// pem returns the certificate that those need who trust it.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// sign makes a certificate of that name for 127.0.0.1, and writes it and its key to the two files.
func (a *authority) sign(name string, certFile, keyFile *string) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ledgertest.Must(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(map[bool]time.Duration{false: time.Hour, true: -time.Minute}[name == "expired"]), IsCA: a.cert == nil, BasicConstraintsValid: true,
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	ledgertest.Must(a.t, err)
	leaf, err := x509.ParseCertificate(der)
	ledgertest.Must(a.t, err)
	if certFile != nil {
		private, err := x509.MarshalPKCS8PrivateKey(key)
		ledgertest.Must(a.t, err)
		ledgertest.Must(a.t, os.WriteFile(*certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
		ledgertest.Must(a.t, os.WriteFile(*keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// encrypted returns the flags of a node that speaks TLS, with a certificate that nobody trusts.
func encrypted(t *testing.T) []string {
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	newAuthority(t).sign("node", &certFile, &keyFile)
	return []string{"--tls-cert", certFile, "--tls-key", keyFile}
}
