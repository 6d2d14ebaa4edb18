package geyser

import (
	"context"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// blockID names a block; two blocks may share a slot.
type blockID struct {
	slot ledger.Slot
	hash ledger.Hash
}

func idOf(b *ledger.Block) blockID { return blockID{b.Slot, b.Blockhash} }

func (id blockID) status(s ledger.Status) *ledger.SlotStatus {
	return &ledger.SlotStatus{Slot: id.slot, Status: s, Blockhash: ledger.Some(id.hash)}
}

// heldBlock is a block that was emitted, at or above the root.
type heldBlock struct {
	parent    blockID
	confirmed bool
	grew      bool     // another builds on it
	mints     mintNews // told once it is confirmed
}

// waitingBlock is a block whose parent was not emitted.
type waitingBlock struct {
	block   *ledger.Block
	claimed ledger.Status // what was said of it, or of one that builds on it; 0 for nothing
}

// chain knows what was emitted from the root on and emits each block after its parent. One
// goroutine uses it.
type chain struct {
	emit  ledger.Emit
	mints *mints // told of each block that is confirmed
	stats *upstream.Stats
	limit int // of what waits, in bytes
	// showsElsewhere says that the stream showed a block of a hash, in part at least, at another slot.
	showsElsewhere func(ledger.Hash, ledger.Slot) bool

	rooted bool // the root is known
	root   blockID

	held      map[blockID]heldBlock
	slots     map[ledger.Slot][]blockID // of held
	gaveUp    map[blockID]blockID       // above the root: what was called dead and what builds on it, each with its parent
	forgiven  map[blockID]struct{}      // called dead, and then confirmed: what calls them so again is not believed
	confirmed blockID                   // the newest held one that is confirmed
	final     blockID                   // said to be final, and not to be believed before another builds on it
	newest    ledger.Slot               // of the blocks emitted
	emitted   uint64                    // how many

	waiting  map[blockID]*waitingBlock
	children map[ledger.Slot][]*waitingBlock // waiting, by the slot of the parent
	bytes    int                             // of what waits
	changed  bool                            // there may be a gap that was none, or the other way round
}

func newChain(from *ledger.ResumePoint, emit ledger.Emit, m *mints, stats *upstream.Stats, limit int) *chain {
	c := &chain{
		emit: emit, mints: m, stats: stats, limit: limit,
		held: make(map[blockID]heldBlock), slots: make(map[ledger.Slot][]blockID),
		gaveUp: make(map[blockID]blockID), forgiven: make(map[blockID]struct{}),
		showsElsewhere: func(ledger.Hash, ledger.Slot) bool { return false },
	}
	c.clearWaiting()
	if from != nil {
		c.begin(blockID{from.Slot, from.Blockhash})
	}
	return c
}

// begin makes a block the root, which is held from now on.
func (c *chain) begin(id blockID) {
	c.rooted, c.root, c.confirmed, c.newest = true, id, id, id.slot
	c.hold(id, heldBlock{confirmed: true})
}

func (c *chain) hold(id blockID, h heldBlock) {
	if len(c.slots[id.slot]) > 0 {
		c.stats.Failed(upstream.Equivocation)
	}
	c.held[id] = h
	c.slots[id.slot] = append(c.slots[id.slot], id)
	if p, ok := c.held[h.parent]; ok && !p.grew {
		p.grew = true
		c.held[h.parent] = p
	}
}

// clearWaiting forgets what waits: a new session shows it again.
func (c *chain) clearWaiting() {
	c.waiting, c.children, c.bytes = make(map[blockID]*waitingBlock), make(map[ledger.Slot][]*waitingBlock), 0
}

// take takes an event of the stream.
func (c *chain) take(ctx context.Context, e ledger.Event) error {
	switch e := e.(type) {
	case *ledger.Block:
		return c.block(ctx, e)
	case *ledger.SlotStatus:
		if e.Status != ledger.StatusDead && c.isContested(e.Slot) {
			return nil // what builds on one of them will tell which was meant
		}
		return c.status(ctx, e)
	}
	return c.emit(ctx, e)
}

// isContested reports whether the stream showed two blocks at a slot, of which none was said to be dead. Its
// statuses name a slot alone: they cannot say which of them is confirmed.
func (c *chain) isContested(slot ledger.Slot) bool {
	shown := len(c.slots[slot])
	for id := range c.waiting {
		if id.slot == slot {
			shown++
		}
	}
	return shown > 1
}

// takeFilled takes an event of who fills a gap: its blocks are confirmed and come in order.
func (c *chain) takeFilled(ctx context.Context, e ledger.Event) error {
	if e, ok := e.(*ledger.SlotStatus); ok {
		return c.status(ctx, e)
	}
	b, ok := e.(*ledger.Block)
	if !ok {
		return c.take(ctx, e)
	}
	id := idOf(b)
	switch parent, ok := c.parentOf(b); {
	case c.rooted && (b.Slot <= c.root.slot || c.holds(id)):
		c.stats.Duplicate()
	case !ok:
		return errForeign
	default:
		c.forgive(id)
		if err := c.append(ctx, b, parent); err != nil {
			return err
		}
	}
	return c.status(ctx, id.status(ledger.StatusConfirmed))
}

// block takes a block: it is emitted if its parent was, else it waits.
func (c *chain) block(ctx context.Context, b *ledger.Block) error {
	if c.rooted && b.Slot <= c.root.slot || c.holds(idOf(b)) || c.waiting[idOf(b)] != nil {
		c.stats.Duplicate()
		return nil
	}
	if c.isDead(b) {
		c.stats.Duplicate()
		c.giveUp(b)
		return nil
	}
	if parent, ok := c.parentOf(b); ok {
		return c.append(ctx, b, parent)
	}
	if err := c.wait(b); err != nil || c.rooted {
		return err
	}
	if p := c.waitingParent(c.waiting[idOf(b)]); p != nil && p.claimed != 0 {
		return c.tryBegin(ctx, p)
	}
	return nil
}

// isDead reports whether a block, or what it builds on, was given up: it stays so when it is
// shown again, unless it is forgiven.
func (c *chain) isDead(b *ledger.Block) bool {
	if _, ok := c.gaveUp[idOf(b)]; ok {
		return true
	}
	_, ok := c.gaveUp[blockID{b.ParentSlot, b.PreviousBlockhash.Value}]
	return ok && b.PreviousBlockhash.Known
}

func (c *chain) holds(id blockID) bool {
	_, ok := c.held[id]
	return ok
}

// parentOf returns the held block that b builds on. Where its hash is not told, the one at that
// slot is meant that came last.
func (c *chain) parentOf(b *ledger.Block) (blockID, bool) {
	if b.PreviousBlockhash.Known {
		id := blockID{b.ParentSlot, b.PreviousBlockhash.Value}
		return id, c.holds(id)
	}
	if at := c.slots[b.ParentSlot]; len(at) > 0 {
		return at[len(at)-1], true
	}
	return blockID{}, false
}

// wait keeps a block until its parent comes.
func (c *chain) wait(b *ledger.Block) error {
	if c.bytes += b.SizeBytes(); c.bytes > c.limit {
		return errTooMany
	}
	w := &waitingBlock{block: b}
	c.waiting[idOf(b)] = w
	c.children[b.ParentSlot] = append(c.children[b.ParentSlot], w)
	c.changed = true
	for _, child := range c.children[b.Slot] {
		if buildsOn(child.block, b) && child.claimed != 0 {
			c.claim(w, ledger.StatusConfirmed)
		}
	}
	return nil
}

// buildsOn reports whether child names b as its parent.
func buildsOn(child, b *ledger.Block) bool {
	return child.ParentSlot == b.Slot && (!child.PreviousBlockhash.Known || child.PreviousBlockhash.Value == b.Blockhash)
}

// unwait takes a block out of those that wait.
func (c *chain) unwait(w *waitingBlock) {
	delete(c.waiting, idOf(w.block))
	c.bytes -= w.block.SizeBytes()
	at := c.children[w.block.ParentSlot]
	for i, o := range at {
		if o == w {
			at = append(at[:i:i], at[i+1:]...)
			break
		}
	}
	if c.children[w.block.ParentSlot] = at; len(at) == 0 {
		delete(c.children, w.block.ParentSlot)
	}
	c.changed = true
}

// append emits a block whose parent is held, and all that waited for it.
func (c *chain) append(ctx context.Context, b *ledger.Block, parent blockID) error {
	type next struct {
		block   *ledger.Block
		parent  blockID
		claimed ledger.Status
	}
	for todo := []next{{b, parent, 0}}; len(todo) > 0; {
		n := todo[0]
		todo = todo[1:]
		if !c.holds(n.parent) {
			continue // another child of it is final
		}
		if err := c.emitBlock(ctx, n.block); err != nil {
			return err
		}
		c.hold(idOf(n.block), heldBlock{parent: n.parent, mints: c.mints.look(n.block)})
		if n.claimed != 0 {
			if err := c.status(ctx, idOf(n.block).status(n.claimed)); err != nil {
				return err
			}
		}
		if n.parent == c.final {
			if err := c.status(ctx, n.parent.status(ledger.StatusFinalized)); err != nil {
				return err
			}
		}
		for _, w := range c.childrenOf(n.block) {
			c.unwait(w)
			todo = append(todo, next{w.block, idOf(n.block), w.claimed})
		}
	}
	return nil
}

func (c *chain) emitBlock(ctx context.Context, b *ledger.Block) error {
	c.stats.Sealed(b.Slot)
	c.newest = max(c.newest, b.Slot)
	c.emitted++
	c.changed = true
	return c.emit(ctx, b)
}

func (c *chain) childrenOf(b *ledger.Block) (children []*waitingBlock) {
	for _, w := range c.children[b.Slot] {
		if buildsOn(w.block, b) {
			children = append(children, w)
		}
	}
	return children
}

// beginWith makes a block the root and emits it, and what waited for it.
func (c *chain) beginWith(ctx context.Context, b *ledger.Block) error {
	if err := c.emitBlock(ctx, b); err != nil {
		return err
	}
	c.begin(idOf(b))
	c.mints.confirmed(c.mints.look(b))
	for _, w := range c.waiting {
		if w.block.Slot <= b.Slot {
			c.unwait(w)
		}
	}
	for _, w := range c.childrenOf(b) {
		if c.waiting[idOf(w.block)] != w || !c.holds(idOf(b)) {
			continue // another child is final
		}
		c.unwait(w)
		if err := c.append(ctx, w.block, idOf(b)); err != nil {
			return err
		}
		if w.claimed != 0 {
			if err := c.status(ctx, idOf(w.block).status(w.claimed)); err != nil {
				return err
			}
		}
	}
	return nil
}
