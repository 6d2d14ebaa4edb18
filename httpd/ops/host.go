package ops

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"strings"
)

// holdsSecrets reports whether what is at a path is more than figures. The name that such a request gives the node is checked: the owner of
// a name can let it lead to this machine, and a page of that name could then read the answers (DNS rebinding). Over TLS no name but that
// of the certificate leads here.
func holdsSecrets(path []byte) bool {
	return string(path) == "/backup" || string(path) == "/state" || bytes.HasPrefix(path, []byte(snapshotsPath)) || bytes.HasPrefix(path, []byte("/debug/"))
}

// isOwnName reports whether a Host field names the node in a way that nobody outside can make lead to it: by an address, by a
// name without a dot, such as localhost and those of a local network, as this machine calls itself, or as other nodes of the cluster are told.
func (s *Server) isOwnName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(name, ".") || strings.EqualFold(name, s.config.Name) {
		return true
	}
	own, err := os.Hostname()
	return err == nil && strings.EqualFold(name, own)
}
