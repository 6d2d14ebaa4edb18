package testnode

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

func TestAccountDataTellsTheFacts(t *testing.T) {
	l := simulated(t, "accounts=900,tps=50,slot_time=0,slots=20", Plan{})
	tokens, mints, scaled := 0, 0, 0
	for _, versions := range l.history {
		for _, v := range versions {
			w := v.write
			if w.Lamports == 0 {
				continue
			}
			token, mint := ledger.ParseTokenData(w.Owner, accountData(w))
			if !reflect.DeepEqual(token, w.Token) {
				t.Fatalf("%s reads %+v, want %+v", w.Pubkey, token, w.Token)
			}
			if (mint == nil) != (w.Mint == nil) || mint != nil && !mint.SameFacts(w.Mint) {
				t.Fatalf("%s reads %+v, want %+v", w.Pubkey, mint, w.Mint)
			}
			if token != nil {
				tokens++
			}
			if mint != nil {
				mints++
				if mint.Scaled.Value {
					scaled++
				}
			}
		}
	}
	if tokens == 0 || mints == 0 || scaled == 0 {
		t.Errorf("%d token accounts, %d mints, %d scaled", tokens, mints, scaled)
	}
}

// TestBalancesAddUpToTheState follows the balances of getBlock from block to block.
func TestBalancesAddUpToTheState(t *testing.T) {
	l := simulated(t, small, Plan{})
	lamports := map[ledger.Pubkey]ledger.Lamports{}
	for _, a := range l.Base.Accounts {
		lamports[a.Pubkey] = a.Lamports
	}
	for _, b := range l.main {
		bb := l.balances(b)
		for i := range b.Transactions {
			pre, post := bb.lamports(i, bb.pre), bb.lamports(i, bb.post)
			for n, k := range b.Transactions[i].Accounts {
				if lamports[k] != pre[n] {
					t.Fatalf("block %d, transaction %d: %s had %d, and is said to have had %d", b.Slot, i, k, lamports[k], pre[n])
				}
				lamports[k] = post[n]
			}
		}
		for _, r := range bb.rewards {
			lamports[r["pubkey"].(ledger.Pubkey)] = r["postBalance"].(ledger.Lamports)
		}
		for _, w := range b.Accounts {
			if lamports[w.Pubkey] != w.Lamports {
				t.Fatalf("block %d leaves %s %d lamports, the balances say %d", b.Slot, w.Pubkey, w.Lamports, lamports[w.Pubkey])
			}
		}
	}
}

func TestForksAreAsDeepAsPlanned(t *testing.T) {
	for depth := 1; depth <= maxForkDepth; depth++ {
		l := simulated(t, "accounts=120,tps=5,slot_time=0,fork_rate=0,slots=20", Plan{Turns: []Turn{{Before: 12, Kind: Fork, Depth: depth}}})
		main := l.Main()
		from, to := main[11], main[12]
		if to.ParentSlot != from.Slot || to.PreviousBlockhash.Value != from.Blockhash {
			t.Fatalf("depth %d: block %d builds on %d, want %d", depth, to.Slot, to.ParentSlot, from.Slot)
		}
		built, on := 0, from.Blockhash
		for _, e := range l.Events() {
			if b, ok := e.(*ledger.Block); ok && b.PreviousBlockhash.Value == on && b.Slot < to.Slot {
				built, on = built+1, b.Blockhash
			}
		}
		if built != depth {
			t.Errorf("depth %d: the branch has %d blocks", depth, built)
		}
	}
}

// TestEveryTurnLeavesTheChain has every kind of turn leave the blocks that stay as they are.
func TestEveryTurnLeavesTheChain(t *testing.T) {
	straight := simulated(t, small, Plan{})
	for kind := range turnKinds {
		l := simulated(t, small, Plan{Turns: []Turn{{Before: 7, Kind: kind, Depth: 3}}})
		if len(l.main) != len(straight.main) {
			t.Fatalf("%v: %d blocks, want %d", kind, len(l.main), len(straight.main))
		}
		for i, b := range l.main {
			if b.Blockhash != straight.main[i].Blockhash || i > 0 && b.ParentSlot != l.main[i-1].Slot {
				t.Fatalf("%v: block %d of slot %d builds on %d", kind, i, b.Slot, b.ParentSlot)
			}
		}
		last, was := l.main[len(l.main)-1].Slot, straight.main[len(straight.main)-1].Slot
		if got, want := l.StateHash(last), straight.StateHash(was); got != want {
			t.Errorf("%v: state %s, want %s", kind, got, want)
		}
		for i, s := range l.steps {
			if i > 0 && s.slot != l.steps[i-1].slot+1 {
				t.Errorf("%v: slot %d is told after %d", kind, s.slot, l.steps[i-1].slot)
			}
		}
	}
}

// TestTheSameSeedTellsTheSame: a node's messages come from its seed alone.
func TestTheSameSeedTellsTheSame(t *testing.T) {
	l := simulated(t, small, Plan{Turns: []Turn{{Before: 5, Kind: Fork, Depth: 2}, {Before: 9, Kind: DeadSlot}}})
	tell := func(seed uint64) (out [][]byte) {
		n := New(l, Config{Seed: seed})
		n.Advance(l.Slots)
		for _, m := range n.log {
			out = append(out, m.encode("x", nil, time.Unix(1, 2)))
		}
		return out
	}
	if !reflect.DeepEqual(tell(4), tell(4)) {
		t.Error("two nodes of a seed differ")
	}
	if reflect.DeepEqual(tell(4), tell(5)) {
		t.Error("nodes of two seeds do not differ")
	}
	// The seeds that tests name because of what they find would find other things.
	all := sha256.New()
	for seed := range uint64(50) {
		fmt.Fprintln(all, NewSchedule(seed, OnStream|OnCalls))
	}
	if got := hex.EncodeToString(all.Sum(nil)[:4]); got != "adf9c2bf" {
		t.Errorf("the schedules of 50 seeds are others than they were: %s", got)
	}
}

// TestMessagesComeAsValidatorsSendThem: no account write comes after its bank froze, no status before its block,
// and nothing of a dead block after its end.
func TestMessagesComeAsValidatorsSendThem(t *testing.T) {
	l := simulated(t, small, Plan{Turns: []Turn{{Before: 5, Kind: DeadSlot}, {Before: 9, Kind: DeadBlock}, {Before: 14, Kind: Twice}}})
	early, lateTx := 0, 0
	for seed := range uint64(20) {
		n := New(l, Config{Seed: seed})
		n.Advance(l.Slots)
		state := map[ledger.Slot]slotStatus{}
		dead := map[ledger.Slot]int{}
		for _, m := range n.log {
			was, begun := state[m.slot]
			switch {
			case m.kind == accountMessage && (!begun || was == slotProcessed || was == slotDead):
				t.Fatalf("seed %d: slot %d is %d as an account of it comes", seed, m.slot, was)
			case m.kind == slotMessage:
				if (m.status == slotConfirmed || m.status == slotFinalized) && was != slotProcessed && was != slotConfirmed {
					t.Fatalf("seed %d: slot %d is %d as it becomes %d", seed, m.slot, was, m.status)
				}
				if m.status == slotDead {
					dead[m.slot]++
				}
				state[m.slot] = m.status
			case was == slotDead:
				t.Fatalf("seed %d: slot %d is dead as more of it comes", seed, m.slot)
			case m.kind == metaMessage && was != slotProcessed:
				early++
			case m.kind == transactionMessage && was == slotProcessed:
				lateTx++
			}
		}
		if len(dead) != 3 {
			t.Errorf("seed %d: dead slots %v", seed, dead)
		}
	}
	if early == 0 || lateTx == 0 {
		t.Errorf("the order does not vary: %d heads before the end, %d transactions after", early, lateTx)
	}
}

func TestRequestsAreReadAndFiltersKept(t *testing.T) {
	filter := func(w wire) wire { return wire(nil).bytes(1, []byte("f")).bytes(2, w) }
	vote := &message{kind: transactionMessage, tx: &ledger.Transaction{Accounts: []ledger.Pubkey{{1}, {2}, ledger.VoteProgram}}}
	status := func(s slotStatus) *message { return &message{kind: slotMessage, status: s} }
	tests := map[string]struct {
		request wire
		m       *message
		passes  bool
	}{
		"accounts":                 {wire(nil).bytes(1, filter(nil)), &message{kind: accountMessage}, true},
		"no accounts asked for":    {wire(nil).bytes(2, filter(nil)), &message{kind: accountMessage}, false},
		"first shreds unasked for": {wire(nil).bytes(2, filter(nil)), status(slotFirstShred), false},
		"first shreds":             {wire(nil).bytes(2, filter(wire(nil).number(2, 1))), status(slotFirstShred), true},
		"confirmed":                {wire(nil).bytes(2, filter(nil)), status(slotConfirmed), true},
		"votes":                    {wire(nil).bytes(3, filter(nil)), vote, true},
		"no votes":                 {wire(nil).bytes(3, filter(wire(nil).number(1, 0))), vote, false},
		"no heads":                 {wire(nil).bytes(3, filter(nil)), &message{kind: metaMessage}, false},
		"heads":                    {wire(nil).bytes(5, filter(nil)), &message{kind: metaMessage}, true},
		"pings always":             {nil, &message{kind: pingMessage}, true},
	}
	for name, tt := range tests {
		if r, err := parseRequest(tt.request); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if _, passes := r.passes(tt.m); passes != tt.passes {
			t.Errorf("%s: passes is %v", name, passes)
		}
	}
	r, err := parseRequest(everything(ledger.Some(ledger.Slot(0)), slice{0, 82}, slice{82, 1}))
	if err != nil || !r.fromSlot.Known || !slices.Equal(r.slices, []slice{{0, 82}, {82, 1}}) || r.filters[slotMessage] != "s" {
		t.Errorf("read %+v, %v", r, err)
	}
	for name, bad := range map[string][]byte{
		"slices that overlap":   wire(nil).bytes(7, wire(nil).number(2, 5)).bytes(7, wire(nil).number(1, 4).number(2, 5)),
		"cut short":             everything(anywhere)[:3],
		"a filter of accounts":  wire(nil).bytes(1, filter(wire(nil).bytes(2, nil))),
		"confirmed as level":    wire(nil).number(6, 1),
		"blocks, not supported": wire(nil).bytes(4, filter(nil)),
	} {
		if _, err := parseRequest(bad); err == nil {
			t.Errorf("%s: read without an error", name)
		}
	}
}

func TestSlicesBeyondTheDataAreLeftOut(t *testing.T) {
	data := []byte("0123456789")
	for want, slices := range map[string][]slice{
		"0123456789": nil, "012": {{0, 3}}, "01289": {{0, 3}, {8, 2}}, "": {{8, 3}}, "56": {{5, 2}, {9, 2}},
	} {
		if got := cut(data, slices); string(got) != want {
			t.Errorf("slices %v of %s are %q, want %q", slices, data, got, want)
		}
	}
}
