package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// history is what the socket of a node told that nobody ever ended. The simulator makes the
// same ledger for everybody, so any node of that ledger, crashed or not, stood and
// stands at a point of it.
type history struct {
	testing.TB
	retained uint64 // slots of blocks that the nodes hold at least

	mu        sync.Mutex
	first     uint64              // what came up to this number is not known
	newest    uint64              // number of the newest slot that ended
	forgotten uint64              // updates up to this number are not known any more
	updates   map[uint64]string   // by number: the frame
	changes   map[string][]spoken // by key: its updates, in order
	places    []spoken            // ends of slots and rollbacks, in order
	ends      map[place]int       // index in places of the end of a slot
	at        map[uint64]int      // by slot: the same
	undone    map[string]bool     // the rollbacks, as they were told
}

// place is a point of a ledger at which a node can stand.
type place struct{ slot, seq uint64 }

// remember listens to a node for the rest of the test.
func remember(t testing.TB, base string, retained uint64) *history {
	t.Helper()
	h := &history{TB: t, retained: retained, updates: map[uint64]string{}, changes: map[string][]spoken{}, ends: map[place]int{}, at: map[uint64]int{}, undone: map[string]bool{}}
	conn := connect(t, base)
	h.first = pong(t, conn, func(text []byte, f spoken) { h.told(text, f) }).Seq
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			_, text, err := conn.ReadMessage()
			if err != nil {
				return // at the end of the test; before, waiting for more tells
			}
			var f spoken
			if err := json.Unmarshal(text, &f); err != nil {
				t.Errorf("frame %q: %v", text, err)
				return
			}
			h.told(text, f)
		}
	})
	t.Cleanup(func() {
		conn.Close()
		listening.Wait()
	})
	return h
}

// connect opens a socket that is told everything.
func connect(t testing.TB, base string) *websocket.Conn {
	t.Helper()
	conn, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(base, "http")+"/ws/accounts?extended=true", nil)
	if err != nil {
		t.Fatalf("cannot open a socket: %v", err)
	}
	response.Body.Close()
	return conn
}

// pong asks a socket where its node stands. What comes before the answer is handed to told.
func pong(t testing.TB, conn *websocket.Conn, told func(text []byte, f spoken)) spoken {
	t.Helper()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"ping","id":1}`)); err != nil {
		t.Fatal(err)
	}
	for {
		_, text, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		var f spoken
		if err := json.Unmarshal(text, &f); err != nil {
			t.Fatalf("frame %q: %v", text, err)
		}
		if f.Type == "pong" {
			return f
		}
		told(text, f)
	}
}

func (h *history) told(text []byte, f spoken) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch f.Type {
	case "account_update":
		h.updates[f.Seq] = string(text)
		h.changes[f.Pubkey] = append(h.changes[f.Pubkey], f)
	case "slot_end":
		h.ends[place{f.Slot, f.Seq}] = len(h.places)
		h.at[f.Slot] = len(h.places)
		h.places, h.newest = append(h.places, f), f.Seq
	case "rollback":
		h.undone[string(text)] = true
		h.places = append(h.places, f)
	}
}

// reaches waits until the history goes on past a number, or has heard of its slot's end. What
// came up before the history began, it need not reach.
func (h *history) reaches(p place) {
	h.Helper()
	if p.seq <= h.first {
		return
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		h.mu.Lock()
		_, ended := h.ends[p]
		newest := h.newest
		h.mu.Unlock()
		if ended || newest > p.seq {
			return
		}
		if time.Now().After(deadline) {
			h.Fatalf("the node that was never ended is at number %d and does not come to %d", newest, p.seq)
		}
	}
}

// check holds a node that serves what its disk had against what clients had seen before, and
// against the history. It returns where the node stands; what can never be asked again is
// forgotten.
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
	if here.seq > h.first {
		h.checkPlace(v, s, here)
		h.checkAccounts(v, here)
	}
	h.checkFrames(s)
	h.forget(here.seq)
	return here
}

// stands returns where a node without a source is and stays.
func (h *history) stands(v *victim) place {
	h.Helper()
	conn := connect(h, v.base)
	defer conn.Close()
	p := pong(h, conn, func(text []byte, _ spoken) { h.Errorf("a node without a source tells %s", text) })
	return place{p.Slot, p.Seq}
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

// checkPlace checks that the node stands where one block ended, never in the midst of what was
// published as one, and that the newest block seen is there unless a later one undid it.
func (h *history) checkPlace(v *victim, s *seen, here place) {
	h.Helper()
	h.mu.Lock()
	index, ok := h.ends[here]
	from, known := h.at[s.tips[0].slot]
	var since []spoken
	if ok && known && from <= index {
		since = h.places[from : index+1]
	}
	h.mu.Unlock()
	if !ok {
		h.Errorf("the node stands at slot %d with number %d: no slot of this ledger ends so", here.slot, here.seq)
		return
	}
	if !known {
		return // seen before the history began
	}
	tip := s.tips[0]
	if from > index {
		h.Errorf("the node stands at slot %d with number %d, but block %d, which comes later, was seen", here.slot, here.seq, tip.slot)
		return
	}
	undone := false
	for _, f := range since {
		undone = undone || f.Type == "rollback" && f.ToSlot < tip.slot
	}
	a := v.get(fmt.Sprintf("/blocks/%d", tip.slot))
	if there := a.status == http.StatusOK && strings.Contains(a.body, `"blockhash":"`+tip.hash+`"`); there == undone {
		h.Errorf("block %d with hash %s was seen; undone since: %v; it is answered with %d %s", tip.slot, tip.hash, undone, a.status, a.body)
	}
}

// someKeys is how many accounts are looked at in a check.
const someKeys = 60

// checkAccounts asks for accounts, those that changed last among them.
func (h *history) checkAccounts(v *victim, here place) {
	h.Helper()
	want := h.accountsAt(here.seq)
	var keys []string
	for key := range want {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool { return want[keys[i]].Seq > want[keys[j]].Seq })
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

// forget drops the updates up to a number at which a node stood on its disk: no later node
// stands below it.
func (h *history) forget(seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ; h.forgotten < seq; h.forgotten++ {
		delete(h.updates, h.forgotten+1)
	}
	for key, list := range h.changes {
		if n := after(list, seq); n > 1 {
			h.changes[key] = slices.Clone(list[n-1:])
		}
	}
}

// after returns the index of the first update after a number.
func after(list []spoken, seq uint64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].Seq > seq })
}

// accountsAt returns the newest update of every key up to a number.
func (h *history) accountsAt(seq uint64) map[string]spoken {
	h.mu.Lock()
	defer h.mu.Unlock()
	accounts := map[string]spoken{}
	for key, list := range h.changes {
		if n := after(list, seq); n > 0 {
			accounts[key] = list[n-1]
		}
	}
	return accounts
}

// checkFrames compares what the sockets of a node told with what they must have told, and
// takes it off what was seen.
func (h *history) checkFrames(s *seen) {
	h.Helper()
	for _, text := range s.frames {
		if wrong := h.wrong(text); wrong != "" {
			h.Errorf("%s: %s", text, wrong) // and so is most of what follows
			break
		}
	}
	s.frames = nil
}

// wrong says what is wrong with a frame, "" if nothing or if the history does not go so far.
func (h *history) wrong(text string) string {
	var f spoken
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return err.Error()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.Seq <= h.first || f.Seq >= h.newest {
		return ""
	}
	switch f.Type {
	case "account_update":
		if f.Seq <= h.forgotten {
			return "the number was given before a restart"
		}
		if want := h.updates[f.Seq]; want != text {
			return "the ledger has " + want
		}
	case "slot_end":
		if _, ended := h.ends[place{f.Slot, f.Seq}]; !ended {
			return "no slot of this ledger ends so"
		}
	case "rollback":
		if !h.undone[text] {
			return "this ledger has no such rollback"
		}
	}
	return ""
}
