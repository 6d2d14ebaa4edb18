package testnode

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/yellowstone"
)

// heard is what a subscriber took from a stream: what it says of each message, until it ended.
type heard struct {
	updates []yellowstone.Update
	garbage int // messages that do not decode
	err     error
}

// listen takes from a stream until so much simulated time passed, or it ended.
func (s *subscription) listen(d time.Duration) (h heard) {
	timer := time.AfterFunc(d, s.cancel)
	defer timer.Stop()
	for {
		raw, err := s.next()
		if status.Code(err) == codes.Canceled {
			return h
		}
		if h.err = err; err != nil {
			return h
		}
		var u yellowstone.Update
		if err := yellowstone.Decode(raw, &u); err != nil {
			h.garbage++
			continue
		}
		h.updates = append(h.updates, u)
	}
}

// kinds counts what was heard.
func (h *heard) count(kind yellowstone.Kind, status yellowstone.SlotStatus) (n int) {
	for _, u := range h.updates {
		if u.Kind == kind && (kind != yellowstone.Slot || u.Status == status) {
			n++
		}
	}
	return n
}

// inMemoryNode runs f in a bubble with a node in memory.
func inMemoryNode(t *testing.T, l *Ledger, c Config, f func(t *testing.T, n *Node)) {
	t.Helper()
	c.InMemory = true
	bubble.Test(t, func(t *testing.T) {
		n := started(t, l, c)
		f(t, n)
	})
}

var anywhere = ledger.Opt[ledger.Slot]{}

func TestFaultsOfTheStream(t *testing.T) {
	l := simulated(t, small, Plan{})
	var straight heard
	inMemoryNode(t, l, Config{Plain: true}, func(t *testing.T, n *Node) {
		s := subscribe(t, n, "", everything(anywhere))
		n.Advance(l.Slots)
		straight = s.listen(time.Second)
	})
	metas, confirmedOnes := straight.count(yellowstone.Meta, 0), straight.count(yellowstone.Slot, yellowstone.Confirmed)
	if straight.err != nil || straight.garbage > 0 || metas < len(l.main) || confirmedOnes != len(l.main) {
		t.Fatalf("a straight run: %v, %d nonsense, %d heads, %d confirmed", straight.err, straight.garbage, metas, confirmedOnes)
	}
	all := len(straight.updates)
	type check func(h *heard) bool
	ends := func(code codes.Code) check { return func(h *heard) bool { return status.Code(h.err) == code } }
	fewer := func(kind yellowstone.Kind, s yellowstone.SlotStatus, by int) check {
		return func(h *heard) bool {
			return h.err == nil && h.count(kind, s) == straight.count(kind, s)-by && len(h.updates) == all-by
		}
	}
	links := func(h *heard) (wrong int) {
		hash := map[ledger.Slot]ledger.Hash{}
		for _, u := range h.updates {
			if u.Kind == yellowstone.Meta {
				if p, ok := hash[u.Head.ParentSlot]; u.Slot > 1 && (!ok || p != u.Head.ParentHash.Value) {
					wrong++
				}
				hash[u.Slot] = u.Head.Hash
			}
		}
		return wrong
	}
	tests := map[string]struct {
		fault Fault
		want  check
	}{
		"cut":               {Fault{Kind: Cut, After: 3000}, func(h *heard) bool { return h.err != nil && len(h.updates) > 0 && len(h.updates) < all }},
		"cut at once":       {Fault{Kind: Cut}, func(h *heard) bool { return h.err != nil && len(h.updates) == 0 }},
		"stall":             {Fault{Kind: Stall, After: 3000, For: time.Minute}, func(h *heard) bool { return h.err == nil && len(h.updates) > 0 && len(h.updates) < all }},
		"stall that ends":   {Fault{Kind: Stall, For: 8 * time.Second}, func(h *heard) bool { return h.err == nil && len(h.updates) == all }},
		"trickle":           {Fault{Kind: Trickle, For: time.Minute}, func(h *heard) bool { return h.err == nil && len(h.updates) > 0 && len(h.updates) < all/2 }},
		"down":              {Fault{Kind: Down, For: time.Second}, ends(codes.Unavailable)},
		"kick":              {Fault{Kind: Kick, Code: codes.Internal}, ends(codes.Internal)},
		"kick without word": {Fault{Kind: Kick}, func(h *heard) bool { return h.err == io.EOF }},
		"duplicate":         {Fault{Kind: Duplicate, N: 1}, func(h *heard) bool { return h.err == nil && len(h.updates) == all+1 }},
		"wrong parent":      {Fault{Kind: WrongParent, After: 3}, func(h *heard) bool { return h.err == nil && len(h.updates) == all && links(h) > links(&straight) }},
		"wrong parent slot": {Fault{Kind: WrongParent, How: 1, After: 3}, func(h *heard) bool { return h.err == nil && links(h) > links(&straight) }},
		"another block":     {Fault{Kind: Equivocate}, func(h *heard) bool { return len(h.updates) == all && links(h) > links(&straight) }},
		"two blocks":        {Fault{Kind: Equivocate, How: 1}, func(h *heard) bool { return h.count(yellowstone.Meta, 0) == metas+1 }},
		"no heads":          {Fault{Kind: OmitMeta, N: 3}, fewer(yellowstone.Meta, 0, 3)},
		"no transactions":   {Fault{Kind: OmitTx, N: 4, After: 5}, fewer(yellowstone.Transaction, 0, 4)},
		"no processed":      {Fault{Kind: OmitProcessed}, fewer(yellowstone.Slot, yellowstone.Processed, 1)},
		"no confirmed":      {Fault{Kind: OmitConfirmed, N: 2}, fewer(yellowstone.Slot, yellowstone.Confirmed, 2)},
		"no finalized":      {Fault{Kind: OmitFinalized, N: 2}, fewer(yellowstone.Slot, yellowstone.Finalized, 2)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inMemoryNode(t, l, Config{Plain: true}, func(t *testing.T, n *Node) {
				s := subscribe(t, n, "", everything(anywhere))
				n.Inject(tt.fault)
				n.Advance(l.Slots)
				if h := s.listen(9 * time.Second); !tt.want(&h) {
					t.Errorf("%v: %d of %d messages, %d heads, ended with %v", tt.fault, len(h.updates), all, h.count(yellowstone.Meta, 0), h.err)
				}
			})
		})
	}
}

func TestFaultsOfCalls(t *testing.T) {
	l := simulated(t, small, Plan{})
	block := l.main[len(l.main)/2].Slot
	getBlock := question("getBlock", block, wholeBlock)
	errorCode := func(body []byte) int {
		var a struct{ Error callError }
		_ = json.Unmarshal(body, &a)
		return a.Error.Code
	}
	type outcome struct {
		status int
		header http.Header
		body   []byte
		err    error
		took   time.Duration
	}
	code := func(want int) func(outcome) bool { return func(o outcome) bool { return errorCode(o.body) == want } }
	nonsense := func(o outcome) bool {
		var a struct {
			ID     int
			Result *json.RawMessage
		}
		return o.err != nil || json.Unmarshal(o.body, &a) != nil || a.ID != 1 || a.Result == nil
	}
	tests := map[string]struct {
		fault Fault
		want  func(o outcome) bool
	}{
		"too many":              {Fault{Kind: RateLimit}, func(o outcome) bool { return o.status == 429 && o.header.Get("Retry-After") == "1" }},
		"too many without time": {Fault{Kind: RateLimit, How: 1}, func(o outcome) bool { return o.status == 429 && o.header.Get("Retry-After") == "" }},
		"too many with a date": {Fault{Kind: RateLimit, How: 2}, func(o outcome) bool {
			_, err := http.ParseTime(o.header.Get("Retry-After"))
			return o.status == 429 && err == nil
		}},
		"unavailable": {Fault{Kind: ServerError}, func(o outcome) bool { return o.status == 503 && bytes.HasPrefix(o.body, []byte("<html>")) }},
		"broken":      {Fault{Kind: ServerError, How: 1}, func(o outcome) bool { return o.status == 500 }},
		"gateway":     {Fault{Kind: ServerError, How: 2}, func(o outcome) bool { return o.status == 502 }},
		"slow":        {Fault{Kind: Slow, For: 5 * time.Second}, func(o outcome) bool { return o.took >= 5*time.Second && o.status == 200 }},
		"behind":      {Fault{Kind: NodeBehind}, code(codeUnhealthy)},
		"skipped":     {Fault{Kind: Missing}, code(codeSkipped)},
		"long term":   {Fault{Kind: Missing, How: 1}, code(codeSkippedLongTerm)},
		"not yet":     {Fault{Kind: Missing, How: 2}, code(codeNotAvailable)},
		"no status":   {Fault{Kind: Missing, How: 3}, code(codeStatusUnknown)},
		"null":        {Fault{Kind: Missing, How: 4}, func(o outcome) bool { return bytes.Contains(o.body, []byte(`"result":null`)) }},
		"cut":         {Fault{Kind: Cut, On: Calls, After: 300}, func(o outcome) bool { return o.err != nil }},
		"down":        {Fault{Kind: Down, On: Calls, For: time.Second}, func(o outcome) bool { return o.err != nil }},
		"nonsense":    {Fault{Kind: BadAnswer}, nonsense},
		"ends early":  {Fault{Kind: BadAnswer, How: 1}, nonsense},
		"half":        {Fault{Kind: BadAnswer, How: 2}, nonsense},
		"another id":  {Fault{Kind: BadAnswer, How: 3}, nonsense},
		"no result":   {Fault{Kind: BadAnswer, How: 4}, nonsense},
		"too deep":    {Fault{Kind: BadAnswer, How: 5}, nonsense},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inMemoryNode(t, l, Config{}, func(t *testing.T, n *Node) {
				n.Advance(l.Slots)
				ask := func() (o outcome) {
					begun := time.Now()
					o.status, o.header, o.body, o.err = post(t, n, getBlock)
					o.took = time.Since(begun)
					return o
				}
				n.Inject(tt.fault)
				if o := ask(); !tt.want(o) {
					t.Errorf("%v: %d %v %.200s %v", tt.fault, o.status, o.header, o.body, o.err)
				}
				n.Heal()
				if o := ask(); o.status != 200 || errorCode(o.body) != 0 || nonsense(o) {
					t.Errorf("after %v: %d %.200s %v", tt.fault, o.status, o.body, o.err)
				}
			})
		})
	}
}
