package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger/ledgertest"
)

// history is what the socket of a node told that nobody ever ended. The simulator makes the
// same ledger for everybody, so any node of that ledger, crashed or not, stood and
// stands at a point of it, and tells a part of it, frame by frame.
type history struct {
	*seen
	retained uint64 // slots of blocks that the nodes hold at least
}

// remember listens to a node that has just begun for the rest of the test.
func remember(t testing.TB, base string, retained uint64) *history {
	t.Helper()
	h := &history{newSeen(t), retained}
	h.begin(base)
	t.Cleanup(func() { h.leave(true) })
	return h
}

// heard returns the frames until now.
func (h *history) heard() (run []heard) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Starts > 1 {
		h.Fatal("the client of the node that was never ended had to begin anew")
	}
	return h.run
}

// reaches waits until the history goes on past a place, or has heard of its slot's end.
func (h *history) reaches(p place) {
	h.Helper()
	natstest.Eventually(h, fmt.Sprintf("the node that was never ended comes to %+v", p), func() bool {
		frames := h.heard()
		n := len(frames)
		return p.seq == 0 || n > 0 && (frames[n-1].seq > p.seq || ends(frames[max(0, n-10):], p))
	})
}

// check holds a node that serves what its disk had against what clients had seen before, and
// against the history. It returns where the node stands.
func (h *history) check(v *victim, s *seen) place {
	h.Helper()
	here := standsAt(h, v.base, levels[0])
	if here.seq < s.seq {
		h.Errorf("the newest number is %d, but %d was seen", here.seq, s.seq)
		return here
	}
	m := nodeID.FindStringSubmatch(v.get("/status").body)
	if m == nil || s.nodeID != "" && s.nodeID != m[1] {
		h.Fatalf("node_id %s became %q", s.nodeID, m)
	}
	s.nodeID = m[1]
	if here != (place{}) || s.tips[0] != (seenBlock{}) {
		ledgertest.Equal(h, newestSlot(v), here.slot, "the newest block to REST, which sockets know too")
	}
	h.checkBlocks(v, s, here)
	h.reaches(here)
	frames := h.heard()
	if here.seq > 0 && !ends(frames, here) {
		h.Errorf("the node stands at slot %d with number %d: no slot of this ledger ends so", here.slot, here.seq)
	}

	// The client hears what it missed, and then knows what the node answers.
	s.begin(v.base)
	s.heardAll(v, here)
	s.leave(true)
	all := map[string]accountState{}
	if here.seq > 0 {
		all, _ = v.accounts(levels[0], true)
	}
	if err := s.differs(all); err != nil || s.Wrong != "" {
		h.Errorf("the client: %v; %s", err, s.Wrong)
	}
	for _, run := range append(slices.Clone(s.older), s.run) {
		if len(run) > 0 {
			sameFrames(h, "the client", "the node that was never ended", run[0].seq, run, frames)
		}
	}
	h.checkTip(v, s)
	return here
}

var nodeID = regexp.MustCompile(`"node_id":"(\w+)"`)

// checkBlocks asks for every block that was seen confirmed or finalized and must still be held: no level stands below what was seen of it.
func (h *history) checkBlocks(v *victim, s *seen, here place) {
	h.Helper()
	var missing []string
	for slot, b := range s.blocks {
		if slot+h.retained <= here.slot {
			delete(s.blocks, slot)
			continue
		}
		a := v.get(fmt.Sprintf("/blocks/%d?commitment=%s", slot, levels[b.level]))
		if a.status != http.StatusOK || !strings.Contains(a.body, `"blockhash":"`+b.hash+`"`) {
			missing = append(missing, fmt.Sprintf("block %d: %d %s, but it was seen %s with hash %s", slot, a.status, a.body, levels[b.level], b.hash))
		}
	}
	if len(missing) > 0 {
		h.Errorf("of %d blocks that were seen confirmed or finalized, %d are missing: %s", len(s.blocks), len(missing), missing[0])
	}
}

// checkTip checks that the newest block that was seen is there, unless a later one undid it.
func (h *history) checkTip(v *victim, s *seen) {
	h.Helper()
	tip, there, undone := s.tips[0], false, false
	for _, f := range s.run {
		switch {
		case f.kind == "slot_end" && f.slot == tip.slot:
			there, undone = true, false
		case f.kind == "rollback":
			undone = undone || there && f.slot < tip.slot
		}
	}
	if tip.slot == 0 || !there && s.from > 0 { // nothing was seen, or before the client began anew
		return
	}
	a := v.get(fmt.Sprintf("/blocks/%d", tip.slot))
	if found := a.status == http.StatusOK && strings.Contains(a.body, `"blockhash":"`+tip.hash+`"`); found == undone {
		h.Errorf("block %d with hash %s was seen; undone since: %v; it is answered with %d %s", tip.slot, tip.hash, undone, a.status, a.body)
	}
}
