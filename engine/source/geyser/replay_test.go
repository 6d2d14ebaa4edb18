package geyser

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// TestNoGapIsMissedInManyDisconnects has a node lose messages and whole blocks, refuse or ignore replays, begin in the middle of blocks, and
// end each session after a few: the chain is whole all the time, and in the end, and each block has all of its writes.
// LEDGERD_DISCONNECTS says how many sessions end.
func TestNoGapIsMissedInManyDisconnects(t *testing.T) {
	for name, config := range map[string]func(c *Config){
		"with transactions":    nil,
		"without transactions": func(c *Config) { c.NoTransactions = true },
		"without votes":        func(c *Config) { c.SkipVotes = true },
		"of two nodes":         func(c *Config) { c.Addresses = append(c.Addresses, secondNode) },
	} {
		t.Run(name, func(t *testing.T) { manyDisconnects(t, config) })
	}
}

// secondNode is the address of a node that may be some slots behind the other.
const secondNode = "second.test:1"

func manyDisconnects(t *testing.T, config func(c *Config)) {
	most := 300
	if text, ok := os.LookupEnv("LEDGERD_DISCONNECTS"); ok {
		var err error
		most, err = strconv.Atoi(text)
		must(t, err)
	}
	r, tip, s := rand.New(rand.NewPCG(1, uint64(most))), ledger.Slot(100), scenario{most: 1000 * time.Hour, until: "never", config: config}
	chance := func(of int) bool { return r.IntN(of) == 0 } // under the lock
	asked := map[string]int{}                              // by node
	session := func(c *call) script {
		s.mu.Lock()
		defer s.mu.Unlock()
		healed := c.number >= most
		plugin, refuses, keeps, ignores, connected := chance(2), chance(8), chance(2), chance(4), connected
		if chance(3) {
			connected = lagging
		}
		begin, at, middle := tip-ledger.Slot(r.IntN(3)), tip+1, r.IntN(6)
		switch {
		case healed && c.number == most:
			tip += 10
			s.until = fmt.Sprint("block ", tip)
		case !healed:
			tip += ledger.Slot(r.IntN(4))
		}
		asked[c.node]++
		from, tip := c.from(), tip
		if c.node == secondNode && !healed {
			tip -= ledger.Slot(r.IntN(4))
		}
		switch {
		case healed:
			return stays(straight(from.Value, tip)...)
		case from.Known && refuses:
			return func(*call) error { return status.Error(codes.OutOfRange, "not now") }
		case plugin && from.Known && at <= tip:
			return func(c *call) error {
				if err := c.send(connected(from.Value, at, tip, middle)...); err != nil || !keeps {
					return err
				}
				from, err := c.again()
				if err != nil {
					return err
				}
				return c.send(frozen(from, tip, tip)...)
			}
		case from.Known && !ignores:
			begin = from.Value
		}
		var all []part
		for slot := begin; slot <= tip; slot++ {
			if r.IntN(8) == 0 {
				continue
			}
			for _, m := range straight(slot, slot) {
				if isWrite := m[0] == accountUpdate(0, ledger.Pubkey{}, ledger.Pubkey{}, 0, 0)[0]; isWrite || r.IntN(60) > 0 { // who loses a write of a block loses the block
					all = append(all, m)
				}
			}
		}
		return shows(all...)
	}
	s.script = func(c *call) error { return session(c)(c) }
	s.fill = func(after, upTo ledger.Slot, emit func(block) error) error {
		s.mu.Lock()
		fails := chance(3)
		s.mu.Unlock()
		if fails {
			return failure{upstream.Unavailable, 0}
		}
		return fillStraight(after, upTo, emit)
	}
	s.run(t)
	next := ledger.Slot(101)
	for slot := range strings.FieldsSeq(strings.ReplaceAll(s.of("block"), " filled", "")) {
		ledgertest.Equal(t, slot, fmt.Sprint(next), "the block that comes after %d, with all of its writes", next-1)
		next++
	}
	n := s.source.Upstream()
	if again := n.Replays - uint64(len(s.begins)-strings.Count(strings.Join(s.begins, " "), "live")); again < uint64(most/20) {
		t.Errorf("nodes were asked again on %d of %d connections", again, most)
	}
	if next != tip+1 || n.Gaps < uint64(most/10) || n.Errors[upstream.Closed] < uint64(most/4) {
		t.Errorf("the chain ends before slot %d, want %d; %d gaps, %v", next, tip+1, n.Gaps, n.Errors)
	}
	if len(s.source.config.Addresses) > 1 && asked[secondNode] < most/3 {
		t.Errorf("calls by node: %v", asked)
	}
	t.Logf("%d sessions, %d gaps, %d replays, %d blocks", len(s.begins), n.Gaps, n.Replays, next-101)
}
