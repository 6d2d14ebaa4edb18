package rpc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/httpd/promtext"
)

const (
	// maxAnswerBytes is the longest answer of an upstream that is passed on: whole blocks have some ten megabytes.
	maxAnswerBytes = 32 << 20
	// A node that failed is left alone, for longer with each failure in a row. Then one call finds out whether it answers again.
	firstPause, lastPause = time.Second, 30 * time.Second
	// maxIdle is how long a connection is kept for the next call. A node may end it just when that is sent, unseen: then the call is sent once more, on
	// a new connection. That is harmless: calls read, but for sendTransaction, and a transaction that arrives twice is one, by its signature.
	maxIdle = 3 * time.Second
)

// upstream is another node that answers calls. Its URL may hold secrets, so only its place in the list and its host are ever shown.
type upstream struct {
	client *fasthttp.HostClient
	target *fasthttp.URI
	name   string
	log    *slog.Logger
	// probeTime is the least that a call must have left to find out whether the node answers again: one with less would fail at a node that does.
	// Of many nodes none is ever given a second: then it is half of what each is given.
	probeTime time.Duration

	failures promtext.Counter

	mu            sync.Mutex
	inARow        int
	paused, until time.Time // when it was left alone last, and until when
	answered      time.Time // when it answered last
}

// newUpstreams returns the nodes at some URLs.
func newUpstreams(urls []string, log *slog.Logger) (all []*upstream, err error) {
	for i, text := range urls {
		u, err := url.Parse(text)
		if err == nil {
			_, err = net.LookupPort("tcp", u.Port()) // 65536 is none
		}
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
			target: target, log: log, probeTime: min(time.Second, forwardTime/time.Duration(2*len(urls))), name: strconv.Itoa(i+1) + " at " + u.Hostname(),
			client: &fasthttp.HostClient{
				Addr: net.JoinHostPort(u.Hostname(), port), IsTLS: u.Scheme == "https", TLSConfig: &tls.Config{ServerName: u.Hostname()},
				MaxConns: maxInFlight, MaxResponseBodySize: maxAnswerBytes,
				// Names are looked up anew with each connection, in both families: fasthttp's own dialer knows one and keeps a goroutine.
				DialTimeout: func(addr string, timeout time.Duration) (net.Conn, error) {
					return net.DialTimeout("tcp", addr, timeout)
				},
				NoDefaultUserAgentHeader: true, MaxIdleConnDuration: maxIdle, MaxIdemponentCallAttempts: 2,
			},
		})
		client := all[len(all)-1].client
		client.RetryIfErr = func(*fasthttp.Request, int, error) (resetTimeout, retry bool) {
			client.CloseIdleConnections() // so that the next attempt has a new one
			return false, true
		}
	}
	return all, nil
}

// isAlone reports whether the node failed and is not asked for a while.
func (u *upstream) isAlone(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Before(u.until)
}

// mayAsk reports whether a call that has until a deadline may ask the node. Of the calls that come when a node was left alone for long enough only one
// may, which has time for it: the others leave it alone until that has an answer, or no more time, so that a node which still gives none holds up one
// call and not all.
func (u *upstream) mayAsk(now, deadline time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Before(u.until) {
		return false
	}
	if u.inARow > 0 {
		if deadline.Sub(now) < u.probeTime {
			return false
		}
		u.until = deadline
	}
	return true
}

// ask returns the answer to a call. An error that is a *callError says why the call has no answer here, any other that the node failed.
func (u *upstream) ask(d *Door, f *forwarded, deadline time.Time) ([]byte, error) {
	began := time.Now()
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetURI(u.target)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.Header.SetContentType("application/json")
	request.SetBodyRaw(f.request)
	err := u.client.DoDeadline(request, response, deadline)
	if errors.Is(err, fasthttp.ErrBodyTooLarge) {
		u.succeeded(began)
		return nil, &callError{code: codeInternal, message: "Internal error: the answer of another node is too long to be passed on"}
	}
	if err != nil {
		u.failed(began, 0, !time.Now().Before(deadline))
		return nil, errNoAnswer // the error of the client may quote the URL
	}
	status := response.StatusCode()
	if status == fasthttp.StatusTooManyRequests || status >= 500 {
		seconds, _ := strconv.Atoi(string(response.Header.Peek(fasthttp.HeaderRetryAfter)))
		u.failed(began, time.Duration(min(seconds, int(lastPause/time.Second)))*time.Second, false)
		return nil, errNoAnswer
	}
	answer, err := d.check(f, response.SwapBody(nil)) // which is not pooled: it becomes the answer
	if err == errNoAnswer && status < 400 {
		u.failed(began, 0, false)
		return nil, err
	}
	u.succeeded(began)
	if err == errNoAnswer {
		err = &callError{code: codeInternal,
			message: fmt.Sprintf("Internal error: another node refuses the call with status %d; of this one: %s", status, f.failure.message)}
	}
	return answer, err
}

// succeeded notes an answer, be it that the call is refused. One to a call that began before the node was left alone does not end that.
func (u *upstream) succeeded(began time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answered = time.Now()
	if began.Before(u.paused) {
		return
	}
	if u.inARow > 0 {
		u.log.Info("an upstream node of --rpc-forward answers again", "upstream", u.name)
	}
	u.inARow, u.until = 0, time.Time{}
}

// failed leaves the node alone, at least as long as it has asked for. Calls that began before it was left alone fail for the same reason and change
// nothing, nor does a call that took too long while the node answered others: that is the call's fault.
func (u *upstream) failed(began time.Time, atLeast time.Duration, late bool) {
	u.failures.Add(1)
	u.mu.Lock()
	defer u.mu.Unlock()
	if began.Before(u.paused) || late && began.Before(u.answered) {
		return
	}
	u.inARow++
	if u.inARow == 1 {
		u.log.Warn("an upstream node of --rpc-forward gives no answer", "upstream", u.name)
	}
	u.paused = time.Now()
	u.until = u.paused.Add(max(min(firstPause<<min(u.inARow-1, 10), lastPause), atLeast))
}
