package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"

	"ledgerd/engine/cluster"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// listensAt is a listener that is asked for its address alone.
type listensAt struct {
	net.Listener
	at net.Addr
}

func (l listensAt) Addr() net.Addr { return l.at }

// Others are told of an address that they can reach, or of none.
func TestNodesAdvertiseWhereOthersReachThem(t *testing.T) {
	inner, any6 := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 4), Port: 8081}, &net.TCPAddr{IP: net.IPv6unspecified, Port: 8081}
	for name, tt := range map[string]struct {
		role, flag string
		at         net.Addr // nil: nowhere
		encrypted  bool
		want       string
	}{
		"an address of its own":        {roleReplica, "", inner, false, "http://10.0.0.4:8081"},
		"encrypted":                    {roleAll, "", inner, true, "https://10.0.0.4:8081"},
		"version 6":                    {roleAll, "", &net.TCPAddr{IP: net.ParseIP("fd00::1"), Port: 1}, false, "http://[fd00::1]:1"},
		"an ingester":                  {roleIngest, "10.0.0.4", inner, false, ""},
		"no listener":                  {roleReplica, "10.0.0.4", nil, false, ""},
		"loopback":                     {roleReplica, "", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081}, false, ""},
		"all addresses":                {roleReplica, "", any6, false, ""},
		"all addresses, named":         {roleReplica, "replica-1.internal", any6, false, "http://replica-1.internal:8081"},
		"another port":                 {roleReplica, "[fd00::1]:99", inner, true, "https://[fd00::1]:99"},
		"version 6, named":             {roleReplica, "[fd00::1]", inner, false, "http://[fd00::1]:8081"},
		"a Unix socket":                {roleReplica, "", &net.UnixAddr{Name: "/run/ops"}, false, ""},
		"a Unix socket behind a proxy": {roleReplica, "10.0.0.4:99", &net.UnixAddr{Name: "/run/ops"}, false, "http://10.0.0.4:99"},
	} {
		n := new(node)
		if tt.at != nil {
			n.opsListener = listensAt{at: tt.at}
		}
		if tt.encrypted {
			n.opsTLS = new(tls.Config)
		}
		f := clusterFlags{Role: tt.role, OpsAdvertise: tt.flag}
		ledgertest.Equal(t, f.advertised(n), tt.want, "%s: the address", name)
	}
	for s, want := range map[string]bool{
		"h": true, "h:1": true, "10.0.0.4:8081": true, "[fd00::1]:1": true, "": false, "http://h": false, "who@h": false, "h/x": false, "h:x": false, ":1": false, "h?x": false,
	} {
		ledgertest.Equal(t, isHost(s), want, "whether %q is a host", s)
	}
}

// A node that lost its place in the log begins anew; other ends are as they were.
func TestNodeBeginsAnewWhereItLostItsPlace(t *testing.T) {
	purged, deposed := fmt.Errorf("cannot follow: %w", cluster.ErrPurged), fmt.Errorf("slot 7 was not committed: %w", ledger.ErrDeposed)
	other, usage := errors.New("other"), error(&usageError{errors.New("the port is in use")})
	for name, tt := range map[string]struct {
		source string
		begun  bool
		err    error
		again  bool
		end    string // "": that err
	}{
		"purged past":              {"sim:", false, purged, true, ""},
		"deposed, once more":       {"none", true, deposed, true, ""},
		"a source read once":       {"file:-", false, deposed, false, deposed.Error() + ": start this node again"},
		"a clean stop":             {"sim:", true, nil, false, ""},
		"another failure":          {"sim:", true, other, false, ""},
		"a mistake of its starter": {"sim:", false, usage, false, ""},
		"a port that was taken":    {"sim:", true, usage, false, "cannot begin anew: the port is in use"},
	} {
		again, end := (&serveCommand{Source: tt.source}).after(tt.err, tt.begun)
		_, mistake := errors.AsType[*usageError](end)
		if again != tt.again || tt.end == "" && end != tt.err || tt.end != "" && (end.Error() != tt.end || mistake) {
			t.Errorf("%s: %v, %v; want %v", name, again, end, tt.again)
		}
	}
}
