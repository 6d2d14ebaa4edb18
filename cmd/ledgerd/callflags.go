package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"ledgerd/engine/source/upstream"
)

// callFlags say how a tool reaches a node by a Unix socket or HTTPS. They are not taken from the environment, nor is the node's address: a
// node's two listeners have one each.
type callFlags struct {
	UnixSocket *string `help:"Connect to this Unix socket instead of the host and port of --url. With https the node's certificate must be for that host." env:"-" placeholder:"PATH"`
	CA         string  `help:"Authorities, PEM, that sign the node's certificate; those of the system by default." name:"ca" env:"-" placeholder:"FILE"`
	ClientCert string  `help:"Certificate to show, PEM, where the node asks for one." env:"-" placeholder:"FILE"`
	ClientKey  string  `help:"Private key of --client-cert, PEM." env:"-" placeholder:"FILE"`
}

// asked returns what a node is called that has this URL, or a Unix socket.
func (f *callFlags) asked(url string) string {
	if f.UnixSocket != nil {
		return *f.UnixSocket
	}
	return url
}

// client returns what asks the node.
func (f *callFlags) client() (*http.Client, error) {
	config, err := upstream.TLSFiles{CA: f.CA, Cert: f.ClientCert, Key: f.ClientKey}.Config()
	if err != nil {
		return nil, fmt.Errorf("--ca, --client-cert, --client-key: %w", err)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config}
	if f.UnixSocket != nil {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", *f.UnixSocket)
		}
	}
	return &http.Client{Transport: transport}, nil
}
