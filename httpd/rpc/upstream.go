package rpc

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/httpd/promtext"
)

const (
	// maxAnswerBytes is the longest answer of an upstream that is passed on: whole blocks have some ten megabytes.
	maxAnswerBytes = 32 << 20
	// A node that failed is left alone, for longer with each failure in a row.
	firstPause, lastPause = time.Second, 30 * time.Second
)

// upstream is another node that answers calls. Its URL may hold secrets, so only its place in the list and its host are ever shown.
type upstream struct {
	client *fasthttp.HostClient
	target *fasthttp.URI
	name   string
	log    *slog.Logger

	failures promtext.Counter
	inARow   atomic.Int64
	until    atomic.Int64 // it is left alone, in Unix nanoseconds
}

// newUpstreams returns the nodes at some URLs.
func newUpstreams(urls []string, log *slog.Logger) (all []*upstream, err error) {
	for i, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			return nil, fmt.Errorf("upstream node %d is no URL of the form http://HOST[:PORT] or https://HOST[:PORT]", i+1)
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		target := fasthttp.AcquireURI()
		if err := target.Parse(nil, []byte(text)); err != nil {
			return nil, fmt.Errorf("upstream node %d has a URL that cannot be asked", i+1)
		}
		all = append(all, &upstream{
			target: target, log: log, name: strconv.Itoa(i+1) + " at " + u.Hostname(),
			client: &fasthttp.HostClient{
				Addr: net.JoinHostPort(u.Hostname(), port), IsTLS: u.Scheme == "https", TLSConfig: &tls.Config{ServerName: u.Hostname()},
				MaxConns: maxInFlight, MaxIdemponentCallAttempts: 1, MaxResponseBodySize: maxAnswerBytes,
				// Names are looked up anew with each connection, in both families: fasthttp's own dialer knows one and keeps a goroutine.
				DialTimeout: func(addr string, timeout time.Duration) (net.Conn, error) {
					return net.DialTimeout("tcp", addr, timeout)
				},
				NoDefaultUserAgentHeader: true, MaxIdleConnDuration: 10 * time.Second,
			},
		})
	}
	return all, nil
}

// isAlone reports whether the node failed and is not asked for a while.
func (u *upstream) isAlone(now time.Time) bool { return now.UnixNano() < u.until.Load() }

// ask returns the answer to a call. An error that is a *callError says why the call has no answer here, any other that the node failed.
func (u *upstream) ask(f *forwarded, deadline time.Time) ([]byte, error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetURI(u.target)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.Header.SetContentType("application/json")
	request.SetBodyRaw(f.request)
	err := u.client.DoDeadline(request, response, deadline)
	if err != nil {
		u.failed(0)
		return nil, errNoAnswer // the error of the client may quote the URL
	}
	if status := response.StatusCode(); status == fasthttp.StatusTooManyRequests || status >= 500 {
		seconds, _ := strconv.Atoi(string(response.Header.Peek(fasthttp.HeaderRetryAfter)))
		u.failed(time.Duration(min(seconds, int(lastPause/time.Second))) * time.Second)
		return nil, errNoAnswer
	}
	answer, err := f.check(response.Body())
	if err == errNoAnswer {
		u.failed(0)
		return nil, err
	}
	if u.inARow.Swap(0) > 0 {
		u.log.Info("an upstream node of --rpc-forward answers again", "upstream", u.name)
	}
	return append([]byte(nil), answer...), err
}

// failed leaves the node alone, at least as long as it has asked for.
func (u *upstream) failed(atLeast time.Duration) {
	u.failures.Add(1)
	n := u.inARow.Add(1)
	if n == 1 {
		u.log.Warn("an upstream node of --rpc-forward gives no answer", "upstream", u.name)
	}
	pause := min(firstPause<<min(n-1, 10), lastPause)
	u.until.Store(time.Now().Add(max(pause, atLeast)).UnixNano())
}
