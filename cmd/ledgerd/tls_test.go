package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
	clientlib "ledgerd/httpd/client"
)

// authority signs certificates of the test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	pair := a.sign("authority", nil, nil)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
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

// G2, F35: TestTLS reads, follows, and is refused, by HTTPS and WSS, while the certificate changes.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile, caFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")
	trusted, others := newAuthority(t), newAuthority(t)
	trusted.sign("first", &certFile, &keyFile)
	ledgertest.Must(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.cert.Raw}), 0o600))
	n := begin(t, "--data-dir", filepath.Join(dir, "data"), "--source", "sim:accounts=200,slot_time=50ms", "--idle-timeout", "1h",
		"--tls-cert", certFile, "--tls-key", keyFile, "--tls-client-ca", caFile).reach(t)
	if !strings.HasPrefix(n.base, "https://") || !strings.HasPrefix(n.ops, "https://") || !strings.Contains(n.out.String(), "wss://") {
		t.Fatalf("the banner does not tell of TLS:\n%s", n.out)
	}
	roots := x509.NewCertPool()
	roots.AddCert(trusted.cert)
	with := func(config *tls.Config) *http.Client {
		config.RootCAs = roots
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: config}}
	}
	status := func(c *http.Client, url string) (code int, name string, err error) {
		r, err := c.Get(url)
		if err != nil {
			return 0, "", err
		}
		defer r.Body.Close()
		return r.StatusCode, r.TLS.PeerCertificates[0].Subject.CommonName, nil
	}

	var err error
	operator := with(&tls.Config{Certificates: []tls.Certificate{trusted.sign("operator", nil, nil)}})
	for code := 0; code != http.StatusOK; time.Sleep(5 * time.Millisecond) {
		code, _, err = status(operator, n.ops+"/readyz")
		ledgertest.Must(t, err)
	}
	plain := with(&tls.Config{})
	operatorCert, operatorKey := filepath.Join(dir, "operator.pem"), filepath.Join(dir, "operator-key.pem")
	trusted.sign("operator", &operatorCert, &operatorKey)
	shows := []string{"--ca", caFile, "--client-cert", operatorCert, "--client-key", operatorKey}
	for _, tt := range []struct {
		shown []string
		code  int
	}{{shows, exitOK}, {shows[:2], exitFailure}, {shows[:4], exitUsage}, {nil, exitFailure}} {
		args := append([]string{"backup", "--url", n.ops, "--output", filepath.Join(dir, "backup")}, tt.shown...)
		_, said, code := tool(t, args...)
		ledgertest.Equal(t, code, tt.code, "ledgerd %q says %s: the exit code", args, said)
		_ = os.RemoveAll(filepath.Join(dir, "backup"))
	}
	for name, c := range map[string]*http.Client{"nobody": plain, "a stranger": with(&tls.Config{Certificates: []tls.Certificate{others.sign("operator", nil, nil)}})} {
		if code, _, err := status(c, n.ops+"/metrics"); err == nil {
			t.Errorf("%s was answered %d by the operators' listener", name, code)
		}
	}

	silent := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	silence := make(chan time.Duration, 1)
	for i := range 300 { // connections that stay silent, beyond their client's cap too, do not keep others from being accepted
		began := time.Now()
		conn, err := silent.DialContext(t.Context(), "tcp", strings.TrimPrefix(strings.TrimSuffix(n.base, "/api"), "https://"))
		ledgertest.Must(t, err)
		defer conn.Close()
		if i == 0 {
			go func() {
				_ = conn.SetReadDeadline(began.Add(patience))
				_, _ = conn.Read(make([]byte, 1))
				silence <- time.Since(began)
			}()
		}
	}
	if code, name, err := status(plain, n.base+"/health"); err != nil || code != http.StatusOK || name != "first" {
		t.Errorf("/health: %d by %q, %v", code, name, err)
	}
	if _, _, err := status(with(&tls.Config{MaxVersion: tls.VersionTLS11}), n.base+"/health"); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
	lib, err := clientlib.New(n.base, clientlib.Options{HTTP: plain})
	ledgertest.Must(t, err)
	following, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	blocks, key := 0, n.out.await(t, `/account/(\S+)`)[1]
	err = lib.Stream(following, clientlib.Subscription{Pubkeys: []string{key}}, clientlib.Handler{SlotEnd: func(uint64, uint64) {
		if blocks++; blocks == 3 {
			stop()
		}
	}})
	if blocks < 3 {
		t.Errorf("followed %d blocks by WSS: %v", blocks, err)
	}

	if after := <-silence; after < 4*time.Second || after >= patience {
		t.Errorf("a connection without a handshake ended after %v, want five seconds, and no idle connection's time", after)
	}

	trusted.sign("second", &certFile, &keyFile)
	for name := ""; name != "second"; time.Sleep(5 * time.Millisecond) {
		_, name, err = status(plain, n.base+"/health")
		ledgertest.Must(t, err)
	}
	stays := func(why string) {
		t.Helper()
		for ; !strings.Contains(n.errs.String(), why); time.Sleep(5 * time.Millisecond) {
			if _, name, err := status(plain, n.base+"/health"); err != nil || name != "second" {
				t.Fatalf("until %q is said: %q, %v", why, name, err)
			}
		}
	}
	ledgertest.Must(t, os.WriteFile(certFile, []byte("broken"), 0o600))
	stays("the certificate before stays")
	ledgertest.Must(t, os.Remove(keyFile))
	ledgertest.Must(t, syscall.Mkfifo(keyFile, 0o600)) // which nobody writes to
	stays("key.pem is not a regular file")
	ledgertest.Must(t, os.Remove(keyFile))
	trusted.sign("expired", &certFile, &keyFile)
	for ; !strings.Contains(n.errs.String(), "the certificate is not valid now"); time.Sleep(5 * time.Millisecond) {
		_, _, _ = status(plain, n.base+"/health") // has the node look at the files
	}
	ledgertest.Equal(t, n.stop(), exitOK, "the exit code")
}

// TestTLSFlagsAreChecked starts nodes that cannot encrypt.
func TestTLSFlagsAreChecked(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, otherKey := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "other.pem")
	a := newAuthority(t)
	a.sign("other", &certFile, &otherKey)
	a.sign("first", &certFile, &keyFile)
	for args, want := range map[string]string{
		"--tls-cert=" + certFile:                                                                 "--tls-cert and --tls-key go together",
		"--tls-client-ca=" + certFile:                                                            "--tls-client-ca needs --tls-cert",
		fmt.Sprintf("--tls-cert=%s --tls-key=%s", certFile, otherKey):                            "private key does not match",
		fmt.Sprintf("--tls-cert=%s --tls-key=%s", certFile, dir):                                 "cannot read the certificate",
		fmt.Sprintf("--tls-cert=%s --tls-key=%s --tls-client-ca=%s", certFile, keyFile, keyFile): "holds no certificate",
		// What is read again while a node runs is nothing that somebody has to write to first.
		fmt.Sprintf("--tls-cert=%s --tls-key=%s --tls-client-ca=%s", certFile, keyFile, newPipe(t, "ca.pem")): "ca.pem is not a regular file",
		"--log=tls://127.0.0.1:1/L --log-tls-ca=" + newPipe(t, "ca.pem"):                                      "ca.pem is not a regular file",
	} {
		serve := []string{"serve", "--listen=127.0.0.1:0", "--ops-listen=127.0.0.1:0", "--data-dir", filepath.Join(dir, "data")}
		toolSays(t, exitUsage, want, append(serve, strings.Fields(args)...)...)
	}
}

// TestReloadReadsTheCertificate changes the files in a way that looking at them does not show.
func TestReloadReadsTheCertificate(t *testing.T) {
	dir := t.TempDir()
	c := &certificate{certFile: filepath.Join(dir, "cert.pem"), keyFile: filepath.Join(dir, "key.pem"), log: quietLog()}
	names := func(want, when string) {
		t.Helper()
		held, err := c.current(nil)
		ledgertest.Must(t, err)
		ledgertest.Equal(t, held.Leaf.Subject.CommonName, want, "the certificate %s", when)
	}
	changed, a, r := time.Now().Add(-time.Hour), newAuthority(t), &reload{node: &node{encryption: encryption{certificate: c}}}
	for i, name := range []string{"first", "second"} {
		a.sign(name, &c.certFile, &c.keyFile)
		ledgertest.Must(t, errors.Join(os.Chtimes(c.certFile, changed, changed), os.Chtimes(c.keyFile, changed, changed)))
		if i > 0 {
			c.looked = time.Time{}
			names("first", "before SIGHUP")
		}
		_, err := r.files(nil)
		ledgertest.Must(t, err)
		names(name, "after SIGHUP")
	}
	ledgertest.Must(t, os.WriteFile(c.certFile, []byte("broken"), 0o600))
	if _, err := r.files(nil); err == nil {
		t.Error("a broken certificate was taken")
	}
	names("second", "after a broken one")
}

// TestPublicOperatorsAreWarned listens for operators where anybody may come.
func TestPublicOperatorsAreWarned(t *testing.T) {
	t.Parallel()
	n := begin(t, "--data-dir", t.TempDir(), "--ops-listen", "0.0.0.0:0")
	n.errs.await(t, "whoever reaches the operators' listener may read it")
}
