package rpc

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"

	"net/http"
	"reflect"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
)

// stateAfter applies what was emitted, as the engine does.
func stateAfter(events []ledger.Event) map[ledger.Pubkey]*ledger.Account {
	held := map[ledger.Pubkey]*ledger.Account{}
	apply := func(list []ledger.AccountWrite, taught ledger.Provenance) {
		for i := range list {
			held[list[i].Pubkey] = ledger.Merge(held[list[i].Pubkey], &list[i], taught)
		}
	}
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.Block:
			apply(e.Accounts, ledger.BlockProvenance(e.Slot))
		case *ledger.BaseState:
			apply(e.Accounts, ledger.BaseProvenance(e.Slot))
		}
	}
	return held
}

// holding returns the data of a token account.
func holding(mint, wallet ledger.Pubkey, amount uint64, delegate byte) []byte {
	data := make([]byte, 165)
	copy(data, mint[:])
	copy(data[32:], wallet[:])
	binary.LittleEndian.PutUint64(data[64:], amount)
	if delegate != 0 {
		data[72], data[76] = 1, delegate
	}
	data[108] = 1
	return data
}

func TestABlockComesWithWhatItsAccountsAre(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12)
		k := keyOf(1)
		n.pay(12, 500, k)
		n.hold(k, 500, ledger.VoteProgram, nil)
		r := follow(t, New(n.config()), at(10), untilSlot(12))
		a := stateAfter(r.events)[k]
		if a == nil || a.Lamports != 500 || a.Owner != ledger.VoteProgram || a.Unknown() != 0 || a.Provenance != ledger.BlockProvenance(12) {
			t.Errorf("got %+v", a)
		}
		if len(n.asked) != 1 {
			t.Errorf("asked for %v", n.asked)
		}
	})
}

// What stands at a later slot is not shown before that one's block.
func TestAnswersWaitForTheBlockOfTheirSlot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11)
		again, still, owner := keyOf(1), keyOf(2), keyOf(9)
		n.pay(11, 500, again, still)
		n.hold(again, 700, owner, nil) // as block 13 leaves it
		n.hold(still, 500, owner, nil)
		n.context = 13
		go func() {
			time.Sleep(2 * time.Second)
			n.prepare(11, 12, 13)
			n.pay(13, 700, again)
			n.confirm(13)
		}()
		r := follow(t, New(n.config()), at(10), func(r *recorder) bool {
			s, ok := r.events[len(r.events)-1].(*ledger.BaseState)
			return ok && s.Slot == 13
		})
		for i, e := range r.events {
			held := stateAfter(r.events[:i+1])
			if b, ok := e.(*ledger.Block); ok && b.Slot < 13 {
				if a := held[again]; a.Lamports != 500 || a.Known != 0 {
					t.Errorf("at slot %d it is %+v", b.Slot, a)
				}
			}
		}
		held := stateAfter(r.events)
		if a := held[again]; a.Lamports != 700 || a.Owner != owner || a.Provenance != ledger.BlockProvenance(13) {
			t.Errorf("touched again: %+v", a)
		}
		if a := held[still]; a.Lamports != 500 || a.Owner != owner || a.Provenance != ledger.BaseProvenance(13) {
			t.Errorf("not touched again: %+v", a)
		}
	})
}

// askedFor follows blocks 11 to 13, which touch the same accounts, and returns how often the node
// was asked for each.
func askedFor(t *testing.T, mode Accounts, prepare func(n *fakeNode)) map[string]int {
	n := startNode(t)
	n.add(10, 11)
	prepare(n)
	go func() {
		for slot := ledger.Slot(12); slot <= 13; slot++ {
			time.Sleep(2 * time.Second)
			n.prepare(slot-1, slot)
			n.mu.Lock()
			n.blocks[slot].fields = n.blocks[11].fields
			n.mu.Unlock()
			n.confirm(slot)
		}
	}()
	c := n.config()
	c.Accounts = mode
	follow(t, New(c), at(10), untilSlot(13))
	asked := map[string]int{}
	for _, keys := range n.asked {
		for _, k := range keys {
			asked[k]++
		}
	}
	return asked
}

func TestWhichAccountsAreAskedFor(t *testing.T) {
	wallet, holder, gone := keyOf(1), keyOf(2), keyOf(3)
	tests := map[Accounts][3]int{
		AccountsTouched: {1, 3, 3},
		AccountsNew:     {1, 1, 3},
		AccountsNone:    {0, 0, 0},
	}
	for mode, want := range tests {
		bubble.Test(t, func(t *testing.T) {
			asked := askedFor(t, mode, func(n *fakeNode) {
				n.pay(11, 500, wallet, holder, gone)
				n.hold(wallet, 500, ledger.SystemProgram, nil)
				n.hold(holder, 500, ledger.TokenProgram, holding(keyOf(7), wallet, 5, 1))
			})
			if got := [3]int{asked[wallet.String()], asked[holder.String()], asked[gone.String()]}; got != want {
				t.Errorf("%s: asked %v times, want %v", accountsNames[mode], got, want)
			}
		})
	}
}

func TestCatchingUpAsksOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		var slots []ledger.Slot
		for slot := ledger.Slot(11); slot < 800; slot++ {
			slots = append(slots, slot)
		}
		n.add(10, slots...)
		for i, slot := range slots {
			n.pay(slot, uint64(slot), keyOf(i), keyOf(1000))
			n.hold(keyOf(i), uint64(slot), ledger.SystemProgram, nil)
		}
		n.hold(keyOf(1000), 799, ledger.VoteProgram, nil)
		r := follow(t, New(n.config()), at(10), func(r *recorder) bool {
			_, ok := r.events[len(r.events)-1].(*ledger.BaseState)
			return ok
		})
		wantChain(t, r)
		if len(n.asked) != 8 { // 790 accounts, 100 at once
			t.Errorf("%d calls", len(n.asked))
		}
		for k, a := range stateAfter(r.events) {
			if a.Unknown() != 0 {
				t.Errorf("%v is partial: %+v", k, a)
			}
		}
	})
}

// A block does not wait long for a node that cannot tell its accounts; they are asked for later.
func TestAccountsThatCannotBeHadHoldNothingUp(t *testing.T) {
	faults := map[string]func(n *fakeNode, w http.ResponseWriter){
		"limited": func(_ *fakeNode, w http.ResponseWriter) { says(429, "", "Retry-After", "1")(w) },
		"failed":  func(_ *fakeNode, w http.ResponseWriter) { says(500, "")(w) },
		"slow": func(n *fakeNode, w http.ResponseWriter) {
			n.mu.Unlock()
			defer n.mu.Lock()
			time.Sleep(9 * time.Second)
		},
		"old":       func(_ *fakeNode, w http.ResponseWriter) { fails(-32016, time.Hour)(w) },
		"not asked": func(_ *fakeNode, w http.ResponseWriter) { says(200, `{"jsonrpc":"2.0","id":1,"result":{}}`)(w) },
	}
	for name, fault := range faults {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11)
			k := keyOf(1)
			n.pay(11, 500, k)
			n.hold(k, 500, ledger.VoteProgram, nil)
			n.fault = func(w http.ResponseWriter, method string, _ []json.RawMessage) bool {
				if method != "getMultipleAccounts" || n.calls[method] > 3 {
					return false
				}
				fault(n, w)
				return true
			}
			begun := time.Now()
			go func() {
				for slot := ledger.Slot(12); n.wait(time.Second); slot++ {
					n.add(slot-1, slot)
				}
			}()
			r := follow(t, New(n.config()), at(10), func(r *recorder) bool {
				if b, ok := r.events[len(r.events)-1].(*ledger.Block); ok {
					if late := time.Since(begun) - time.Duration(b.Slot-11)*time.Second; late > 6*time.Second {
						t.Errorf("%s: block %d is %v late", name, b.Slot, late)
					}
				}
				a := stateAfter(r.events)[k]
				return a != nil && a.Known&ledger.FieldOwner != 0
			})
			if a := stateAfter(r.events)[k]; a.Lamports != 500 || a.Owner != ledger.VoteProgram {
				t.Errorf("%s: got %+v", name, a)
			}
		})
	}
}

func TestANodeThatCannotTellAccountsIsNotHammered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11)
		n.pay(11, 500, keyOf(1))
		n.fault = func(w http.ResponseWriter, method string, _ []json.RawMessage) bool {
			if method != "getMultipleAccounts" {
				return false
			}
			says(500, "")(w)
			return true
		}
		go goesOn(n, 11, 200)
		c := n.config()
		c.Random = func(n int64) int64 { return n - 1 }
		follow(t, New(c), at(10), untilSlot(200))
		n.mu.Lock()
		defer n.mu.Unlock()
		if calls := n.calls["getMultipleAccounts"]; calls < 5 || calls > 20 {
			t.Errorf("%d calls with 190 blocks", calls)
		}
	})
}

// What a block taught is gone when it is taken back: then nothing is known of it any more.
func TestWhatIsTakenBackIsAskedForAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12)
		k := keyOf(1)
		n.pay(12, 500, k)
		n.hold(k, 500, ledger.VoteProgram, nil)
		c := n.config()
		c.Parallel = 1
		wrongOnce(n, 12, fakeBlock{slot: 12, parent: 11, hash: hashOf("twin"), previous: hashOf("11"), fields: n.blocks[12].fields})
		go func() {
			n.wait(2 * time.Second)
			n.add(12, 13)
		}()
		r := follow(t, New(c), at(10), untilSlot(13))
		wantSlots(t, r, 11, 12, 12, 13)
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.asked) != 2 {
			t.Errorf("asked for %v", n.asked)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	m := newRecentAccounts(100)
	kept := keyOf(50_000)
	for i := range 10_000 {
		m.put(keyOf(i), plain)
		if i == 0 {
			m.put(kept, token)
		}
		if m.get(kept) != token {
			t.Fatalf("what is asked for all the time was forgotten after %d", i)
		}
	}
	if n := len(m.young) + len(m.old); n > 100 {
		t.Errorf("%d are remembered", n)
	}
	if m.forget(kept); m.get(kept) != unknown {
		t.Error("what was forgotten is remembered")
	}

	c := Config{Logger: slog.New(slog.DiscardHandler)}.withDefaults()
	l := newLearner(nil, &c, AccountsTouched)
	b := &ledger.Block{Slot: 1}
	for i := range maxWanted + 40 {
		b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: ledger.Pubkey{byte(i), byte(i >> 8), byte(i >> 16)}, Lamports: 1})
	}
	if l.note(b); len(l.wanted) != maxWanted || l.forgotten != 40 {
		t.Errorf("%d are wanted, %d forgotten", len(l.wanted), l.forgotten)
	}
}

func TestTokenFactsComeFromThePartOfTheData(t *testing.T) {
	mint, wallet := keyOf(7), keyOf(8)
	account := holding(mint, wallet, 5, 1)
	extended := append(append(holding(mint, wallet, 6, 0), 2), make([]byte, 40)...)
	scaled := scaledMint(9, 3)
	mintData := scaled[:82]
	multisig := append(append(holding(mint, wallet, 7, 0), 2), make([]byte, 355-166)...)
	tests := map[string]struct {
		owner  ledger.Pubkey
		data   []byte
		amount uint64
		mint   *ledger.Mint
		calls  int
	}{
		"token account":          {ledger.TokenProgram, account, 5, nil, 1},
		"extended token account": {ledger.Token2022Program, extended, 6, nil, 1},
		"mint":                   {ledger.TokenProgram, mintData, 0, &ledger.Mint{Decimals: 3, Supply: ledger.Some(uint64(9)), Scaled: ledger.Some(false)}, 1},
		"mint with extensions":   {ledger.Token2022Program, scaled, 0, &ledger.Mint{Decimals: 3, Supply: ledger.Some(uint64(9)), Scaled: ledger.Some(true)}, 2},
		"multisig":               {ledger.Token2022Program, multisig, 0, nil, 1},
		"too long for a token":   {ledger.TokenProgram, extended, 0, nil, 1},
		"another program":        {ledger.VoteProgram, make([]byte, 3762), 0, nil, 1},
	}
	for name, tt := range tests {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11, 12)
			n.finalized = 11 // what is confirmed alone is not told
			n.hold(keyOf(1), 500, tt.owner, tt.data)
			s := New(n.config())
			defer s.CloseIdle()
			state, err := s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Finalized)
			if err != nil || state.Slot != 11 || len(state.Accounts) != 1 {
				t.Fatalf("%s: got %+v, %v", name, state, err)
			}
			w := state.Accounts[0]
			want := ledger.AccountWrite{Pubkey: keyOf(1), Lamports: 500, Owner: tt.owner, RentEpoch: 1<<64 - 1, Known: ledger.FieldsAll, Mint: tt.mint}
			if tt.amount != 0 {
				want.SetTokenFacts(tt.data)
			}
			if !reflect.DeepEqual(w, want) || (w.Token != nil) != (tt.amount != 0) {
				t.Errorf("%s: got %+v, want %+v", name, w, want)
			}
			if len(n.asked) != tt.calls {
				t.Errorf("%s: %d calls", name, len(n.asked))
			}
		})
	}
}

func TestFetchTellsWhatIsNotThereAndWhy(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11)
		n.hold(keyOf(2), 5, ledger.SystemProgram, nil)
		s := New(n.config())
		defer s.CloseIdle()
		state, err := s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1), keyOf(2)}, ledger.Finalized)
		if err != nil || len(state.Accounts) != 2 || state.Accounts[0].Lamports != 0 || state.Accounts[0].Pubkey != keyOf(1) || state.Accounts[1].Lamports != 5 {
			t.Fatalf("got %+v, %v", state, err)
		}
		s.final.Store(12) // the answer must not be older than what was emitted as final
		_, err = s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Finalized)
		var up *ledger.UpstreamError
		if !errors.As(err, &up) || !up.Busy || !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("an old answer: err = %v", err)
		}
		answering(n, says(200, `{"jsonrpc":"2.0","id":3,"result":{"context":{"slot":11},"value":[null]}}`))
		if _, err = s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Finalized); !errors.As(err, &up) || !up.Busy {
			t.Errorf("an old answer of a node that does not know minContextSlot: err = %v", err)
		}
		answering(n, says(429, "", "Retry-After", "9"))
		if _, err = s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Finalized); !errors.As(err, &up) || !up.Busy || up.RetryAfter != 9*time.Second {
			t.Errorf("limited: err = %v", err)
		}
		calls := n.calls["getMultipleAccounts"]
		if _, err = s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Finalized); !errors.As(err, &up) || !up.Busy || up.RetryAfter != 9*time.Second || n.calls["getMultipleAccounts"] != calls {
			t.Errorf("while limited: err = %v, %d calls", err, n.calls["getMultipleAccounts"]-calls)
		}
		time.Sleep(10 * time.Second)
		answering(n, says(500, ""))
		if _, err = s.Fetch(t.Context(), []ledger.Pubkey{keyOf(1)}, ledger.Finalized); !errors.As(err, &up) || up.Busy {
			t.Errorf("down: err = %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = s.Fetch(ctx, []ledger.Pubkey{keyOf(1)}, ledger.Finalized); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: err = %v", err)
		}
	})
}

func TestFillEmitsTheGapAndWhatItTouched(t *testing.T) {
	for _, context := range []ledger.Slot{14, 20} {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(10, 11, 12, 14, 15, 20)
			for slot := ledger.Slot(11); slot <= 20; slot++ {
				if n.blocks[slot] != nil {
					n.pay(slot, uint64(slot), keyOf(int(slot)), keyOf(99))
					n.hold(keyOf(int(slot)), uint64(slot), ledger.SystemProgram, nil)
				}
			}
			n.hold(keyOf(99), uint64(context), ledger.VoteProgram, nil)
			n.context = context
			n.fault = func(w http.ResponseWriter, method string, _ []json.RawMessage) bool {
				if method != "getMultipleAccounts" || n.calls[method] > 3 {
					return false
				}
				says(503, "")(w)
				return true
			}
			s := New(n.config())
			defer s.CloseIdle()
			r := &recorder{}
			if err := s.Fill(t.Context(), 10, hashOf("10"), 14, r.emit); err != nil {
				t.Fatal(err)
			}
			wantSlots(t, r, 11, 12, 14)
			held := stateAfter(r.events)
			for _, i := range []int{11, 12, 14, 99} {
				if a := held[keyOf(i)]; a == nil || a.Unknown() != 0 {
					t.Errorf("context %d: account %d is %+v", context, i, a)
				}
			}
			if a := held[keyOf(99)]; a.Lamports != ledger.Lamports(context) {
				t.Errorf("context %d: got %+v", context, a)
			}
		})
	}
}

func TestFillGivesUpWhereAccountsAreNotToBeHad(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11, 12)
		n.pay(12, 7, keyOf(1))
		n.fault = func(w http.ResponseWriter, method string, _ []json.RawMessage) bool {
			if method == "getMultipleAccounts" {
				says(403, "")(w)
			}
			return method == "getMultipleAccounts"
		}
		s := New(n.config())
		defer s.CloseIdle()
		r := &recorder{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		err := s.Fill(ctx, 10, hashOf("10"), 12, r.emit)
		var failure upstream.Failure
		if !errors.As(err, &failure) || failure.Kind() != upstream.Refused {
			t.Errorf("err = %v", err)
		}
		if calls := n.calls["getMultipleAccounts"]; calls < 2 || calls > fillTries+1 {
			t.Errorf("%d calls", calls)
		}
		for _, e := range r.events {
			if b, ok := e.(*ledger.Block); ok && b.Slot == 12 {
				t.Error("the block came without what its accounts are")
			}
		}
	})
}

func TestFillSaysWhatItCannotFill(t *testing.T) {
	tests := map[string]struct {
		after, upTo ledger.Slot
		hash        string
		code        int
		want        string
	}{
		"pruned":         {10, 13, "10", -32001, "cannot fill slots 12 to 13: getBlock: the node does not keep it any more (-32001)"},
		"missing":        {10, 13, "10", -32007, "cannot fill slots 12 to 13: getBlock: the node has no such block: skipped or missing (-32007)"},
		"no such end":    {10, 17, "10", 0, "cannot fill slots 14 to 17: getBlocks: the node has no such block: skipped or missing"},
		"another ledger": {10, 13, "x", 0, "block " + hashOf("x").String() + " at slot 10 is final here: the node's chain does not hold it: it shows another ledger, or a fork below finality"},
		"out of order":   {10, 10, "10", 0, "there is nothing to fill: the slots are not in order"},
	}
	for name, tt := range tests {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(9, 10, 11, 12, 13)
			if tt.code != 0 {
				blockFault(n, 12, fails(tt.code, time.Hour))
			}
			s := New(n.config())
			defer s.CloseIdle()
			r := &recorder{}
			err := s.Fill(t.Context(), tt.after, hashOf(tt.hash), tt.upTo, r.emit)
			if err == nil || err.Error() != tt.want {
				t.Errorf("%s: err = %v", name, err)
			}
			var failure upstream.Failure
			if name == "pruned" && (!errors.As(err, &failure) || failure.Kind() != upstream.OutOfRange) {
				t.Errorf("%s: %v does not say of which kind it is", name, err)
			}
		})
	}
}
