package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/wait"
)

// maxBodyBytes is far above the longest answer of a node: a block with its transactions.
const maxBodyBytes = 256 << 20

// Options say how a client behaves. The zero value works.
type Options struct {
	// HTTP sends the calls; nil: http.DefaultClient. Streams dial, use a proxy and trust authorities as its *http.Transport does.
	HTTP *http.Client
	// Patience is how long a call waits in all for a node that asks it to come later (429 and 503 with
	// Retry-After). 0: such a call fails at once.
	Patience time.Duration
	// APIKey is sent with every request, streams included; empty: none.
	APIKey string
	// Header is sent with every request likewise. A Host in it stands for that of the address.
	Header http.Header
}

// Client asks one node. It is safe for concurrent use.
type Client struct {
	base    string // http://HOST:PORT/api
	options Options

	mu     sync.Mutex
	budget Budget
}

// Budget is what a node last said that this caller may still ask.
type Budget struct {
	Limit     int       // requests in the window, 0: unlimited, or nothing was asked yet
	Remaining int       // of them
	Reset     time.Time // when the window ends
}

// ParseAddress returns the parts of a node's address, such as http://127.0.0.1:8080.
func ParseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a node: http://HOST:PORT", address)
	}
	return u, nil
}

// New returns a client of the node at an address, see ParseAddress.
func New(address string, o Options) (*Client, error) {
	u, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	o.HTTP = cmp.Or(o.HTTP, http.DefaultClient)
	base := u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/api") + "/api"
	return &Client{base: base, options: o}, nil
}

// URL returns the address of the node's interface: http://HOST:PORT/api.
func (c *Client) URL() string { return c.base }

// Budget returns what the node last said of it.
func (c *Client) Budget() Budget {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.budget
}

// Answer is what a call returns.
type Answer[T any] struct {
	Value   T
	Slot    uint64        // of the version it was computed from, 0 before the first block
	Lag     time.Duration // since the block of that slot was published on the node first
	Partial []string      // fields that no source has told of some account in it
}

// StatusError is a node's refusal or failure.
type StatusError struct {
	Status     int
	Text       string        // short and fixed
	Details    string        // for people
	RetryAfter time.Duration // how long the node asks to wait, 0: it does not say
}

// Error returns all of it.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("status %d: %s: %s", e.Status, e.Text, e.Details)
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; retry after %v", e.RetryAfter)
	}
	return text
}

// get asks for a path below the base, and again as long as the patience lasts.
func get[T any](ctx context.Context, c *Client, path string, q url.Values) (a Answer[T], err error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	for late := time.Now().Add(c.options.Patience); ; {
		a, err = once[T](ctx, c, path)
		var refused *StatusError
		if !errors.As(err, &refused) || refused.RetryAfter <= 0 || time.Now().Add(refused.RetryAfter).After(late) {
			return a, err
		}
		if err := wait.Sleep(ctx, refused.RetryAfter); err != nil {
			return a, err
		}
	}
}

func once[T any](ctx context.Context, c *Client, path string) (a Answer[T], err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return a, fmt.Errorf("cannot ask for %s: %w", path, err)
	}
	r.Header = c.header()
	r.Host = r.Header.Get("Host") // empty: that of the address
	response, err := c.options.HTTP.Do(r)
	if err != nil {
		return a, fmt.Errorf("cannot ask the node: %w", err)
	}
	defer response.Body.Close()
	c.note(response.Header)
	if response.StatusCode != http.StatusOK {
		return a, statusError(response)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxBodyBytes)).Decode(&a.Value); err != nil {
		return a, fmt.Errorf("cannot read the answer to %s: %w", path, err)
	}
	a.Slot, _ = strconv.ParseUint(response.Header.Get("X-Ledger-Slot"), 10, 64) // absent before the first block
	a.Lag = time.Duration(number(response.Header, "X-Ledger-Lag-Ms")) * time.Millisecond
	if partial := response.Header.Get("X-Ledger-Partial"); partial != "" {
		a.Partial = strings.Split(partial, ",")
	}
	return a, nil
}

// header returns the fields of every request.
func (c *Client) header() http.Header {
	h := http.Header{}
	maps.Copy(h, c.options.Header)
	if c.options.APIKey != "" {
		h.Set("Authorization", "Bearer "+c.options.APIKey)
	}
	return h
}

// dialer returns what opens streams: with the means of the client's calls, where those are net/http's own.
func (c *Client) dialer() *websocket.Dialer {
	t, ok := cmp.Or(c.options.HTTP.Transport, http.DefaultTransport).(*http.Transport)
	if !ok {
		return new(websocket.Dialer)
	}
	t = t.Clone() // a call under way may be setting the original up
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil // net/http adds HTTP/2, which a WebSocket does not begin with
	}
	return &websocket.Dialer{Proxy: t.Proxy, NetDialContext: t.DialContext, TLSClientConfig: t.TLSClientConfig}
}

// note keeps what a response says of the budget.
func (c *Client) note(h http.Header) {
	if h.Get("X-RateLimit-Limit") == "" {
		return // from a proxy, not from a node
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget = Budget{number(h, "X-RateLimit-Limit"), number(h, "X-RateLimit-Remaining"), time.Unix(int64(number(h, "X-RateLimit-Reset")), 0)}
}

// number returns a header field that is a number; 0 if it is not.
func number(h http.Header, name string) int {
	n, _ := strconv.Atoi(h.Get(name))
	return n
}

// statusError reads a refusal. What is not in the shape of a node's has its status alone.
func statusError(response *http.Response) *StatusError {
	var told struct {
		Error   any
		Details string
	}
	_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&told)
	text, _ := told.Error.(string)
	if call, ok := told.Error.(map[string]any); ok { // it is the listener for JSON-RPC
		told.Details, _ = call["message"].(string)
	}
	return &StatusError{
		response.StatusCode, cmp.Or(text, http.StatusText(response.StatusCode)), told.Details,
		time.Duration(number(response.Header, "Retry-After")) * time.Second,
	}
}
