package testnode

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
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

// TestEveryNonsenseIsRefused: no way of garbage says anything that could be taken for an update.
func TestEveryNonsenseIsRefused(t *testing.T) {
	refused := 0
	for how := range garbageWays {
		var u yellowstone.Update
		raw := garbage(how)
		switch err := yellowstone.Decode(raw, &u); {
		case err != nil:
			refused++
		case how == 4 && len(raw) > hugeBytes: // by its size alone
		case u.Kind == yellowstone.Transaction || u.Kind == yellowstone.Other:
		default:
			t.Errorf("way %d reads %+v", how, u)
		}
	}
	if refused < garbageWays/2 {
		t.Errorf("only %d ways are refused", refused)
	}
}

func TestReplayReachesAsFarAsItSays(t *testing.T) {
	l := simulated(t, small, Plan{})
	newest := l.steps[29].slot
	tests := map[string]struct {
		config Config
		fault  *Fault
		from   ledger.Slot
		code   codes.Code
		first  ledger.Slot // the oldest slot that comes, 0 for none
	}{
		"within":             {Config{ReplaySlots: 20}, nil, newest - 10, codes.OK, newest - 10},
		"just within":        {Config{ReplaySlots: 20}, nil, newest - 20, codes.OK, newest - 20},
		"beyond":             {Config{ReplaySlots: 20}, nil, newest - 21, codes.OutOfRange, 0},
		"none offered":       {Config{NoReplay: true}, nil, newest - 1, codes.InvalidArgument, 0},
		"refused on command": {Config{}, &Fault{Kind: Refuse, Code: codes.Internal}, newest - 1, codes.Internal, 0},
		"ignored":            {Config{}, &Fault{Kind: IgnoreFrom}, newest - 10, codes.OK, 0},
		"everything":         {Config{ReplaySlots: 25}, &Fault{Kind: ReplayAll}, newest - 1, codes.OK, newest - 25},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inMemoryNode(t, l, tt.config, func(t *testing.T, n *Node) {
				n.Advance(30)
				if tt.fault != nil {
					n.Inject(*tt.fault)
				}
				h := subscribe(t, n, "", everything(ledger.Some(tt.from))).listen(time.Second)
				first := ledger.Slot(0)
				for _, u := range h.updates {
					if u.Slot > 0 && (first == 0 || u.Slot < first) {
						first = u.Slot
					}
				}
				if h.err != nil && status.Code(h.err) != tt.code || h.err == nil && tt.code != codes.OK || first < tt.first || first > 0 && tt.first == 0 || first > tt.first+2 {
					t.Errorf("from slot %d of %d came slot %d, error %v; want %d, %v", tt.from, newest, first, h.err, tt.first, tt.code)
				}
			})
		})
	}
}

func TestNobodyIsServedElsewhereOrWithoutTheToken(t *testing.T) {
	l := simulated(t, small, Plan{})
	inMemoryNode(t, l, Config{Token: "right"}, func(t *testing.T, n *Node) {
		s := subscribe(t, n, "wrong", everything(ledger.Some(ledger.Slot(0))))
		if h := s.listen(time.Second); status.Code(h.err) != codes.Unauthenticated {
			t.Errorf("a wrong token ended with %v", h.err)
		}
		request, _ := http.NewRequest(http.MethodPost, n.CallsURL(), nil)
		if _, err := n.Dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil {
			t.Error("another address was dialled")
		}
		if n.allowed(request) {
			t.Error("a call without a token is allowed")
		}
		request.URL.Path = "/right"
		if !n.allowed(request) {
			t.Error("a call with the token in its path is not allowed")
		}
	})
}

func TestCompressedStreamsTellTheSame(t *testing.T) {
	l := simulated(t, small, Plan{})
	size := map[string]int{}
	for _, how := range []string{"", "gzip", "zstd"} {
		inMemoryNode(t, l, Config{Compress: how, Plain: true}, func(t *testing.T, n *Node) {
			s := subscribe(t, n, "", everything(anywhere))
			n.Advance(l.Slots)
			h := s.listen(time.Second)
			if h.err != nil || h.garbage > 0 || len(h.updates) < 1000 {
				t.Errorf("%q: %d messages, %d nonsense, %v", how, len(h.updates), h.garbage, h.err)
			}
			n.listeners[Stream].mu.Lock()
			defer n.listeners[Stream].mu.Unlock()
			for c := range n.listeners[Stream].open {
				c.mu.Lock()
				size[how] = c.written
				c.mu.Unlock()
			}
		})
	}
	if size["gzip"] >= size[""] || size["zstd"] >= size[""] {
		t.Errorf("bytes written: %v", size)
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

func TestWhatLastsComesToAnEnd(t *testing.T) {
	l := simulated(t, small, Plan{})
	inMemoryNode(t, l, Config{}, func(t *testing.T, n *Node) {
		n.Advance(l.Slots)
		slot := func() string { r, _ := ask(t, n, "getSlot", object{"commitment": "confirmed"}); return string(r) }
		blocks := func() int {
			r, _ := ask(t, n, "getBlocks", 0, 500, object{"commitment": "confirmed"})
			return bytes.Count(r, []byte(",")) + 1
		}
		newest, all := slot(), blocks()
		n.Inject(Fault{Kind: Stale, N: 20, For: 3 * time.Second})
		n.Inject(Fault{Kind: Hide, For: 3 * time.Second})
		if slot() == newest || blocks() >= all {
			t.Errorf("a stale node knows slot %s and %d blocks", slot(), blocks())
		}
		time.Sleep(4 * time.Second)
		if slot() != newest || blocks() != all {
			t.Errorf("after it: slot %s and %d blocks, want %s and %d", slot(), blocks(), newest, all)
		}
	})
}

func TestCallsAreRefusedAsNodesDo(t *testing.T) {
	l := simulated(t, small, Plan{})
	last := l.main[len(l.main)-1].Slot
	skippedSlot := ledger.Slot(3)
	for l.mainAt(skippedSlot) != nil {
		skippedSlot++
	}
	inMemoryNode(t, l, Config{}, func(t *testing.T, n *Node) {
		n.Advance(l.Slots)
		confirmed := object{"commitment": "confirmed"}
		whole := object{"commitment": "confirmed", "encoding": "json", "transactionDetails": "full"}
		keys := slices.Repeat([]string{ledger.VoteProgram.String()}, 101)
		tests := map[string]struct {
			method string
			params []any
			code   int
		}{
			"skipped":            {"getBlock", []any{skippedSlot, whole}, codeSkipped},
			"ahead":              {"getBlock", []any{last + 1, whole}, codeNotAvailable},
			"processed block":    {"getBlock", []any{last, object{"commitment": "processed"}}, codeParams},
			"no version":         {"getBlock", []any{last, whole}, codeVersion},
			"processed blocks":   {"getBlocks", []any{1, 2, object{"commitment": "processed"}}, codeParams},
			"too large a range":  {"getBlocks", []any{1, 600_000, confirmed}, codeParams},
			"too many keys":      {"getMultipleAccounts", []any{keys, confirmed}, codeParams},
			"no key":             {"getMultipleAccounts", []any{[]string{"nonsense"}, confirmed}, codeParams},
			"context ahead":      {"getMultipleAccounts", []any{keys[:1], object{"commitment": "confirmed", "minContextSlot": last + 9}}, codeContextSlot},
			"no such method":     {"getEverything", nil, codeMethod},
			"unknown commitment": {"getSlot", []any{object{"commitment": "max"}}, codeParams},
		}
		for name, tt := range tests {
			if r, failed := ask(t, n, tt.method, tt.params...); failed == nil || failed.Code != tt.code {
				t.Errorf("%s: %.100s %v, want %d", name, r, failed, tt.code)
			}
		}
		if r, failed := ask(t, n, "getMultipleAccounts", keys[:1], object{"commitment": "confirmed", "encoding": "base64"}); failed != nil || !strings.Contains(string(r), `"executable":true`) {
			t.Errorf("getMultipleAccounts: %s %v", r, failed)
		}
	})
}
