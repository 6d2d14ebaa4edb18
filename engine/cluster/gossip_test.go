package cluster

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

// testMembersHear lets three nodes tell of themselves and of what their clients spend, and one end.
func testMembersHear(t *testing.T, s suite) {
	var nodes []*Cluster
	var mu sync.Mutex
	heard := make([]map[[16]byte]uint32, 3)
	for i := range 3 {
		c := open(t, []string{s.URL(i)}, Config{Stream: "members", NodeID: fmt.Sprintf("n%d", i)})
		nodes, heard[i] = append(nodes, c), make(map[[16]byte]uint32)
		told := false
		spent := func() []Spent {
			if told || c.Peers() < 2 { // they hear of it
				return nil
			}
			told = true
			all := make([]Spent, maxSpent+1)
			for j := range all {
				all[j] = Spent{[16]byte{byte(j), byte(j >> 8)}, uint32(i + 1)}
			}
			return all
		}
		others := func(all []Spent) {
			mu.Lock()
			defer mu.Unlock()
			for _, one := range all {
				heard[i][one.Client] += one.Count
			}
		}
		// Who hears of a node may tell it something: it must listen by then.
		if err := c.Share(spent, others); err != nil {
			t.Fatal(err)
		}
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
		eventually(t, "each hears what the others' clients spent", func() bool {
			mu.Lock()
			defer mu.Unlock()
			sum := uint32(0)
			for _, n := range heard[i] {
				sum += n
			}
			return len(heard[i]) == maxSpent+1 && sum == uint32(maxSpent+1)*uint32(6-i-1)
		})
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
	if _, _, err := decodeSpent(encodeSpent("p", make([]Spent, maxSpent+1))); err == nil {
		t.Error("more clients than a message may tell of are taken")
	}
}

// FuzzSpent takes whatever comes.
func FuzzSpent(f *testing.F) {
	f.Add(encodeSpent("process", []Spent{{[16]byte{1}, 2}, {[16]byte{3}, 4}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		process, all, err := decodeSpent(b)
		if err == nil && !bytes.Equal(encodeSpent(process, all), b) {
			t.Fatalf("%x is not what would be sent of %q, %v", b, process, all)
		}
	})
}
