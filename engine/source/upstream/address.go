package upstream

import (
	"net"
	"net/url"
)

// HasPort reports whether the port of an address is one, or the address names none.
func HasPort(u *url.URL) bool {
	_, err := net.LookupPort("tcp", u.Port())
	return err == nil
}
