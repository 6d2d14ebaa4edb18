package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"ledgerd/bench/dial"
	"ledgerd/bench/load"
	"ledgerd/cmd/internal/call"
	"ledgerd/httpd/client"
)

// reach is how load and listen reach a server over many connections.
type reach struct {
	URL string `arg:"" help:"The server: http://HOST:PORT."`
	call.Flags
	From    []netip.Addr  `group:"Connection:" help:"The addresses of this machine to come from, in turns." placeholder:"ADDRESS"`
	Timeout time.Duration `group:"Connection:" help:"How long connecting may take, and a response." default:"10s"`

	headers []http.Header   // of connections or requests in turns
	fields  http.Header     // of what is asked beside
	speaks  *http.Protocols // HTTP/2, or nil: HTTP/1.1
	secure  *tls.Config     // how servers of https are known
	dialer  dial.Dialer
	client  *http.Client // to ask the server what there is, without fields
	node    *client.Client
	base    *url.URL                       // of the node: http://HOST:PORT/api
	path    string                         // what followed /api/ in the URL, "": nothing
	address atomic.Pointer[netip.AddrPort] // where the server is, once it was asked; nil: at a Unix socket
}

// parse checks the flags. Nothing is asked yet.
func (r *reach) parse() (err error) {
	if r.Timeout <= 0 {
		return errors.New("--timeout must be above 0")
	}
	base, path, _ := strings.Cut(r.URL, "/api/")
	if r.path = path; path != "" {
		r.path = "/" + path
	}
	if r.headers, err = r.Headers(); err != nil {
		return err
	}
	if r.secure, err = r.TLS(); err != nil {
		return err
	}
	if r.speaks != nil {
		r.secure.VerifyConnection = agreed
	}
	// The node is asked as the first connection asks: it may have other limits for other addresses. The load follows no redirects either.
	first := dial.Dialer{From: r.From, Unix: r.Socket(), Timeout: r.Timeout}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r.client = &http.Client{Timeout: r.Timeout, CheckRedirect: stay, Transport: &http.Transport{
		Protocols: r.speaks, TLSClientConfig: r.secure, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			conn, err := first.Dial(ctx, 0, address)
			if err == nil {
				if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
					r.address.CompareAndSwap(nil, new(at.AddrPort()))
				}
			}
			return conn, err
		},
	}}
	r.fields = r.headers[0].Clone()
	r.fields.Del("Accept-Encoding") // here all is to be understood
	r.fields.Del("If-None-Match")
	if r.node, r.base, err = newNode(base, client.Options{HTTP: r.client, Header: r.fields}); err != nil {
		return err
	}
	r.dialer = r.dialerTo(r.base)
	r.dialer.Unix = r.Socket()
	return nil
}

// dialerTo returns how a server is connected to whose interface is at an address.
func (r *reach) dialerTo(base *url.URL) dial.Dialer {
	d := dial.Dialer{From: r.From, Timeout: r.Timeout}
	if base.Scheme == "https" {
		d.TLS = r.secure.Clone()
		d.TLS.ServerName = base.Hostname()
	}
	return d
}

// agreed refuses a server that did not agree to HTTP/2.
func agreed(s tls.ConnectionState) error {
	if s.NegotiatedProtocol != "h2" {
		return errors.New("the server does not speak HTTP/2")
	}
	return nil
}

// newNode returns what asks the node at http://HOST:PORT, with /api or without, and where its interface is.
func newNode(address string, o client.Options) (*client.Client, *url.URL, error) {
	if _, rest, hasUser := strings.Cut(address, "@"); hasUser { // requests do not bear it, and figures would show its password
		return nil, nil, fmt.Errorf("…@%s is not http://HOST:PORT: a user is named by --header 'Authorization: …'", rest)
	}
	if strings.Contains(address, "?") {
		return nil, nil, fmt.Errorf("%s is not http://HOST:PORT", address)
	}
	node, err := client.New(address, o)
	if err != nil {
		return nil, nil, err
	}
	u, err := url.Parse(node.URL())
	return node, u, err
}

// settings are what JSON says of how the server was reached.
func (r *reach) settings(more map[string]any) map[string]any {
	more["url"], more["from"], more["keys"], more["timeout_s"] = r.URL, r.From, len(r.headers), r.Timeout.Seconds()
	if r.APIKeyFile == "" {
		more["keys"] = 0
	}
	return more
}

// shares is how many times the limits of one client hold for so many connections of this one, as the busiest of its addresses has them: a
// client is known by its key, or else by its address.
func (r *reach) shares(connections int) float64 {
	if r.APIKeyFile != "" {
		return float64(len(r.headers)) // of which requests take turns, over however many connections
	}
	addresses := max(1, len(r.From))
	return float64(connections) / float64((connections+addresses-1)/addresses)
}

// try asks for a path, or sends a body there, as the load will, so that what does not exist is found before.
func (r *reach) try(ctx context.Context, path, body string) error {
	address := fmt.Sprintf("%s://%s%s", r.base.Scheme, r.base.Host, path)
	told := address
	if body != "" {
		told, _, _ = strings.Cut(address, "?") // of rented endpoints there is a key behind it
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if body != "" {
		request, err = http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	}
	if err != nil {
		return err
	}
	request.Header, request.Host = r.fields.Clone(), r.fields.Get("Host") // "": that of the URL
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := r.client.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		failed.URL = told
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest && response.StatusCode != http.StatusTooManyRequests {
		return fmt.Errorf("%s is answered %s: nothing is loaded", told, response.Status)
	}
	if to := response.Header.Get("Location"); to != "" && response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s is answered %s to %s: nothing is loaded", told, response.Status, to)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, load.MostBytes))
	if err != nil {
		return fmt.Errorf("cannot read what %s answers: %w", told, err)
	}
	if body != "" && isRPCError(answer) {
		err = fmt.Errorf("%s is answered %.300s: nothing is loaded", body, answer)
	}
	return err
}
