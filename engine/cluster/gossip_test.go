package cluster

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

// testMembersHear lets three nodes tell of themselves, and one end.
func testMembersHear(t *testing.T, s suite) {
	var nodes []*Cluster
	for i := range 3 {
		c := open(t, []string{s.URL(i)}, Config{Stream: "members", NodeID: fmt.Sprintf("n%d", i)})
		nodes = append(nodes, c)
		if err := c.Announce(func() Member { return Member{Role: "reader", Slot: ledger.Slot(i + 1)} }); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range nodes {
		eventually(t, "each hears of the two others", func() bool { return c.Peers() == 2 })
		all := c.Members()
		for j := range 3 {
			found := slices.ContainsFunc(all, func(m Member) bool { return m.Node == fmt.Sprintf("n%d", j) && m.Slot == ledger.Slot(j+1) })
			if found != (i != j) {
				t.Errorf("n%d hears of %+v", i, all)
			}
		}
	}
	nodes[2].Close()
	eventually(t, "one is gone", func() bool { return nodes[0].Peers() == 1 && nodes[1].Peers() == 1 })
}

// TestGossipIsBounded takes what nobody should send.
func TestGossipIsBounded(t *testing.T) {
	c := &Cluster{process: "me"}
	c.members.seen = make(map[string]Member)
	for i := range maxMembers + 10 {
		c.heard(fmt.Appendf(nil, `{"node":"n","process":"p%d"}`, i))
	}
	if got := c.Peers(); got != maxMembers {
		t.Errorf("%d members, want %d", got, maxMembers)
	}
	before := c.stats.gossipRefused.Load()
	for _, bad := range []string{"", "{", "[]", `{"node":"n"}`, `{"process":"p"}`, `{"node":"` + string(bytes.Repeat([]byte("x"), 65)) + `","process":"p"}`} {
		c.heard([]byte(bad))
	}
	c.heard(bytes.Repeat([]byte(" "), maxLineBytes+1))
	if got := c.stats.gossipRefused.Load() - before; got != 7 {
		t.Errorf("%d lines were refused, want 7", got)
	}
	c.members.seen = map[string]Member{"old": {Seen: time.Now().Add(-seenWithin)}}
	if c.Peers() != 0 || len(c.Members()) != 0 {
		t.Error("one that was not heard of for long is a member")
	}
}
