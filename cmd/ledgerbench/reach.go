package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
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

	headers []http.Header // of connections or requests in turns
	fields  http.Header   // of what is asked beside
	dialer  dial.Dialer
	client  *http.Client // to ask the server what there is, without fields
	node    *load.Node
	path    string // what followed /api/ in the URL, "": nothing
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
	secure, err := r.TLS()
	if err != nil {
		return err
	}
	r.dialer = dial.Dialer{From: r.From, Unix: r.Socket(), Timeout: r.Timeout}
	first := r.dialer // the node is asked as the first connection asks: it may have other limits for other addresses
	r.client = &http.Client{Timeout: r.Timeout, Transport: &http.Transport{
		TLSClientConfig: secure, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return first.Dial(ctx, 0, address) },
	}}
	r.fields = r.headers[0].Clone()
	r.fields.Del("Accept-Encoding") // here all is to be understood
	r.fields.Del("If-None-Match")
	if r.node, err = load.NewNode(base, client.Options{HTTP: r.client, Header: r.fields}); err != nil {
		return err
	}
	if r.dialer.Unix != "" {
		r.node.Address = netip.AddrPortFrom(netip.IPv4Unspecified(), 0) // nobody connects there
	}
	if r.node.URL.Scheme == "https" {
		r.dialer.TLS = secure.Clone()
		r.dialer.TLS.ServerName = r.node.URL.Hostname()
	}
	return nil
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
func (r *reach) try(path, body string) error {
	address := fmt.Sprintf("%s://%s%s", r.node.URL.Scheme, r.node.URL.Host, path)
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if body != "" {
		request, err = http.NewRequest(http.MethodPost, address, strings.NewReader(body))
	}
	if err != nil {
		return err
	}
	request.Header, request.Host = r.fields.Clone(), r.fields.Get("Host") // "": that of the URL
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest && response.StatusCode != http.StatusTooManyRequests {
		return fmt.Errorf("%s is answered %s: nothing is loaded", address, response.Status)
	}
	answer, err := io.ReadAll(response.Body)
	if err == nil && body != "" && isRPCError(answer) {
		err = fmt.Errorf("%s is answered %.300s: nothing is loaded", body, answer)
	}
	return err
}
