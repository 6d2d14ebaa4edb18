package engine

import (
	"bytes"
	"reflect"
	"slices"

	"ledgerd/engine/ledger"
)

// modelBlock is a block whose parent is known.
type modelBlock struct {
	*ledger.Block
	parent   *modelBlock
	children []*modelBlock // in the order they came
	version  ledger.Version
	seq      ledger.Seq
	again    ledger.Version // that made it the newest confirmed block once more: it is shown as it stood then
	againSeq ledger.Seq
	dead     bool // called so before it came (again), and not confirmed since
}

// modelSaying is a status of a block: said again it means nothing.
type modelSaying struct {
	of   ledger.BlockID
	what ledger.Status
}

type modelWaiter struct {
	block  *ledger.Block
	status ledger.Status
}

// modelRecord is what a record must say, but for its accounts, and the world after it.
type modelRecord struct {
	ledger.Record
	updates []modelUpdate
	world   *world

	// With a rollback: the accounts that somebody saw change in between though they stand as
	// before, and all that were written since the block rolled back to.
	seenBetween, written map[ledger.Pubkey]bool
}

// point is what is visible after an event: the engine may publish here and nowhere else.
type point struct {
	version  ledger.Version
	tips     [ledger.Commitments]ledger.Tip
	hasBlock bool
	root     ledger.Slot
	horizon  ledger.Slot
	chain    []*modelBlock // from the root on, pruned ones too
}

// lesson is a *ledger.Block or a *ledger.BaseState, and the horizon that it was learned at.
type lesson struct {
	event   any
	horizon ledger.Slot
}

// model follows events as the documents say.
type model struct {
	info    ledger.SourceInfo
	tree    map[ledger.BlockID]*modelBlock // the newest finalized block and all that build on it
	arrived []*modelBlock
	gone    map[ledger.BlockID]bool
	said    map[modelSaying]bool
	waiting []modelWaiter // by slot
	chain   []*modelBlock

	confirmed, finalized int // places in the chain
	statusSeen           bool
	byDepth              bool // blocks become final by their depth now, or by the end of the input
	baseSlot             ledger.Slot
	bases                []*ledger.BaseState // that came after the first block: the same again means nothing

	retained ledger.Slot // how many slots below the finalized one a closing is known
	log      []lesson    // that make up the present world
	world    *world
	records  []modelRecord // version 1 first
	points   map[ledger.Version]point
	stopped  string // why ingest stopped, "" while it goes on
}

func newModel(info ledger.SourceInfo) *model {
	return &model{
		info: info, tree: make(map[ledger.BlockID]*modelBlock), gone: make(map[ledger.BlockID]bool), said: make(map[modelSaying]bool),
		retained: 9000, world: newWorld(nil), points: make(map[ledger.Version]point),
	}
}

func (m *model) tip() *modelBlock { return m.chain[len(m.chain)-1] }

func (m *model) finalizedSlot() ledger.Slot { return m.chain[m.finalized].Slot }

// horizon returns the slot below which no closing is known any more.
func (m *model) horizon() ledger.Slot {
	if len(m.chain) == 0 {
		return 0
	}
	return m.finalizedSlot() - min(m.finalizedSlot(), m.retained)
}

func (m *model) onChain(b *modelBlock) bool { return slices.Contains(m.chain, b) }

// event takes one event and notes what is visible after it.
func (m *model) event(e ledger.Event) {
	if m.stopped != "" {
		return
	}
	switch e := e.(type) {
	case *ledger.Block:
		m.receive(e)
	case *ledger.BaseState:
		if slices.ContainsFunc(m.bases, func(b *ledger.BaseState) bool { return reflect.DeepEqual(b, e) }) {
			break
		}
		if len(m.chain) > 0 {
			m.bases = append(m.bases, e)
		}
		m.baseSlot = max(m.baseSlot, e.Slot)
		m.log = append(m.log, lesson{e, m.horizon()})
		m.world = m.world.clone()
		m.world.horizon = m.horizon()
		m.world.learnBase(e)
		m.record(ledger.Record{Kind: ledger.BaseRecord, Slot: e.Slot, Base: e}, nil)
		if n := len(m.chain); n > 0 && m.finalized == n-1 {
			m.tip().version, m.tip().seq = m.version(), m.seq() // nothing is unfinalized: every level sees it
		}
	case *ledger.SlotStatus:
		m.status(e)
	}
	m.note()
}

// end is the end of a finite source's input.
func (m *model) end() {
	if m.stopped != "" {
		return
	}
	m.passGaps(func() bool { return len(m.waiting) > 0 })
	if m.stopped == "" && m.info.FinalityByDepth && !m.statusSeen && len(m.chain) > 0 {
		m.raiseByDepth(m.tip())
	}
	m.note()
}

// record appends a record with updates that led to the present world.
func (m *model) record(r ledger.Record, updates []modelUpdate) {
	r.Version, r.FirstSeq = m.version()+1, m.seq()+1
	if r.Horizon.Known = true; r.Kind != ledger.StatusRecord {
		r.Horizon.Value = m.world.horizon
	}
	m.records = append(m.records, modelRecord{Record: r, updates: updates, world: m.world})
}

// recordStatus appends the record of a status of a block.
func (m *model) recordStatus(b *ledger.Block, s ledger.Status) {
	r := ledger.Record{Kind: ledger.StatusRecord, Slot: b.Slot, Hash: b.Blockhash, Status: s, ByDepth: m.byDepth}
	if r.Horizon.Value = m.horizon(); s == ledger.StatusFinalized {
		r.Horizon.Value = b.Slot - min(b.Slot, m.retained)
	}
	m.record(r, nil)
}

// seq is the number of the newest update.
func (m *model) seq() ledger.Seq {
	if len(m.records) == 0 {
		return 0
	}
	last := m.records[len(m.records)-1]
	return last.FirstSeq + ledger.Seq(len(last.updates)) - 1
}

func (m *model) version() ledger.Version { return ledger.Version(len(m.records)) }

func (m *model) note() {
	p := point{version: m.version(), horizon: m.horizon(), chain: slices.Clone(m.chain)}
	if len(m.chain) == 0 {
		for i := range p.tips {
			p.tips[i] = ledger.Tip{Version: p.version, Slot: m.baseSlot}
		}
	} else {
		p.hasBlock, p.root = true, m.chain[0].Slot
		for i, b := range []*modelBlock{m.tip(), m.chain[m.confirmed], m.chain[m.finalized]} {
			p.tips[i] = ledger.Tip{Version: b.version, Slot: b.Slot, Hash: b.Blockhash, Seq: b.seq, Time: b.Time}
		}
		if b := m.chain[m.confirmed]; b.again > b.version {
			p.tips[ledger.Confirmed].Version, p.tips[ledger.Confirmed].Seq = b.again, b.againSeq
		}
		p.tips[0].Version, p.tips[0].Seq = p.version, m.seq()
	}
	m.points[p.version] = p
}

func (m *model) receive(b *ledger.Block) {
	if len(m.chain) == 0 {
		root := &modelBlock{Block: b}
		m.tree[nameOf(b)], m.arrived = root, append(m.arrived, root)
		m.append(root)
		m.recordStatus(b, ledger.StatusFinalized)
		return
	}
	parent := m.parentOf(b)
	if b.Slot == m.finalizedSlot() && b.Blockhash != m.chain[m.finalized].Blockhash {
		m.abandon(b)
	}
	if b.Slot <= m.finalizedSlot() || m.gone[nameOf(b)] && parent == nil {
		return // a duplicate, or an orphan that comes again
	}
	if n := m.tree[nameOf(b)]; n != nil {
		m.raise(n, b.Status)
		return
	}
	if b.ParentSlot < m.finalizedSlot() {
		m.stopped = "builds below finalized"
		return
	}
	if parent != nil {
		m.attach(b, parent, b.Status)
		return
	}
	if m.buildsOnGone(b) {
		m.abandon(b)
		return
	}
	if slices.ContainsFunc(m.waiting, func(w modelWaiter) bool { return nameOf(w.block) == nameOf(b) }) {
		return
	}
	m.waiting = append(m.waiting, modelWaiter{block: b})
	slices.SortStableFunc(m.waiting, func(a, b modelWaiter) int { return int(a.block.Slot) - int(b.block.Slot) })
	m.passGaps(func() bool {
		n := len(m.waiting)
		return n > 0 && m.waiting[n-1].block.Slot-m.waiting[0].block.Slot >= 64
	})
}

// abandon forgets a block for good, with all that wait for it.
func (m *model) abandon(b *ledger.Block) {
	m.gone[nameOf(b)] = true
	for {
		i := slices.IndexFunc(m.waiting, func(w modelWaiter) bool { return m.buildsOn(w.block, b) })
		if i < 0 {
			return
		}
		child := m.waiting[i].block
		m.waiting = slices.Delete(m.waiting, i, i+1)
		m.abandon(child)
	}
}

func (m *model) buildsOn(b, parent *ledger.Block) bool {
	return b.ParentSlot == parent.Slot && (!b.PreviousBlockhash.Known || b.PreviousBlockhash.Value == parent.Blockhash)
}

func (m *model) parentOf(b *ledger.Block) *modelBlock {
	if b.PreviousBlockhash.Known {
		return m.tree[ledger.BlockID{Slot: b.ParentSlot, Hash: b.PreviousBlockhash.Value}]
	}
	return m.at(b.ParentSlot)
}

// at returns the block at a slot where the hash was not told: the chain's, else the last that was not
// given up, else the last.
func (m *model) at(slot ledger.Slot) *modelBlock {
	var best *modelBlock
	for _, n := range m.arrived {
		switch {
		case n.Slot != slot || m.tree[nameOf(n.Block)] != n:
		case m.onChain(n):
			return n
		case best == nil || m.givenUp(best) || !m.givenUp(n):
			best = n
		}
	}
	return best
}

// givenUp reports whether a block beside the chain, or one that it builds on there, is dead.
func (m *model) givenUp(n *modelBlock) bool {
	return n != nil && !m.onChain(n) && (n.dead || m.givenUp(n.parent))
}

func (m *model) buildsOnGone(b *ledger.Block) bool {
	for name := range m.gone {
		if name.Slot == b.ParentSlot && (!b.PreviousBlockhash.Known || b.PreviousBlockhash.Value == name.Hash) {
			return true
		}
	}
	return false
}

// attach puts a block into the tree and, where it wins, on the chain.
func (m *model) attach(b *ledger.Block, parent *modelBlock, claimed ledger.Commitment) {
	n := &modelBlock{Block: b, parent: parent, dead: m.said[modelSaying{nameOf(b), ledger.StatusDead}]}
	delete(m.gone, nameOf(b))
	parent.children = append(parent.children, n)
	m.tree[nameOf(b)], m.arrived = n, append(m.arrived, n)
	if (parent == m.tip() || b.Slot > m.tip().Slot && m.descends(n, m.chain[m.confirmed])) && !m.givenUp(n) {
		m.switchTo(n)
	}
	m.raise(n, claimed)
	if m.stopped == "" && m.info.FinalityByDepth && !m.statusSeen && len(m.chain) > 32 {
		m.raiseByDepth(m.chain[len(m.chain)-33])
	}
	for m.stopped == "" {
		i := slices.IndexFunc(m.waiting, func(w modelWaiter) bool { return m.buildsOn(w.block, b) })
		if i < 0 {
			return
		}
		if m.tree[nameOf(b)] != n { // finality passed it with another child
			m.abandon(b)
			return
		}
		m.release(i, n)
	}
}

// descends reports whether n is a block or builds on it.
func (m *model) descends(n, above *modelBlock) bool {
	for ; n != nil; n = n.parent {
		if n == above {
			return true
		}
	}
	return false
}

// levelOf is the level that a status gives a block; no other does.
var levelOf = map[ledger.Status]ledger.Commitment{
	ledger.StatusConfirmed: ledger.Confirmed, ledger.StatusFinalized: ledger.Finalized,
}

func (m *model) release(i int, parent *modelBlock) {
	w := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	m.attach(w.block, parent, max(w.block.Status, levelOf[w.status]))
}

func (m *model) passGaps(tooLong func() bool) {
	for m.stopped == "" && tooLong() {
		lowest := m.waiting[0].block
		switch {
		case !m.info.GapsAllowed:
			m.stopped = "gap"
		case lowest.Slot <= m.tip().Slot, m.said[modelSaying{nameOf(lowest), ledger.StatusDead}],
			lowest.ParentSlot < m.tip().Slot, lowest.ParentSlot == m.tip().Slot && !m.buildsOn(lowest, m.tip().Block):
			m.waiting = m.waiting[1:]
			m.abandon(lowest)
		default:
			m.release(0, m.tip())
		}
	}
}

// append puts n on the chain as its tip.
func (m *model) append(n *modelBlock) {
	before := m.world
	m.world = before.clone()
	m.world.horizon = m.horizon()
	m.world.learnBlock(n.Block)
	m.log = append(m.log, lesson{n.Block, m.horizon()})
	m.chain = append(m.chain, n)
	m.record(ledger.Record{Kind: ledger.BlockRecord, Slot: n.Slot, Hash: n.Blockhash, Time: n.Time, Block: n.Block}, changes(before, m.world))
	n.version, n.seq = m.version(), m.seq()
}

// switchTo makes n the tip.
func (m *model) switchTo(n *modelBlock) {
	var add []*modelBlock
	at := n
	for ; !m.onChain(at); at = at.parent {
		add = append(add, at)
	}
	m.cutTo(slices.Index(m.chain, at))
	if m.stopped != "" {
		return
	}
	for _, b := range slices.Backward(add) {
		m.append(b)
	}
}

// cutTo undoes the blocks above a place of the chain.
func (m *model) cutTo(place int) {
	undone := m.chain[place+1:]
	if len(undone) == 0 {
		return
	}
	if len(undone) > 32 || place < m.finalized {
		m.stopped = "rollback refused"
		return
	}
	from, to, before := m.tip(), m.chain[place], m.world
	m.log = slices.DeleteFunc(m.log, func(l lesson) bool {
		return slices.ContainsFunc(undone, func(n *modelBlock) bool { return l.event == any(n.Block) })
	})
	data := m.world.data
	m.world = newWorld(m.world.wanted)
	m.world.data = data
	written := make(map[ledger.Pubkey]bool)
	for _, l := range m.log {
		m.world.horizon = l.horizon
		switch e := l.event.(type) {
		case *ledger.Block:
			m.world.learnBlock(e)
		case *ledger.BaseState:
			m.world.learnBase(e)
			noteKeys(written, e.Accounts)
		}
	}
	m.world.horizon = m.horizon()
	h := ledger.Record{Kind: ledger.RollbackRecord, Slot: to.Slot, Hash: to.Blockhash, FromSlot: from.Slot, Time: to.Time}
	m.record(h, changes(before, m.world))
	r := &m.records[len(m.records)-1]
	r.seenBetween, r.written = make(map[ledger.Pubkey]bool), written
	for _, r := range m.records[to.version:] {
		if r.Block != nil {
			noteKeys(written, r.Block.Accounts)
		}
	}
	for _, b := range undone {
		for _, u := range m.records[b.version-1].updates {
			r.seenBetween[u.after.pubkey] = true
		}
	}
	for _, u := range r.updates {
		delete(r.seenBetween, u.after.pubkey)
	}
	m.chain = m.chain[:place+1]
	if m.confirmed > place {
		m.confirmed, to.again, to.againSeq = place, m.version(), m.seq()
	}
}

func noteKeys(into map[ledger.Pubkey]bool, writes []ledger.AccountWrite) {
	for i := range writes {
		into[writes[i].Pubkey] = true
	}
}

func (m *model) status(e *ledger.SlotStatus) {
	m.statusSeen = true
	if len(m.chain) == 0 || e.Slot <= m.finalizedSlot() {
		return
	}
	n := m.at(e.Slot)
	if m.givenUp(n) {
		n = nil
	}
	if e.Blockhash.Known {
		n = m.tree[ledger.BlockID{Slot: e.Slot, Hash: e.Blockhash.Value}]
	}
	if n == nil {
		m.statusOfWaiting(e)
		return
	}
	if e.Status != ledger.StatusDead {
		m.raise(n, levelOf[e.Status])
		return
	}
	if !m.sayFirst(n.Block, ledger.StatusDead) {
		return
	}
	n.dead = true
	if i := slices.Index(m.chain, n); i > 0 {
		// The tip goes to the highest block that is left of what may be the chain.
		sure, parent := m.chain[min(m.confirmed, i-1)], m.chain[i-1]
		if best := highest(sure); best.Slot > parent.Slot {
			m.switchTo(best)
		} else {
			m.cutTo(i - 1)
		}
	}
	if m.stopped == "" {
		m.recordStatus(n.Block, ledger.StatusDead)
	}
}

// sayFirst notes a status of a block, and reports whether it was not said before.
func (m *model) sayFirst(b *ledger.Block, what ledger.Status) bool {
	saying := modelSaying{nameOf(b), what}
	again := m.said[saying]
	m.said[saying] = true
	return !again
}

func (m *model) statusOfWaiting(e *ledger.SlotStatus) {
	i := slices.IndexFunc(m.waiting, func(w modelWaiter) bool {
		return w.block.Slot == e.Slot && (!e.Blockhash.Known || e.Blockhash.Value == w.block.Blockhash)
	})
	switch {
	case i < 0:
	case e.Status == ledger.StatusDead:
		if b := m.waiting[i].block; m.sayFirst(b, ledger.StatusDead) {
			m.recordStatus(b, ledger.StatusDead)
		}
	default:
		m.waiting[i].status = max(m.waiting[i].status, e.Status)
	}
}

// raise makes the branch of n the chain, up to its highest block, and n as sure as said.
func (m *model) raise(n *modelBlock, level ledger.Commitment) {
	if level == ledger.Processed || m.stopped != "" {
		return
	}
	if level == ledger.Confirmed {
		if !m.sayFirst(n.Block, ledger.StatusConfirmed) {
			return
		}
		for a := n.parent; a != nil; a = a.parent { // what it builds on is confirmed with it
			m.sayFirst(a.Block, ledger.StatusConfirmed)
		}
	}
	if !m.onChain(n) {
		for a := n; !m.onChain(a); a = a.parent {
			a.dead = false
		}
		m.switchTo(highest(n))
		if m.stopped != "" {
			return
		}
	}
	place := slices.Index(m.chain, n)
	switch {
	case level == ledger.Finalized && place > m.finalized:
		m.recordStatus(n.Block, ledger.StatusFinalized)
		m.finalize(place)
	case place > m.confirmed:
		m.recordStatus(n.Block, ledger.StatusConfirmed)
		m.confirmed = place
	}
}

func highest(n *modelBlock) *modelBlock {
	best := n
	for _, child := range n.children {
		if child.dead {
			continue
		}
		h := highest(child)
		if h.Slot > best.Slot || h.Slot == best.Slot && bytes.Compare(h.Blockhash[:], best.Blockhash[:]) < 0 {
			best = h
		}
	}
	return best
}

func (m *model) finalize(place int) {
	n := m.chain[place]
	m.finalized, m.confirmed = place, max(m.confirmed, place)
	for _, past := range m.chain[:place] {
		delete(m.tree, nameOf(past.Block))
	}
	for name, other := range m.tree {
		if !m.descends(other, n) {
			delete(m.tree, name)
			m.abandon(other.Block)
		}
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(w modelWaiter) bool { return w.block.Slot <= n.Slot })
}

func (m *model) raiseByDepth(n *modelBlock) {
	m.byDepth = true
	m.raise(n, ledger.Finalized)
	m.byDepth = false
}
