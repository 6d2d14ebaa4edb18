package upstream

import (
	"net/url"
	"strconv"
)

// HasPort reports whether the port of an address is one, or the address names none.
func HasPort(u *url.URL) bool {
	_, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil || u.Port() == ""
}
