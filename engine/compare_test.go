package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
)

// comparer holds an engine's publications and answers against a model.
type comparer struct {
	t         *testing.T
	r         *rand.Rand // chooses page sizes and intervals
	m         *model
	retention sequencer.Retention
	held      map[*ledger.Head]point // heads that were published, with what they show
	floor     ledger.Slot
	archived  bool // what memory drops stays on disk, and memory may hold more
	next      int  // the first publication not looked at
	version   ledger.Version

	keys, programs, wallets []ledger.Pubkey
	signatures              []ledger.Signature
}

// newComparer returns a comparer that asks for all that a generator writes, and for what nobody does.
func newComparer(t *testing.T, r *rand.Rand, m *model, retention sequencer.Retention) *comparer {
	c := &comparer{t: t, r: r, m: m, retention: retention, held: make(map[*ledger.Head]point), keys: []ledger.Pubkey{key(12345)}}
	for i := range testKeys {
		c.keys = append(c.keys, key(i))
	}
	c.programs, c.wallets = testPrograms(), []ledger.Pubkey{key(0), key(1), key(2), key(778)}
	for i := range testSignatures {
		c.signatures = append(c.signatures, signature(i))
	}
	return c
}

// publications checks every publication that came since the last call.
func (c *comparer) publications(all []*ledger.Publication) {
	c.t.Helper()
	for ; c.next < len(all); c.next++ {
		p := all[c.next]
		for _, r := range p.Records {
			c.version++
			if r.Version != c.version || int(r.Version) > len(c.m.records) {
				c.t.Fatalf("record of version %d (kind %d, slot %d, status %v), want %d of %d", r.Version, r.Kind, r.Slot, r.Status, c.version, len(c.m.records))
			}
			if err := c.record(r, &c.m.records[r.Version-1]); err != nil {
				c.t.Fatalf("record %d: %v", r.Version, err)
			}
		}
		visible, ok := c.m.points[c.version]
		if !ok {
			c.t.Fatalf("published at version %d, in the middle of what one event led to", c.version)
		}
		c.head(p.Head, visible)
		c.held[p.Head] = visible
	}
	if c.version != c.m.version() {
		c.t.Fatalf("published up to version %d, want %d", c.version, c.m.version())
	}
}

func (c *comparer) record(r *ledger.Record, want *modelRecord) error {
	got := *r
	got.Updates, got.Unchanged, got.StateHash = nil, nil, ledger.StateHash{}
	if wanted := c.m.world.heldRecord(want.Record); !reflect.DeepEqual(got, wanted) {
		return fmt.Errorf("got %+v\nwant %+v", got, wanted)
	}
	var updates []modelUpdate
	for i := range r.Updates {
		u := &r.Updates[i]
		updates = append(updates, modelUpdate{seeAccount(&u.Account), u.OwnerBefore, u.WalletBefore})
	}
	if !slices.Equal(updates, want.updates) {
		return fmt.Errorf("kind %d at slot %d: updates %v\nwant %v", r.Kind, r.Slot, updates, want.updates)
	}
	if err := rightUnchanged(r, want); err != nil {
		return err
	}
	if got, want := r.StateHash.String(), want.world.hash(); got != want {
		return fmt.Errorf("kind %d at slot %d: state hash %s, recomputed %s", r.Kind, r.Slot, got, want)
	}
	return nil
}

// rightUnchanged checks the accounts that a rollback restored though they look as before: at
// least those that somebody saw in between, at most those that were written.
func rightUnchanged(r *ledger.Record, want *modelRecord) error {
	listed := make(map[ledger.Pubkey]bool)
	for i := range r.Unchanged {
		a := &r.Unchanged[i]
		switch {
		case i > 0 && comparePubkeys(r.Unchanged[i-1].Pubkey, a.Pubkey) >= 0:
			return errors.New("the unchanged accounts are not in pubkey order")
		case !want.written[a.Pubkey]:
			return fmt.Errorf("%v is called unchanged, and nobody wrote it", seeAccount(a))
		case seeAccount(a) != want.world.see(a.Pubkey):
			return fmt.Errorf("unchanged: got %v, want %v", seeAccount(a), want.world.see(a.Pubkey))
		case slices.ContainsFunc(r.Updates, func(u ledger.Update) bool { return u.Account.Pubkey == a.Pubkey }):
			return fmt.Errorf("%v is both updated and unchanged", seeAccount(a))
		}
		listed[a.Pubkey] = true
	}
	for k := range want.seenBetween {
		if !listed[k] {
			return fmt.Errorf("%v was seen in between and is not called unchanged", want.world.see(k))
		}
	}
	return nil
}

// prune moves the retention floor as one publication does.
func (c *comparer) prune(p point) {
	if !p.hasBlock {
		return
	}
	finalized, tip := p.tips[ledger.Finalized].Slot, p.tips[ledger.Processed].Slot
	c.floor = max(c.floor, p.root)
	if tip >= c.retention.Slots {
		c.floor = max(c.floor, min(tip-c.retention.Slots+1, finalized))
	}
	bytes := 0
	for _, b := range p.chain {
		if b.Slot >= c.floor {
			bytes += b.WithoutWrites().SizeBytes()
		}
	}
	for _, b := range p.chain {
		if b.Slot >= c.floor && b.Slot < finalized && bytes > c.retention.Bytes {
			c.floor = b.Slot + 1
			bytes -= b.WithoutWrites().SizeBytes()
		}
	}
}

func (c *comparer) head(h *ledger.Head, p point) {
	c.t.Helper()
	c.prune(p)
	if h.Tips != p.tips || h.HasBlock != p.hasBlock || h.Root != p.root || h.Floor != c.floor && !(c.archived && h.Floor < c.floor) {
		c.t.Fatalf("head after version %d:\ngot  %+v block %v root %d floor %d\nwant %+v block %v root %d floor %d",
			p.version, h.Tips, h.HasBlock, h.Root, h.Floor, p.tips, p.hasBlock, p.root, c.floor)
	}
}

// shown is what a head shows at one level.
type shown struct {
	world *world
	chain []*modelBlock // up to the level's tip, pruned ones too
	point point
	head  *ledger.Head
	level ledger.Commitment
	from  ledger.Slot // blocks below it are pruned
}

// shownOf returns what a head shows that was published at a point.
func (c *comparer) shownOf(p point, h *ledger.Head, level ledger.Commitment) shown {
	s := shown{world: newWorld(nil), point: p, head: h, level: level, from: h.Floor}
	if c.archived {
		s.from = p.root
	}
	if v := p.tips[level].Version; v > 0 {
		s.world = c.m.records[v-1].world
	}
	for _, b := range p.chain {
		if b.Slot <= p.tips[level].Slot {
			s.chain = append(s.chain, b)
		}
	}
	return s
}

// answers asks e everything at every level and compares. With old, it asks at that head.
func (c *comparer) answers(e *Engine, old *ledger.Head) {
	c.t.Helper()
	for _, level := range levels {
		q := ledger.Query{Commitment: level, Head: old}
		head := old
		if head == nil {
			head = e.Head()
		}
		s := c.shownOf(c.held[head], head, level)
		if old == nil && level == ledger.Finalized {
			c.state(e, s)
		}
		for _, ask := range c.questions() {
			if err := ask(e, q, s); err != nil {
				c.t.Fatalf("%s at version %d, slot %d (newest %d, %d shards): %v", level, s.point.tips[level].Version,
					s.point.tips[level].Slot, c.version, len(e.shards), err)
			}
		}
	}
}

// state checks what an engine tells of its state at the newest finalized block: the hash of all of it, and each account and mint.
func (c *comparer) state(e *Engine, s shown) {
	c.t.Helper()
	if got, want := s.head.FinalState.String(), s.world.hash(); got != want {
		c.t.Fatalf("finalized at slot %d: state hash %s, recomputed %s", s.head.Tips[ledger.Finalized].Slot, got, want)
	}
	all, release, err := e.State(s.head)
	if err != nil {
		c.t.Fatal(err)
	}
	defer release()
	want, mints := s.world.members(func(seen) bool { return true }), 0
	for piece := range all {
		mints += len(piece.Mints)
		for _, a := range piece.Accounts {
			if len(want) == 0 || a.Pubkey != want[0].pubkey || a.Lamports != want[0].lamports || mints > 0 {
				c.t.Fatalf("the state tells of %v, want %v", a.Pubkey, want[:min(1, len(want))])
			}
			want = want[1:]
		}
	}
	if len(want) > 0 || mints != len(s.world.mints) {
		c.t.Fatalf("the state lacks %v; it has %d mints of %d", want, mints, len(s.world.mints))
	}
}

// questions returns all there is to ask, first what shards answer, then what is answered without them.
func (c *comparer) questions() []func(*Engine, ledger.Query, shown) error {
	return []func(*Engine, ledger.Query, shown) error{c.accounts, c.mints, c.lists, c.ranges, c.transactions, c.blocks}
}

func (s shown) checkView(v ledger.View) error {
	if v.Head != s.head || v.Commitment != s.level {
		return fmt.Errorf("answered from another version: %v", v)
	}
	return nil
}

func (c *comparer) accounts(e *Engine, q ledger.Query, s shown) error {
	all, v, err := e.Accounts(q, c.keys)
	if err = errors.Join(err, s.checkView(v)); err != nil {
		return fmt.Errorf("accounts: %w", err)
	}
	for i, k := range c.keys {
		want := s.world.see(k)
		if got := seeAccount(&all[i]); got != want {
			return fmt.Errorf("accounts: got %v, want %v", got, want)
		}
		a, v, err := e.Account(q, k)
		if viewErr := s.checkView(v); viewErr != nil {
			return viewErr
		}
		if err := c.account(s, k, a, err); err != nil {
			return fmt.Errorf("account %s: %w", k, err)
		}
	}
	return nil
}

func (c *comparer) account(s shown, k ledger.Pubkey, a ledger.Account, err error) error {
	want := s.world.see(k)
	want.token, want.data.Value = ledger.Opt[ledger.TokenAccount]{}, "" // which are compared in accounts
	if want.lamports != 0 {
		if got := seeAccount(&a); err != nil || got != want {
			return fmt.Errorf("got %v, %v, want %v", got, err, want)
		}
		return nil
	}
	missing := ledger.NotFoundError{Absence: ledger.AccountNotIndexed}
	if c.m.info.Complete {
		missing.Absence = ledger.AccountNotFound
	}
	if memory, closed := s.world.accounts[k]; closed {
		if slot := memory.since.by.slot; slot >= s.point.horizon {
			missing = ledger.NotFoundError{Absence: ledger.AccountClosed, Slot: slot}
		}
	}
	if why, ok := absence(err); !ok || why != missing {
		return fmt.Errorf("got %v, want %v", err, &missing)
	}
	return nil
}

func (c *comparer) mints(e *Engine, q ledger.Query, s shown) error {
	all, v, err := e.Mints(q, c.keys)
	if err = errors.Join(err, s.checkView(v)); err != nil {
		return fmt.Errorf("mints: %w", err)
	}
	for i, k := range c.keys {
		if err := s.rightMint(k, all[i]); err != nil {
			return err
		}
	}
	return nil
}

// lists reads every list in pages of some size.
func (c *comparer) lists(e *Engine, q ledger.Query, s shown) error {
	limit := []int{1, 2, 3, 5, 100}[c.r.IntN(5)]
	for _, program := range c.programs {
		if err := c.program(e, q, s, program, limit, c.dataFilter()); err != nil {
			return fmt.Errorf("program %s by %d: %w", program, limit, err)
		}
	}
	for i, of := range slices.Concat(c.wallets, c.keys[:4], c.keys[6:9]) {
		q.TokensOf = ledger.OfWallet
		want := s.world.members(func(a seen) bool { return a.heldBy(of) })
		switch {
		case i >= len(c.wallets)+4: // the mints of the generator
			q.TokensOf = ledger.OfMint
			want = s.world.members(func(a seen) bool { return a.token.Known && a.token.Value.Mint == of })
		case i >= len(c.wallets): // the generator makes any key a delegate
			q.TokensOf = ledger.OfDelegate
			want = s.world.members(func(a seen) bool {
				return a.token.Known && a.token.Value.Details.Value.Delegate == ledger.Some(of)
			})
		}
		err := c.pages(s, of, want, limit, func(after ledger.Opt[ledger.Pubkey]) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
			return e.Tokens(q, of, after, limit, nil)
		})
		if err != nil {
			return fmt.Errorf("tokens of %s (of: %v) by %d: %w", of, q.TokensOf, limit, err)
		}
	}
	return nil
}

func (s shown) rightMint(k ledger.Pubkey, got *ledger.Mint) error {
	want, known := s.world.mints[k]
	facts := ledger.Mint{Decimals: want.decimals.value, Supply: want.supply.opt(), Scaled: want.scaled.opt()}
	if known != (got != nil) || known && got.Facts() != facts {
		return fmt.Errorf("mint %s: got %v, want %v, known %v", k, got, want, known)
	}
	return nil
}

// pageReader reads the page of a list after a key.
type pageReader = func(after ledger.Opt[ledger.Pubkey]) (page []ledger.Account, next ledger.Opt[ledger.Pubkey], v ledger.View, err error)

// pages reads one list to its end: every page but the last is full, the end is told exactly.
func (c *comparer) pages(s shown, group ledger.Pubkey, want []seen, limit int, read pageReader) error {
	var after ledger.Opt[ledger.Pubkey]
	var all []seen
	for {
		page, next, v, err := read(after)
		if why, missing := absence(err); missing {
			unknown := ledger.OwnerNotIndexed
			if c.m.info.Complete {
				unknown = ledger.OwnerNotFound
			}
			if why.Absence != unknown || s.knows(group) {
				return fmt.Errorf("got %v, want %d members", err, len(want))
			}
			return nil
		}
		if err = errors.Join(err, s.checkView(v)); err != nil {
			return err
		}
		if next.Known && len(page) != limit || len(page) > limit {
			return fmt.Errorf("a page of %d members, next %v", len(page), next)
		}
		for i := range page {
			all = append(all, seeAccount(&page[i]))
		}
		if !next.Known {
			break
		}
		after = next
	}
	if !slices.Equal(all, want) {
		return fmt.Errorf("got %v\nwant %v", all, want)
	}
	if len(want) == 0 && !s.knows(group) {
		return errors.New("got an empty list, want not found: neither an account nor anything it owns")
	}
	return nil
}

// knows reports whether there is an account at key or anything that key owns.
func (s shown) knows(key ledger.Pubkey) bool {
	return s.world.see(key).lamports != 0 ||
		len(s.world.members(func(a seen) bool { return a.ownedBy(key) || a.heldBy(key) })) > 0
}
