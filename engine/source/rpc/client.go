package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/wait"
	"ledgerd/engine/source/nodejson"
	"ledgerd/engine/source/upstream"
)

// client asks one node. Any goroutine may call it. At most so many calls are under way at once;
// while the node limits the rate, none is begun.
type client struct {
	config  *Config
	http    *http.Client
	stats   *upstream.Stats
	running chan struct{} // room for each call under way
	large   chan struct{} // room for one answer that is read alone
	lastID  atomic.Uint64
	told    sync.Map // causes of notKnown of which the log was told

	mu     sync.Mutex
	pause  wait.Backoff // between calls that the node turned down without saying how long
	closed time.Time    // no call before
}

func newClient(c *Config, stats *upstream.Stats) *client {
	dial, proxy := c.Dial, (func(*http.Request) (*url.URL, error))(nil)
	if dial == nil {
		proxy = http.ProxyFromEnvironment
		dial = (&net.Dialer{Timeout: c.Timeout, KeepAlive: 15 * time.Second}).DialContext
	}
	return &client{
		config: c, stats: stats,
		running: make(chan struct{}, c.Parallel), large: make(chan struct{}, 1),
		pause: wait.Backoff{Min: 250 * time.Millisecond, Max: 10 * time.Second, Random: c.Random},
		http: &http.Client{
			Transport: &http.Transport{
				DialContext: dial, MaxConnsPerHost: c.Parallel, MaxIdleConnsPerHost: c.Parallel,
				IdleConnTimeout: 30 * time.Second, TLSClientConfig: c.TLS, TLSHandshakeTimeout: c.Timeout, MaxResponseHeaderBytes: 64 << 10,
				ForceAttemptHTTP2: true, Proxy: proxy,
			},
			// Another address could be anybody's, and the call may carry a key.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// request is a call of JSON-RPC 2.0.
type request struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params,omitempty"`
}

// response is its answer. Of an error only the code is read: a message could say anything.
type response[T any] struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Result  *T             `json:"result"`
	Error   *struct {
		Code int64 `json:"code"`
	} `json:"error"`
}

// call asks the node and returns the result, nil where it is null. The answer may have so many
// bytes, unpacked. A call waits while the node limits the rate, as long as ctx lets it. Every
// error but ctx's is a *callError, and is counted.
func call[T any](ctx context.Context, c *client, maxBytes int, method string, params ...any) (*T, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer func() { <-c.running }()
	result, err := exchange[T](ctx, c, maxBytes, method, params)
	e, failed := errors.AsType[*callError](err)
	switch {
	case failed && ctx.Err() != nil:
		return nil, ctx.Err() // nobody waits for it any more, whatever it was
	case failed:
		return nil, c.counted(e)
	}
	c.stats.Connected()
	c.mu.Lock()
	c.pause.Reset()
	c.mu.Unlock()
	return result, nil
}

func exchange[T any](ctx context.Context, c *client, maxBytes int, method string, params []any) (*T, error) {
	fail := func(cause cause, detail error) error {
		return &callError{method: method, cause: cause, detail: detail}
	}
	id := c.lastID.Add(1)
	question, err := json.Marshal(request{"2.0", id, method, params})
	if err != nil {
		return nil, fail(garbage, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.URL.String(), bytes.NewReader(question))
	if err != nil {
		return nil, fail(refused, nil) // its text has the address
	}
	headers, err := c.config.Headers.Read()
	if err != nil {
		return nil, fail(unsent, err)
	}
	for header := range slices.Chunk(headers, 2) {
		r.Header.Add(header[0], header[1])
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fail(transportCause(err), whyUnreachable(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		e := &callError{method: method, cause: httpCause(answer.StatusCode), code: int64(answer.StatusCode)}
		e.after = retryAfter(answer.Header.Get("Retry-After"), time.Now())
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10)) // also so that the connection may be used again
		_, err := parse[jsontext.Value](text, method, id)         // which some servers send with a status that says less
		said, ok := errors.AsType[*callError](err)
		if ok && said.code != 0 && said.cause != failed && e.cause != rateLimited {
			said.after = e.after
			return nil, said
		}
		return nil, e
	}
	text, leave, err := c.readBody(ctx, answer.Body, maxBytes)
	defer leave()
	switch {
	case errors.Is(err, errTooLong), errors.Is(err, errTooMany):
		return nil, fail(tooLarge, err)
	case err != nil:
		return nil, fail(bodyCause(err), nil)
	}
	c.stats.Received(len(text))
	result, err := parse[T](text, method, id)
	if e, ok := errors.AsType[*callError](err); ok && e.cause == rateLimited {
		e.after = retryAfter(answer.Header.Get("Retry-After"), time.Now())
	}
	return result, err
}

// parse reads the answer to the call of an id.
func parse[T any](text []byte, method string, id uint64) (*T, error) {
	var answer response[T]
	err := nodejson.Unmarshal(text, &answer)
	switch {
	case err != nil:
	case answer.Version != "2.0":
		err = errors.New("it is no answer of JSON-RPC 2.0")
	case answer.Error != nil: // its id may be null: a call that was not understood has none
		return nil, &callError{method: method, cause: codeCause(answer.Error.Code), code: answer.Error.Code}
	case string(answer.ID) != strconv.FormatUint(id, 10):
		err = errors.New("it answers another call")
	default:
		return answer.Result, nil
	}
	return nil, &callError{method: method, cause: garbage, detail: err}
}

// enter takes the room of a call, and waits until that may begin: a call before it in that room may have
// been told to come less often.
func (c *client) enter(ctx context.Context) error {
	select {
	case c.running <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	for pause := c.limited(); pause > 0; pause = c.limited() {
		if err := wait.Sleep(ctx, pause); err != nil {
			<-c.running
			return err
		}
	}
	return nil
}

// limited returns for how long no call may begin, 0 if one may.
func (c *client) limited() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(time.Until(c.closed), 0)
}

// counted counts an error, and keeps calls back where the node asks for it.
func (c *client) counted(e *callError) error {
	switch {
	case e.cause == rateLimited:
		c.stats.Limited(e.after)
	case e.cause.lost(), e.cause == refused && e.code > 0: // by HTTP: then it refuses everything
		c.stats.Disconnected(causes[e.cause].kind)
	default:
		c.stats.Failed(causes[e.cause].kind)
	}
	if e.cause != rateLimited && e.after == 0 {
		return e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Until(c.closed) > 0 && e.after == 0 {
		return e // calls of the same moment are turned down together
	}
	wait := e.after
	if wait == 0 {
		wait = c.pause.Next()
	}
	if until := time.Now().Add(wait); until.After(c.closed) {
		c.closed = until
	}
	return e
}

// retryAfter reads the header of that name: seconds, or a date. It is bounded.
func retryAfter(header string, now time.Time) time.Duration {
	if header == "" {
		return 0
	}
	if n, err := strconv.ParseUint(header, 10, 64); err == nil {
		return time.Duration(min(n, uint64(ledger.MaxRetryAfter/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), ledger.MaxRetryAfter)
	}
	return 0
}

// publicName returns what of an address may be shown: no user, path or query, where keys stand.
func publicName(u *url.URL) string { return u.Scheme + "://" + u.Host }
