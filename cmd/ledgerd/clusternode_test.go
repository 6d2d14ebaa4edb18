package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

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
		"h": true, "h:1": true, "10.0.0.4:8081": true, "[fd00::1]:1": true, "": false, "http://h": false, "who@h": false, "h/x": false, "h:x": false, "h:65536": false, ":1": false, "h?x": false,
	} {
		ledgertest.Equal(t, isHost(s), want, "whether %q is a host", s)
	}
}

// A node that lost its place in the log begins anew, so often in a row; other ends are as they were.
func TestNodeBeginsAnewWhereItLostItsPlace(t *testing.T) {
	purged, deposed := fmt.Errorf("cannot follow: %w", cluster.ErrPurged), fmt.Errorf("slot 7 was not committed: %w", ledger.ErrDeposed)
	a, other, usage := newAnew(), errors.New("other"), &usageError{errors.New("the port is in use")}
	try := func(err error, rereads, held, again bool) error {
		t.Helper()
		got := a.after(err, rereads, held)
		if errors.Is(got, errAgain) != again || !errors.Is(got, err) && (again || err != error(usage)) {
			t.Errorf("after %v, with a source that is read again %t, having held the log %t: %v, want to begin anew %t", err, rereads, held, got, again)
		}
		return got
	}
	try(nil, true, true, false)
	try(other, true, true, false)
	if got := try(usage, true, false, false); got != error(usage) {
		t.Errorf("a mistake of who started it became %v", got)
	}
	try(deposed, false, true, false) // the source may be a pipe
	ledgertest.Equal(t, a.trouble(), "", "what health says of a node that has begun once")
	synctest.Test(t, func(t *testing.T) {
		for i := range mostAnew {
			try(purged, true, false, true)
			begun := time.Now()
			must(t, a.wait(t.Context()))
			if waited := time.Since(begun); (waited > 0) != (i > 0) || i > 0 && (waited < a.pause.Min || waited > a.pause.Max) {
				t.Errorf("before attempt %d it waits for %v", i+1, waited)
			}
			ledgertest.Contains(t, a.trouble(), fmt.Sprintf("attempt %d of %d", i+1, mostAnew), "what health says")
		}
	})
	try(purged, true, false, false)
	try(deposed, true, true, true)
	ledgertest.Contains(t, a.trouble(), "attempt 1 of", "what health says")
	for range mostAnew - 1 {
		try(purged, true, false, true)
	}
	try(purged, true, false, false)
	if _, is := errors.AsType[*usageError](try(usage, true, false, false)); is {
		t.Error("a port that is taken while the node begins anew ends it as a mistake does, after which no supervisor starts it again")
	}
}
