package load

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// nodePatience is how long a node may take for a response while it is learned what it holds.
const nodePatience = 10 * time.Second

// Node is a ledgerd that somebody else has started. The limits are those of its last response: of
// the window in which the fewest requests remain.
type Node struct {
	URL       *url.URL       // http://HOST:PORT/api
	Address   netip.AddrPort // where that is
	Limit     int            // requests in the window; 0: any number
	Remaining int            // of those
	Reset     time.Time      // when the window ends
	Head      http.Header    // of its last response
}

// NewNode returns the node at http://HOST:PORT, with /api or without. It asks nothing yet.
func NewNode(address string) (*Node, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme == "https":
		return nil, fmt.Errorf("%s is behind TLS, which ends in a proxy before ledgerd: load the node itself, at http://HOST:PORT", address)
	case u.Scheme != "http" || u.Host == "" || u.RawQuery != "":
		return nil, fmt.Errorf("%s is not http://HOST:PORT", address)
	}
	if u.Path = strings.TrimSuffix(u.Path, "/"); u.Path == "" {
		u.Path = "/api"
	}
	return &Node{URL: u}, nil
}

// Find finds the address of the node, and asks it once for its limits.
func (n *Node) Find(ctx context.Context) error {
	address, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(n.URL.Hostname(), cmp.Or(n.URL.Port(), "80")))
	if err != nil {
		return fmt.Errorf("cannot find the server: %w", err)
	}
	n.Address = address.AddrPort()
	var status struct{ Version string }
	return n.Get(ctx, "/status", &status)
}

// Get asks for a path of the node and reads the record of a response with status 200. What is not there
// leaves the record as it is.
func (n *Node) Get(ctx context.Context, path string, record any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL.String()+path, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: nodePatience}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot reach the server: %w", err)
	}
	defer response.Body.Close()
	n.Head = response.Header
	n.Limit, n.Remaining = int(n.Number("X-RateLimit-Limit")), int(n.Number("X-RateLimit-Remaining"))
	n.Reset = time.Unix(n.Number("X-RateLimit-Reset"), 0)
	switch response.StatusCode {
	case http.StatusOK:
		if err := json.NewDecoder(response.Body).Decode(record); err != nil {
			return fmt.Errorf("GET %s%s is not answered with JSON: %w", n.URL, path, err)
		}
		return nil
	case http.StatusNotFound:
		return nil
	case http.StatusTooManyRequests:
		return fmt.Errorf("the server refuses requests of this client with 429: retry after %s s", response.Header.Get("Retry-After"))
	default:
		return fmt.Errorf("GET %s%s is answered %s", n.URL, path, response.Status)
	}
}

// Number returns the number in a field of the last response, 0 without it.
func (n *Node) Number(field string) int64 {
	value, _ := strconv.ParseInt(n.Head.Get(field), 10, 64)
	return value
}
