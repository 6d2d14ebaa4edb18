// Package call holds the flags that say how a tool reaches a node: one habit for all of them.
package call

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"ledgerd/engine/source/unpack"
	"ledgerd/engine/source/upstream"
	"ledgerd/httpd/client"
)

// Flags are embedded by a command. They are not taken from the environment, nor is the node's address: a node's two listeners have one
// each.
type Flags struct {
	UnixSocket *string  `group:"Connection:" help:"Connect to this Unix socket instead of the host and port of the URL. With https the node's certificate must be for that host." env:"-" placeholder:"PATH"`
	CA         string   `group:"Connection:" help:"Authorities, PEM, that sign the node's certificate; those of the system by default." name:"ca" env:"-" placeholder:"FILE"`
	Insecure   bool     `group:"Connection:" help:"Take any certificate." env:"-"`
	ClientCert string   `group:"Connection:" help:"Certificate to show, PEM, where the node asks for one." env:"-" placeholder:"FILE"`
	ClientKey  string   `group:"Connection:" help:"Private key of --client-cert, PEM." env:"-" placeholder:"FILE"`
	Header     []string `group:"Connection:" short:"H" help:"A field to send with every request; may be repeated." sep:"none" env:"-" placeholder:"\"NAME: VALUE\""`
	APIKeyFile string   `group:"Connection:" help:"API keys, one a line. Who asks over many connections takes them in turns, others take the first." name:"api-key-file" env:"-" placeholder:"FILE"`
}

// maxKeysBytes is room for 10,000 keys.
const maxKeysBytes = 1 << 20

// Asked returns what a node is called that has this URL, or a Unix socket.
func (f *Flags) Asked(url string) string {
	if f.UnixSocket != nil {
		return *f.UnixSocket
	}
	return url
}

// Socket returns the path of the Unix socket, "" if there is none.
func (f *Flags) Socket() string { return *cmp.Or(f.UnixSocket, new(string)) }

// TLS returns how a node is known, and known to it, that has a certificate.
func (f *Flags) TLS() (*tls.Config, error) {
	config, err := upstream.TLSFiles{CA: f.CA, Cert: f.ClientCert, Key: f.ClientKey}.Config()
	if err != nil {
		return nil, fmt.Errorf("--ca, --client-cert, --client-key: %w", err)
	}
	config.InsecureSkipVerify = f.Insecure
	return config, nil
}

// Headers returns the fields of requests: one set for each API key, one in all where there are none.
func (f *Flags) Headers() ([]http.Header, error) {
	common := http.Header{}
	for _, field := range f.Header {
		name, value, found := strings.Cut(field, ":")
		value = strings.TrimSpace(value)
		if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("--header=%q is not NAME: VALUE", field)
		}
		common[textproto.CanonicalMIMEHeaderKey(name)] = append(common[textproto.CanonicalMIMEHeaderKey(name)], value)
	}
	if f.APIKeyFile == "" {
		return []http.Header{common}, nil
	}
	content, err := unpack.ReadSmall(f.APIKeyFile, maxKeysBytes)
	if err != nil {
		return nil, fmt.Errorf("--api-key-file: %w", err)
	}
	var all []http.Header
	for key := range strings.FieldsSeq(string(content)) {
		header := maps.Clone(common)
		header.Set("X-API-Key", key)
		all = append(all, header)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--api-key-file: %s holds no key", f.APIKeyFile)
	}
	return all, nil
}

// Client returns what asks the node.
func (f *Flags) Client() (*http.Client, error) {
	transport, fields, err := f.reach()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &withFields{transport, fields}}, nil
}

// Node returns a client of the node at an address that also follows its stream.
func (f *Flags) Node(url string) (*client.Client, error) {
	transport, fields, err := f.reach()
	if err != nil {
		return nil, err
	}
	return client.New(url, client.Options{HTTP: &http.Client{Transport: transport}, Header: fields})
}

// reach returns what connects to the node, and the fields that every request has.
func (f *Flags) reach() (*http.Transport, http.Header, error) {
	config, err := f.TLS()
	if err != nil {
		return nil, nil, err
	}
	headers, err := f.Headers()
	if err != nil {
		return nil, nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config}
	if f.UnixSocket != nil {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", *f.UnixSocket)
		}
	}
	return transport, headers[0], nil
}

// withFields sends fields with every request.
type withFields struct {
	http.RoundTripper
	fields http.Header
}

// RoundTrip implements http.RoundTripper.
func (w *withFields) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, w.fields)
	r.Host = cmp.Or(w.fields.Get("Host"), r.Host)
	return w.RoundTripper.RoundTrip(r)
}
