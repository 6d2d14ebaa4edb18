package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"ledgerd/httpd/client"
)

// Node is a ledgerd that somebody else has started.
type Node struct {
	*client.Client
	URL     *url.URL       // http://HOST:PORT/api
	Address netip.AddrPort // where that is
}

// NewNode returns the node at http://HOST:PORT, with /api or without, which is asked as the options say. It asks nothing yet.
func NewNode(address string, o client.Options) (*Node, error) {
	if _, rest, hasUser := strings.Cut(address, "@"); hasUser { // requests do not bear it, and figures would show its password
		return nil, fmt.Errorf("…@%s is not http://HOST:PORT: a user is named by --header 'Authorization: …'", rest)
	}
	if strings.Contains(address, "?") {
		return nil, fmt.Errorf("%s is not http://HOST:PORT", address)
	}
	c, err := client.New(address, o)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(c.URL())
	return &Node{Client: c, URL: u}, err
}

// Find finds the address of the node, unless it is known, and asks it once for its limits.
func (n *Node) Find(ctx context.Context) error {
	if !n.Address.IsValid() {
		usual := map[string]string{"http": "80", "https": "443"}[n.URL.Scheme]
		address, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(n.URL.Hostname(), cmp.Or(n.URL.Port(), usual)))
		if err != nil {
			return fmt.Errorf("cannot find the server: %w", err)
		}
		n.Address = address.AddrPort()
	}
	if _, err := n.Status(ctx); err != nil {
		return fmt.Errorf("cannot ask %s/status: %w", n.URL, err)
	}
	return nil
}

// unlessAbsent returns the error of a call, but for one that says that the node has no such thing.
func unlessAbsent(err error) error {
	if refused := (*client.StatusError)(nil); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil
	}
	return err
}
