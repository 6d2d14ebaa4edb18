package engine

import (
	"fmt"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
)

// forkAccounts are the accounts of the fork table, one for each way an account can fare in
// a branch that is abandoned.
type forkAccounts struct {
	created, changed, closed, reowned, recreated, untouched, flicker ledger.Pubkey
	holding, mint, wallet, otherWallet, program                      ledger.Pubkey
}

func newForkAccounts() forkAccounts {
	return forkAccounts{
		created: key(1), changed: key(2), closed: key(3), reowned: key(4), recreated: key(5), untouched: key(6), flicker: key(7),
		holding: key(8), mint: key(9), wallet: key(10), otherWallet: key(11), program: key(12),
	}
}

// root returns the block on which all branches stand.
func (f forkAccounts) root() *ledger.Block {
	mint := owned(f.mint, 1, ledger.TokenProgram)
	mint.Mint = &ledger.Mint{Decimals: 6, Supply: ledger.Some(uint64(1000)), Scaled: ledger.Some(false)}
	b := rootBlock(100,
		lamports(f.changed, 20), lamports(f.closed, 30), lamports(f.reowned, 40), lamports(f.recreated, 50),
		lamports(f.untouched, 60), holding(f.holding, f.mint, f.wallet, 700), mint)
	return with(b, signature(0))
}

// branch returns depth blocks on root that do to each account what its name says, spread
// over the blocks, and touch every account in the last.
func (f forkAccounts) branch(root *ledger.Block, first ledger.Slot, depth int) []*ledger.Block {
	writes := [][]ledger.AccountWrite{
		{lamports(f.created, 11), lamports(f.flicker, 5), lamports(f.recreated, 0)},
		{lamports(f.changed, 21), lamports(f.closed, 0)},
		{owned(f.reowned, 40, f.program), owned(f.recreated, 51, f.program)},
		{holding(f.holding, f.mint, f.otherWallet, 701)},
		{lamports(f.flicker, 0), lamports(f.untouched, 61), lamports(f.untouched, 60)},
	}
	var blocks []*ledger.Block
	parent := root
	for i := range depth {
		b := child(parent, first+ledger.Slot(i), 1)
		for at, w := range writes {
			if at%depth == i {
				b.Accounts = append(b.Accounts, w...)
			}
		}
		parent = with(b, signature(1+i), signature(50+i))
		blocks = append(blocks, parent)
	}
	return blocks
}

// expectation is what must be visible at processed level after a step.
type expectation struct {
	accounts map[ledger.Pubkey]ledger.Lamports // 0: not there
	program  []ledger.Pubkey
	wallet   []ledger.Pubkey // holdings of wallet
	other    []ledger.Pubkey // holdings of otherWallet
	held     []ledger.Signature
	notHeld  []ledger.Signature
	tip      *ledger.Block
}

func (f forkAccounts) onRoot(tip *ledger.Block) expectation {
	return expectation{
		accounts: map[ledger.Pubkey]ledger.Lamports{
			f.created: 0, f.changed: 20, f.closed: 30, f.reowned: 40, f.recreated: 50, f.untouched: 60, f.flicker: 0,
		},
		wallet: []ledger.Pubkey{f.holding}, held: []ledger.Signature{signature(0)},
		notHeld: []ledger.Signature{signature(1), signature(50)}, tip: tip,
	}
}

func (f forkAccounts) onBranch(tip *ledger.Block) expectation {
	program := []ledger.Pubkey{f.reowned, f.recreated}
	slices.SortFunc(program, comparePubkeys)
	return expectation{
		accounts: map[ledger.Pubkey]ledger.Lamports{
			f.created: 11, f.changed: 21, f.closed: 0, f.reowned: 40, f.recreated: 51, f.untouched: 60, f.flicker: 0,
		},
		program: program, other: []ledger.Pubkey{f.holding},
		held: []ledger.Signature{signature(0), signature(1), signature(50)}, tip: tip,
	}
}

// check asks everything the expectation speaks of.
func (f forkAccounts) check(e *Engine, want expectation) error {
	q := at(ledger.Processed)
	for k, amount := range want.accounts {
		a, _, err := e.Account(q, k)
		if _, missing := absence(err); a.Lamports != amount || (amount == 0) != missing {
			return fmt.Errorf("account %s: %d lamports, %v, want %d", k, a.Lamports, err, amount)
		}
	}
	listed, _, _, err := e.Program(q, f.program, ledger.Opt[ledger.Pubkey]{}, 10)
	if _, missing := absence(err); missing != (len(want.program) == 0) || !slices.Equal(pubkeys(listed), want.program) {
		return fmt.Errorf("program: %v, %v, want %v", pubkeys(listed), err, want.program)
	}
	for wallet, holdings := range map[ledger.Pubkey][]ledger.Pubkey{f.wallet: want.wallet, f.otherWallet: want.other} {
		tokens, _, _, err := e.Tokens(q, wallet, ledger.Opt[ledger.Pubkey]{}, 10)
		var got []ledger.Pubkey
		for _, t := range tokens {
			got = append(got, t.Account.Pubkey)
			if t.Mint == nil || t.Mint.Decimals != 6 {
				return fmt.Errorf("mint of %s: %v", t.Account.Pubkey, t.Mint)
			}
		}
		if _, missing := absence(err); missing != (len(holdings) == 0) || !slices.Equal(got, holdings) {
			return fmt.Errorf("tokens of %s: %v, %v, want %v", wallet, got, err, holdings)
		}
	}
	for _, s := range want.held {
		if _, _, err := e.Transaction(q, s); err != nil {
			return fmt.Errorf("transaction %s: %v", s, err)
		}
	}
	for _, s := range want.notHeld {
		if _, _, err := e.Transaction(q, s); err == nil {
			return fmt.Errorf("transaction %s is held, want it gone with its branch", s)
		}
	}
	latest, _, err := e.LatestBlock(q)
	if err != nil || latest.Block.Blockhash != want.tip.Blockhash {
		return fmt.Errorf("latest block: %v, %v, want slot %d", latest.Block, err, want.tip.Slot)
	}
	return nil
}

func pubkeys(accounts []ledger.Account) []ledger.Pubkey {
	var keys []ledger.Pubkey
	for i := range accounts {
		keys = append(keys, accounts[i].Pubkey)
	}
	return keys
}

// TestAbandonedBranchLeavesNoTrace abandons branches of depth 1 to 5 in every way there is, lets
// each come back and go again, and checks what is visible and what was published after
// each step.
func TestAbandonedBranchLeavesNoTrace(t *testing.T) {
	f := newForkAccounts()
	type step struct {
		event ledger.Event
		onto  *ledger.Block // the tip after it
		lost  bool          // whether the branch is undone by it
	}
	ways := map[string]func(root *ledger.Block, branch []*ledger.Block) []step{
		"another block on a higher slot": func(root *ledger.Block, branch []*ledger.Block) []step {
			other := child(root, 120, 2)
			return []step{{other, other, true}}
		},
		"the other block is confirmed": func(root *ledger.Block, branch []*ledger.Block) []step {
			tip := branch[len(branch)-1]
			other := child(root, 102, 2)
			return []step{{other, tip, false}, {status(other, ledger.StatusConfirmed), other, true}}
		},
		"the other block is finalized on arrival": func(root *ledger.Block, branch []*ledger.Block) []step {
			other := child(root, 102, 2)
			other.Status = ledger.Finalized
			return []step{{other, other, true}}
		},
		"two blocks on one slot": func(root *ledger.Block, branch []*ledger.Block) []step {
			tip := branch[len(branch)-1]
			twin := child(root, tip.Slot, 2)
			return []step{{twin, tip, false}, {status(twin, ledger.StatusFinalized), twin, true}}
		},
		"the branch is dead": func(root *ledger.Block, branch []*ledger.Block) []step {
			return []step{{status(branch[0], ledger.StatusDead), root, true}}
		},
		"the parent comes later": func(root *ledger.Block, branch []*ledger.Block) []step {
			tip := branch[len(branch)-1]
			parent := child(root, 102, 2)
			late := child(parent, 121, 2)
			return []step{{late, tip, false}, {parent, late, true}}
		},
		"slots out of order": func(root *ledger.Block, branch []*ledger.Block) []step {
			tip := branch[len(branch)-1]
			a := child(root, 101, 2)
			b := child(a, 119, 2)
			c := child(b, 120, 2)
			return []step{{c, tip, false}, {b, tip, false}, {a, c, true}}
		},
	}
	for way, steps := range ways {
		for depth := 1; depth <= 5; depth++ {
			t.Run(fmt.Sprintf("%s, depth %d", way, depth), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					n := startNode(t, live(), Config{Shards: 3})
					defer n.mustStop()
					root := f.root()
					n.send(root)
					branch := f.branch(root, 103, depth)
					for _, b := range branch {
						n.send(b)
					}
					if err := f.check(n.Engine, f.onBranch(branch[depth-1])); err != nil {
						t.Fatalf("on the branch: %v", err)
					}
					for i, s := range steps(root, branch) {
						before := len(n.published)
						n.send(s.event)
						want := f.onBranch(s.onto)
						if s.lost {
							want = f.onRoot(s.onto)
						}
						if err := f.check(n.Engine, want); err != nil {
							t.Fatalf("after step %d: %v", i+1, err)
						}
						if s.lost {
							f.checkUndone(t, n.published[before:], branch, s.onto)
						}
					}
				})
			})
		}
	}
}

// checkUndone checks the one publication that undoes the branch: the rollback with the restored
// accounts in pubkey order under the next numbers, and the block that caused it.
func (f forkAccounts) checkUndone(t *testing.T, published []*ledger.Publication, branch []*ledger.Block, onto *ledger.Block) {
	t.Helper()
	if len(published) != 1 {
		t.Fatalf("%d publications, want the rollback and its cause in one", len(published))
	}
	r := published[0].Records[0]
	tip := branch[len(branch)-1]
	if r.Kind != ledger.RollbackRecord || r.FromSlot != tip.Slot || r.Slot != 100 || !r.Time.Known || r.Time.Value != 1_700_000_100 {
		t.Fatalf("first record: kind %d from slot %d to %d at %v, want a rollback from %d to 100", r.Kind, r.FromSlot, r.Slot, r.Time, tip.Slot)
	}
	restored := map[ledger.Pubkey]ledger.Lamports{
		f.created: 0, f.changed: 20, f.closed: 30, f.reowned: 40, f.recreated: 50, f.holding: 2_039_280,
	}
	for i, u := range r.Updates {
		amount, known := restored[u.Account.Pubkey]
		if !known || u.Account.Lamports != amount {
			t.Errorf("restored %s with %d lamports, want %d (%v)", u.Account.Pubkey, u.Account.Lamports, amount, known)
		}
		if i > 0 && comparePubkeys(r.Updates[i-1].Account.Pubkey, u.Account.Pubkey) >= 0 {
			t.Error("the restored accounts are not in pubkey order")
		}
		left := u.Account.Pubkey == f.reowned || u.Account.Pubkey == f.recreated
		if left && u.OwnerBefore != ledger.Some(f.program) {
			t.Errorf("%s: owner before %v, want the branch's program", u.Account.Pubkey, u.OwnerBefore)
		}
	}
	if len(r.Updates) != len(restored) {
		t.Errorf("%d accounts restored, want %d", len(r.Updates), len(restored))
	}
	// Seen in the branch and gone again, or written as it was: nobody is told twice.
	for _, k := range []ledger.Pubkey{f.flicker, f.untouched} {
		if !slices.ContainsFunc(r.Unchanged, func(a ledger.Account) bool { return a.Pubkey == k }) {
			t.Errorf("%s is not called unchanged", k)
		}
	}
	last := published[0].Records[len(published[0].Records)-1]
	if tip := published[0].Head.Tip(ledger.Processed); tip.Hash != onto.Blockhash || tip.Seq != last.LastSeq() {
		t.Errorf("the head stands at slot %d, seq %d, want slot %d, seq %d", tip.Slot, tip.Seq, onto.Slot, last.LastSeq())
	}
}

// TestBranchComesBack undoes a branch and confirms it after all: it is appended again, as
// new records with new numbers.
func TestBranchComesBack(t *testing.T) {
	f := newForkAccounts()
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2})
		defer n.mustStop()
		root := f.root()
		branch := f.branch(root, 103, 4)
		other := child(root, 110, 2, lamports(f.changed, 99))
		n.send(root)
		for _, b := range branch {
			n.send(b)
		}
		n.send(other)
		if a, _, err := n.Account(ledger.Query{}, f.changed); err != nil || a.Lamports != 99 {
			t.Fatalf("on the other branch: %d lamports, %v, want 99", a.Lamports, err)
		}
		before := n.published[len(n.published)-1].Head.Tip(ledger.Processed)
		n.send(status(branch[1], ledger.StatusConfirmed))
		if err := f.check(n.Engine, f.onBranch(branch[3])); err != nil {
			t.Fatal(err)
		}
		p := n.published[len(n.published)-1]
		var kinds []ledger.RecordKind
		next := before.Seq + 1
		for i, r := range p.Records {
			kinds = append(kinds, r.Kind)
			if r.Version != before.Version+ledger.Version(i)+1 || r.FirstSeq != next {
				t.Errorf("record %d: version %d, first seq %d, want %d, %d", i, r.Version, r.FirstSeq, before.Version+ledger.Version(i)+1, next)
			}
			next += ledger.Seq(len(r.Updates))
		}
		want := []ledger.RecordKind{ledger.RollbackRecord, ledger.BlockRecord, ledger.BlockRecord, ledger.BlockRecord, ledger.BlockRecord, ledger.StatusRecord}
		if !slices.Equal(kinds, want) {
			t.Errorf("records of kinds %v, want %v", kinds, want)
		}
		if tip := n.Head().Tip(ledger.Confirmed); tip.Hash != branch[1].Blockhash {
			t.Errorf("confirmed at slot %d, want %d", tip.Slot, branch[1].Slot)
		}
	})
}

// TestDeadBlockStaysAway shows a dead block and its children again, late and waiting ones too: nobody
// says that one of them is confirmed.
func TestDeadBlockStaysAway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2})
		defer n.mustStop()
		root := rootBlock(100)
		a := child(root, 101, 0, lamports(key(1), 1))
		b := child(a, 102, 0, lamports(key(1), 2))
		c := child(b, 103, 0, lamports(key(1), 3))
		grandchild := child(c, 104, 0, lamports(key(1), 4))
		n.send(root, a, b)
		n.send(grandchild)
		n.send(status(b, ledger.StatusDead))
		bare := &ledger.SlotStatus{Slot: c.Slot, Status: ledger.StatusConfirmed} // of whatever is at that slot
		for _, again := range []ledger.Event{b, c, grandchild, bare, status(b, ledger.StatusDead), b, c} {
			n.send(again)
			if tip := n.Head().Tip(ledger.Processed); tip.Hash != a.Blockhash {
				t.Fatalf("the tip is at slot %d, want the dead block's parent", tip.Slot)
			}
		}
		if got := n.Stats(); got.Dead != 2 || n.seq.Chain().Waiting.Len() != 0 {
			t.Errorf("%d dead, %d waiting for a dead block, want 2 and 0", got.Dead, n.seq.Chain().Waiting.Len())
		}
		next := child(a, 105, 0, lamports(key(1), 9))
		n.send(next)
		if x, _, err := n.Account(ledger.Query{}, key(1)); err != nil || x.Lamports != 9 {
			t.Errorf("%d lamports, %v, want 9", x.Lamports, err)
		}
	})
}

// TestDeadBlockComesBackWhenItIsConfirmed has a source call a block dead and show it again, with those that build
// on it: they stay unseen until one of them is confirmed, which brings back what builds on it, also where the node was started again in between.
func TestDeadBlockComesBackWhenItIsConfirmed(t *testing.T) {
	root := rootBlock(100)
	a := child(root, 101, 0, lamports(key(1), 1))
	b := child(a, 102, 0, lamports(key(1), 2))
	c := child(b, 103, 0, lamports(key(1), 3))
	other := child(b, 104, 7, lamports(key(1), 4)) // dead for its own sake
	d := child(c, 105, 0, lamports(key(1), 5))
	fresh := child(d, 106, 0, lamports(key(1), 6))
	claimed := *c
	claimed.Status = ledger.Confirmed
	away := child(a, 110, 8, lamports(key(1), 8))
	back := child(b, 111, 0, lamports(key(1), 9))
	ways := map[string]struct {
		again []ledger.Event
		shown []*ledger.Block // the tip after each
	}{
		"the block itself":      {[]ledger.Event{b, c, d, fresh, status(b, ledger.StatusConfirmed)}, []*ledger.Block{a, a, a, a, fresh}},
		"a child":               {[]ledger.Event{b, c, d, fresh, status(c, ledger.StatusConfirmed)}, []*ledger.Block{a, a, a, a, fresh}},
		"a child is final":      {[]ledger.Event{b, c, d, status(c, ledger.StatusFinalized), fresh}, []*ledger.Block{a, a, a, d, fresh}},
		"one that was filled":   {[]ledger.Event{b, &claimed, d, fresh}, []*ledger.Block{a, d, d, fresh}},
		"one after the other":   {[]ledger.Event{b, status(b, ledger.StatusConfirmed), c, status(c, ledger.StatusConfirmed), d, fresh, status(fresh, ledger.StatusConfirmed)}, []*ledger.Block{a, d, d, d, d, fresh, fresh}},
		"alive when it is left": {[]ledger.Event{b, status(b, ledger.StatusConfirmed), away, back}, []*ledger.Block{a, d, d, back}},
		"not a dead one beside": {[]ledger.Event{b, status(b, ledger.StatusConfirmed), other, c, d, status(c, ledger.StatusConfirmed)}, []*ledger.Block{a, d, d, d, d, d}},
	}
	for name, way := range ways {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restart), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					disk := vfstest.NewMemory()
					n := startNode(t, live(), onDisk(t, disk, Config{Shards: 2}))
					n.send(root, a, b, other, status(other, ledger.StatusDead), c, d, status(b, ledger.StatusDead))
					if restart {
						n.mustStop()
						n.config.Dir.Close()
						n = startNode(t, live(), onDisk(t, disk, Config{Shards: 2}))
						n.send(root, a)
					}
					defer n.mustStop()
					for i, e := range way.again {
						n.send(e)
						if tip := n.Head().Tip(ledger.Processed); tip.Hash != way.shown[i].Blockhash {
							t.Fatalf("after event %d the tip is at slot %d, want %d", i, tip.Slot, way.shown[i].Slot)
						}
					}
					tip := way.shown[len(way.shown)-1]
					if x, _, err := n.Account(ledger.Query{}, key(1)); err != nil || x.Lamports != tip.Accounts[0].Lamports {
						t.Errorf("%d lamports, %v, want those of slot %d", x.Lamports, err, tip.Slot)
					}
				})
			})
		}
	}
}

// TestConfirmedBlockStays shows, after a status, blocks of another branch that are higher: they wait until a status decides.
// Stopped after any event and shown all of them again, the node ends the same.
func TestConfirmedBlockStays(t *testing.T) {
	root := rootBlock(1, lamports(key(1), 1))
	two := child(root, 2, 0, lamports(key(1), 2))
	three := child(root, 3, 1, lamports(key(1), 3))
	four := child(three, 4, 1, lamports(key(1), 4))
	events := map[string]struct {
		events    []ledger.Event
		tip, sure ledger.Slot
	}{
		"the confirmed one came back": {[]ledger.Event{root, two, three, status(two, ledger.StatusConfirmed), four}, 2, 2},
		"the confirmed one is alone":  {[]ledger.Event{root, two, status(two, ledger.StatusConfirmed), three}, 2, 2},
		"the other is confirmed": {[]ledger.Event{root, two, status(two, ledger.StatusConfirmed), three,
			status(three, ledger.StatusConfirmed), four}, 4, 3},
		"the confirmed one is dead": {[]ledger.Event{root, two, status(two, ledger.StatusConfirmed), three, four, status(two, ledger.StatusDead)}, 4, 1},
	}
	for name, tt := range events {
		for stop := range len(tt.events) {
			t.Run(fmt.Sprintf("%s, stopped after %d", name, stop), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					straight := startNode(t, live(), Config{Shards: 2})
					defer straight.mustStop()
					straight.send(tt.events...)
					disk := vfstest.NewMemory()
					n := startNode(t, live(), onDisk(t, disk, Config{Shards: 2}))
					n.send(tt.events[:stop]...)
					n.mustStop()
					n.config.Dir.Close()
					n = startNode(t, live(), onDisk(t, disk, Config{Shards: 2}))
					defer n.mustStop()
					n.send(tt.events...)
					for i, level := range []ledger.Commitment{ledger.Processed, ledger.Confirmed} {
						if got := straight.Head().Tip(level).Slot; got != []ledger.Slot{tt.tip, tt.sure}[i] {
							t.Errorf("%s stands at slot %d", level, got)
						}
					}
					if err := sameEnd(n.Head(), straight.Head()); err != nil {
						t.Errorf("the node that was stopped %v", err)
					}
				})
			})
		}
	}
}
