package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/engine/source/unpack"
	"ledgerd/engine/source/upstream"
)

type tlsFlags struct {
	TLSCert     string `help:"Certificate chain of the public listener, PEM; it then speaks HTTPS and WSS. A file that changes is read again." name:"tls-cert" placeholder:"FILE"`
	TLSKey      string `help:"Private key of --tls-cert, PEM." name:"tls-key" placeholder:"FILE"`
	TLSClientCA string `help:"Authorities, PEM, of which operators need a client certificate; the operators' listener then speaks HTTPS with --tls-cert." name:"tls-client-ca" placeholder:"FILE"`
}

// validate checks that the flags go together.
func (f *tlsFlags) validate(opsListen string) error {
	switch {
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case f.TLSClientCA != "" && f.TLSCert == "":
		return errors.New("--tls-client-ca needs --tls-cert")
	case f.TLSClientCA != "" && opsListen == "":
		return errors.New("--tls-client-ca needs --ops-listen")
	}
	return nil
}

// encryption is how the listeners encrypt.
type encryption struct {
	tls, opsTLS *tls.Config       // nil: the listener does not
	certificate *certificate      // of both; nil: there is none
	operators   *operators        // who may be one; nil: anybody
	peerTLS     upstream.TLSFiles // how a node is an operator of others
}

// open reads the certificate, and the authorities of operators.
func (f *tlsFlags) open(log *slog.Logger) (e encryption, err error) {
	if f.TLSCert == "" {
		return e, nil
	}
	e.certificate = &certificate{certFile: f.TLSCert, keyFile: f.TLSKey, log: log}
	if err := e.certificate.reload(); err != nil {
		return e, err
	}
	e.tls = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: e.certificate.current, NextProtos: []string{"http/1.1"}}
	if f.TLSClientCA == "" {
		return e, nil
	}
	e.peerTLS = upstream.TLSFiles{CA: f.TLSClientCA, Cert: f.TLSCert, Key: f.TLSKey}
	e.operators = &operators{file: f.TLSClientCA, tls: e.tls}
	take, err := e.operators.reload()
	if err != nil {
		return e, err
	}
	take()
	e.opsTLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: e.operators.current}
	return e, nil
}

// operators are those with a certificate of the authorities in a file.
type operators struct {
	file string
	tls  *tls.Config // of the node
	held atomic.Pointer[tls.Config]
}

// current is for tls.Config.GetConfigForClient.
func (o *operators) current(*tls.ClientHelloInfo) (*tls.Config, error) { return o.held.Load(), nil }

// reload reads the file. What it holds counts for the handshakes after take is called.
func (o *operators) reload() (take func(), err error) {
	fresh := o.tls.Clone()
	fresh.ClientAuth = tls.RequireAndVerifyClientCert
	if err = unpack.CheckRegular(o.file); err == nil {
		fresh.ClientCAs, err = upstream.ReadAuthorities(o.file)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read --tls-client-ca %s: %w", o.file, err)
	}
	return func() { o.held.Store(fresh) }, nil
}

// certificateLook is how often handshakes look at most whether the files have changed.
const certificateLook = time.Second

// certificate is what two files hold. They are read again when they have changed; while they cannot be read, or do not go
// together, the one before stays.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	held atomic.Pointer[tls.Certificate]

	mu     sync.Mutex   // of who reads the files
	seen   [2]time.Time // when the files changed last
	looked time.Time
}

// current is for tls.Config.GetCertificate. A handshake that finds another one reading the files takes the certificate before.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.mu.TryLock() {
		defer c.mu.Unlock()
		c.look()
	}
	return c.held.Load(), nil
}

// look reads the files if they have changed since it last looked.
func (c *certificate) look() {
	if time.Since(c.looked) < certificateLook {
		return
	}
	c.looked = time.Now()
	if changed := c.changed(); changed != c.seen {
		if err := c.load(); err != nil {
			c.log.Warn("the certificate before stays", "error", err)
		}
		c.seen = changed
	}
}

// reload reads the files, changed or not.
func (c *certificate) reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.changed()
	return c.load()
}

// changed returns when the files changed last; zero: that cannot be told.
func (c *certificate) changed() (at [2]time.Time) {
	for i, path := range []string{c.certFile, c.keyFile} {
		if file, err := os.Stat(path); err == nil {
			at[i] = file.ModTime()
		}
	}
	return at
}

func (c *certificate) load() error {
	if err := unpack.CheckRegular(c.certFile, c.keyFile); err != nil {
		return fmt.Errorf("cannot read the certificate: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("cannot use the certificate %s with the key %s: %w", c.certFile, c.keyFile, err)
	}
	if now := time.Now(); now.Before(pair.Leaf.NotBefore) || now.After(pair.Leaf.NotAfter) {
		c.log.Warn("the certificate is not valid now", "path", c.certFile, "from", pair.Leaf.NotBefore, "until", pair.Leaf.NotAfter)
	}
	c.held.Store(&pair)
	return nil
}
