package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// history is what the socket of a node told that nobody ever ended. The simulator makes the
// same ledger for everybody, so any node of that ledger, crashed or not, stood and
// stands at a point of it, and tells a part of it, frame by frame.
type history struct {
	testing.TB
	retained uint64 // slots of blocks that the nodes hold at least

	mu     sync.Mutex
	first  uint64            // what came up to this number is not known
	base   map[string]spoken // by key: its newest update up to the first of the frames
	frames []spoken          // updates, ends of slots, rollbacks, in order
}

// place is a point of a ledger at which a node can stand.
type place struct{ slot, seq uint64 }

// spoken is what a frame of any type says of its place.
type spoken struct {
	text      string
	Type      string
	Pubkey    string
	Owner     string
	Lamports  json.Number
	Slot, Seq uint64
	FromSlot  uint64 `json:"from_slot"`
	ToSlot    uint64 `json:"to_slot"`
}

// hear hands on what a node tells from now on, a pong that says where it stands among it, until told has heard enough, the socket ends,
// or ctx does.
func hear(ctx context.Context, base string, told func(f spoken) (more bool)) error {
	conn, err := dialOwn("ws"+strings.TrimPrefix(base, "http")+"/ws/accounts?extended=true", false)
	if err != nil {
		return err
	}
	defer conn.cut()
	defer context.AfterFunc(ctx, conn.cut)()
	err = conn.say(pingText)
	for more := true; err == nil && more; {
		var text []byte
		if text, err = conn.read(); err != nil {
			break
		}
		f := spoken{text: string(text)}
		if err = json.Unmarshal(text, &f); err == nil {
			more = told(f)
		}
	}
	return err
}

// remember listens to a node for the rest of the test.
func remember(t testing.TB, base string, retained uint64) *history {
	t.Helper()
	h := &history{TB: t, retained: retained, base: map[string]spoken{}}
	ctx, cancel := context.WithCancel(context.Background())
	began := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		_ = hear(ctx, base, func(f spoken) bool { // its end is that of the test; before, waiting for more tells
			h.mu.Lock()
			defer h.mu.Unlock()
			switch f.Type {
			case "account_update", "slot_end", "rollback":
				h.frames = append(h.frames, f)
			case "pong":
				h.first = f.Seq
				close(began)
			}
			return true
		})
	})
	t.Cleanup(func() {
		cancel()
		listening.Wait()
	})
	select {
	case <-began:
	case <-time.After(patience):
		t.Fatal("the node that is never ended tells nothing")
	}
	return h
}

// findLocked returns where a slot ends at a number, -1 where none does.
func (h *history) findLocked(p place) int {
	return slices.IndexFunc(h.frames, func(f spoken) bool { return f.Type == "slot_end" && f.Slot == p.slot && f.Seq == p.seq })
}

// reaches waits until the history goes on past a number, or has heard of its slot's end. What
// came up before the history began, it need not reach.
func (h *history) reaches(p place) {
	h.Helper()
	for deadline := time.Now().Add(patience); p.seq > h.first; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		newest := uint64(0)
		if n := len(h.frames); n > 0 {
			newest = h.frames[n-1].Seq
		}
		there := newest > p.seq || newest == p.seq && h.findLocked(p) >= 0
		h.mu.Unlock()
		if there {
			return
		}
		if time.Now().After(deadline) {
			h.Fatalf("the node that was never ended is at number %d and does not come to %d", newest, p.seq)
		}
	}
}

// check holds a node that serves what its disk had against what clients had seen before, and
// against the history. It returns where the node stands; what came before is forgotten, for no later node stands below it.
func (h *history) check(v *victim, s *seen) place {
	h.Helper()
	here := h.stands(v)
	if here.seq < s.seq {
		h.Errorf("the newest number is %d, but %d was seen", here.seq, s.seq)
	}
	h.checkNodeID(v, s)
	h.checkTips(v, s, here)
	h.checkBlocks(v, s, here)
	h.reaches(here)
	h.checkFrames(s)
	if here.seq <= h.first {
		return here
	}
	h.checkTip(v, s, here)
	h.mu.Lock()
	index := h.findLocked(here)
	for _, f := range h.frames[:index+1] {
		if f.Type == "account_update" {
			h.base[f.Pubkey] = f
		}
	}
	h.frames = slices.Clone(h.frames[max(index, 0):])
	h.mu.Unlock()
	if index < 0 {
		h.Errorf("the node stands at slot %d with number %d: no slot of this ledger ends so", here.slot, here.seq)
	} else {
		h.checkAccounts(v, here)
	}
	return here
}

// stands returns where a node without a source is and stays.
func (h *history) stands(v *victim) (here place) {
	h.Helper()
	err := hear(context.Background(), v.base, func(f spoken) bool {
		if here = (place{f.Slot, f.Seq}); f.Type != "pong" {
			h.Errorf("a node without a source tells %s", f.text)
		}
		return f.Type != "pong"
	})
	if err != nil {
		h.Fatal(err)
	}
	return here
}

func (h *history) checkNodeID(v *victim, s *seen) {
	h.Helper()
	a := v.get("/status")
	var status struct {
		NodeInfo struct {
			NodeID string `json:"node_id"`
		} `json:"node_info"`
	}
	if err := json.Unmarshal([]byte(a.body), &status); err != nil || status.NodeInfo.NodeID == "" {
		h.Fatalf("status %s: %v", a.body, err)
	}
	if id := status.NodeInfo.NodeID; s.nodeID == "" {
		s.nodeID = id
	} else if s.nodeID != id {
		h.Errorf("node_id %s became %s", s.nodeID, id)
	}
}

// checkTips checks that no level stands below what was seen of it, and that the newest block
// is the one of the newest number.
func (h *history) checkTips(v *victim, s *seen, here place) {
	h.Helper()
	for level, want := range s.tips {
		a := v.get("/blocks/latest?commitment=" + levels[level])
		var got blockRecord
		switch {
		case a.status == http.StatusNotFound && want == (seenBlock{}) && here.seq == 0:
		case a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &got) != nil:
			h.Errorf("the newest %s block: %d %s, but block %d was seen", levels[level], a.status, a.body, want.slot)
		case level > 0 && got.Slot < want.slot:
			h.Errorf("the newest %s block is %d, but block %d was seen", levels[level], got.Slot, want.slot)
		case level == 0 && got.Slot != here.slot:
			h.Errorf("the newest block is %d to REST and %d to sockets", got.Slot, here.slot)
		}
	}
}

// checkBlocks asks for every block that was seen confirmed and must still be held.
func (h *history) checkBlocks(v *victim, s *seen, here place) {
	h.Helper()
	var missing []string
	for slot, hash := range s.blocks {
		if slot+h.retained <= here.slot {
			delete(s.blocks, slot)
			continue
		}
		a := v.get(fmt.Sprintf("/blocks/%d?commitment=confirmed", slot))
		if a.status != http.StatusOK || !strings.Contains(a.body, `"blockhash":"`+hash+`"`) {
			missing = append(missing, fmt.Sprintf("block %d: %d %s, but it was seen with hash %s", slot, a.status, a.body, hash))
		}
	}
	if len(missing) > 0 {
		h.Errorf("of %d blocks that were seen confirmed, %d are missing: %s", len(s.blocks), len(missing), missing[0])
	}
}

// checkTip checks that the newest block that was seen is there, unless a later one undid it.
func (h *history) checkTip(v *victim, s *seen, here place) {
	h.Helper()
	tip := s.tips[0]
	h.mu.Lock()
	index, from := h.findLocked(here), -1
	undone := false
	for i, f := range h.frames[:index+1] {
		switch {
		case f.Type == "slot_end" && f.Slot == tip.slot:
			from, undone = i, false
		case f.Type == "rollback":
			undone = undone || from >= 0 && f.ToSlot < tip.slot
		}
	}
	comesLater := from < 0 && slices.ContainsFunc(h.frames[index+1:], func(f spoken) bool { return f.Type == "slot_end" && f.Slot == tip.slot })
	h.mu.Unlock()
	switch {
	case index >= 0 && comesLater:
		h.Errorf("the node stands at slot %d with number %d, but block %d, which comes later, was seen", here.slot, here.seq, tip.slot)
	case from >= 0: // else it was seen before what the history knows
		a := v.get(fmt.Sprintf("/blocks/%d", tip.slot))
		if there := a.status == http.StatusOK && strings.Contains(a.body, `"blockhash":"`+tip.hash+`"`); there == undone {
			h.Errorf("block %d with hash %s was seen; undone since: %v; it is answered with %d %s", tip.slot, tip.hash, undone, a.status, a.body)
		}
	}
}

// someKeys is how many accounts are looked at in a check.
const someKeys = 60

// checkAccounts asks for accounts, those that changed last among them.
func (h *history) checkAccounts(v *victim, here place) {
	h.Helper()
	want := h.base
	keys := slices.SortedFunc(maps.Keys(want), func(a, b string) int { return cmp.Compare(want[b].Seq, want[a].Seq) })
	keys = append(keys[:min(len(keys), someKeys/2)], keys[max(min(len(keys), someKeys/2), len(keys)-someKeys/2):]...)
	if len(keys) == 0 {
		return
	}
	a := v.get("/accounts?keys=" + strings.Join(keys, ","))
	var got accountsRecord
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Accounts) != len(keys) || a.header.Get("X-Ledger-Slot") != fmt.Sprint(here.slot) {
		h.Errorf("%d accounts at slot %d: %d %s", len(keys), here.slot, a.status, a.body)
		return
	}
	for i, key := range keys {
		is, was := got.Accounts[i], want[key]
		switch {
		case is == nil && was.Lamports == "0":
		case is == nil || is.Lamports != was.Lamports || is.Owner != was.Owner:
			h.Errorf("account %s at number %d: %+v, want %+v", key, here.seq, is, was)
		}
	}
}

// checkFrames compares what sockets told with what they must have told, frame by frame, and takes it off what was seen.
func (h *history) checkFrames(s *seen) {
	h.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range s.runs {
		for len(run) > 0 && run[0].Seq <= h.first {
			run = run[1:]
		}
		if len(run) == 0 {
			continue
		}
		at := slices.IndexFunc(h.frames, func(f spoken) bool { return f.text == run[0].text })
		if at < 0 && run[0].Seq < h.frames[len(h.frames)-1].Seq {
			h.Errorf("this ledger has no frame %s, or it was told before a restart", run[0].text)
		}
		for i := 0; at >= 0 && i < len(run) && at+i < len(h.frames); i++ {
			if want := h.frames[at+i].text; run[i].text != want {
				h.Errorf("a socket told %s, the ledger has %s", run[i].text, want) // and so is most of what follows
				break
			}
		}
	}
	s.runs = nil
}
