package engine

import (
	"testing"
	"time"

	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs/vfstest"
)

// chainOf returns n blocks on parent, one a slot.
func chainOf(parent *ledger.Block, n int) []*ledger.Block {
	var blocks []*ledger.Block
	for range n {
		parent = child(parent, parent.Slot+1, 0, lamports(key(1), ledger.Lamports(parent.Slot+1)))
		blocks = append(blocks, parent)
	}
	return blocks
}

func events(blocks ...*ledger.Block) []ledger.Event {
	var all []ledger.Event
	for _, b := range blocks {
		all = append(all, b)
	}
	return all
}

// sized makes a block count as more than so many bytes, and take less: all share what they say of one mint.
func sized(b *ledger.Block, bytes int) *ledger.Block {
	b.Mints = manyMints[:bytes/224]
	return b
}

var manyMints = make([]ledger.MintWrite, 33<<20/224)

// F21, F22, F23: TestRareForksEqualNaiveModel shows what random streams seldom do.
func TestRareForksEqualNaiveModel(t *testing.T) {
	gaps := finite()
	gaps.GapsAllowed = true
	on := func(parent *ledger.Block, slot ledger.Slot, branch int) *ledger.Block {
		return child(parent, slot, branch, lamports(key(1), ledger.Lamports(slot)))
	}
	root := rootBlock(100, lamports(key(1), 100))
	a, tip, lost := on(root, 101, 0), on(root, 110, 0), &ledger.Block{Slot: 105, Blockhash: hash(5)}
	b, sibling, beside := on(a, 102, 0), on(a, 103, 1), on(lost, 112, 1)
	twin := on(&ledger.Block{Slot: 110, Blockhash: hash(6)}, 114, 2)
	foreign := on(&ledger.Block{Slot: 100, Blockhash: hash(5)}, 101, 0)
	beside.PreviousBlockhash = ledger.Opt[ledger.Hash]{}
	bare := &ledger.SlotStatus{Slot: 102, Status: ledger.StatusFinalized}
	type row struct {
		info   ledger.SourceInfo
		events []ledger.Event
	}
	bubbletest.Each(t, map[string]row{
		"a sibling of the final one waits": {live(), []ledger.Event{
			root, on(sibling, 104, 1), sibling, b, status(b, ledger.StatusFinalized), a, on(b, 105, 0)}},
		"the final one waits, by its slot": {live(), []ledger.Event{root, b, bare, a}},
		"what follows a gap is beside":     {gaps, []ledger.Event{root, tip, on(beside, 113, 1), beside, twin}},
		"a block follows a gap":            {gaps, []ledger.Event{root, beside}},
		"a parent never comes":             {finite(), []ledger.Event{root, on(lost, 112, 1)}},
		"another chain than the root's":    {finite(), []ledger.Event{root, foreign, on(foreign, 102, 0)}},
		"a dead block follows a gap":       {gaps, []ledger.Event{root, beside, status(beside, ledger.StatusDead)}},
		"at a slot one is alive": {live(), []ledger.Event{
			root, a, b, on(a, 104, 0), on(a, 102, 1), status(on(a, 102, 1), ledger.StatusDead), bare}},
	}, func(t *testing.T, tt row) {
		s := stream{info: tt.info, retention: sequencer.Retention{Slots: 9000, Bytes: 1 << 40}}
		f := s.follow(t, seeded(t, 1), s.model(), Config{Shards: 2})
		for _, e := range tt.events {
			f.show(e)
		}
		atTheEnd(t, f)
	})
}

// TestStatusesSeenAreDurable cuts the power after a status that changed nothing, and when the record of one is durable and nothing after it: what
// comes after it is not final for its depth.
func TestStatusesSeenAreDurable(t *testing.T) {
	root := rootBlock(1)
	two := child(root, 2, 0)
	unknown := &ledger.SlotStatus{Slot: 1000, Status: ledger.StatusConfirmed}
	recorded := status(two, ledger.StatusConfirmed)
	for _, said := range []*ledger.SlotStatus{status(root, ledger.StatusFinalized), unknown, recorded} {
		bubbletest.Test(t, func(t *testing.T) {
			disk := vfstest.NewMemory()
			var synced *vfstest.Memory // as of the newest sync of the log
			n := startNode(t, finite(), onDisk(t, disk, Config{Shards: 1, OnSync: func(time.Duration) { synced = disk.Crash(0, 1) }}))
			n.send(root, two, said)
			left := disk.Crash(0, 1)
			if said == recorded {
				left = synced
			}
			n.mustStop()
			n = startNode(t, finite(), onDisk(t, left, Config{Shards: 1}))
			n.send(two, child(two, 3, 0)) // a source leaves out what is said of final slots
			n.endInput()
			ledgertest.Equal(t, n.Head().Tip(ledger.Finalized).Slot, 1, "the final slot after %+v", said)
		})
	}
}

// F23: TestForkOfAnyDepthIsRolledBackExactly undoes 1 to 32 blocks: the node stands where the model does, and counts the rollback.
func TestForkOfAnyDepthIsRolledBackExactly(t *testing.T) {
	for depth := uint64(1); depth <= chain.MaxRollbackBlocks; depth++ {
		bubbletest.Test(t, func(t *testing.T) {
			s := streams()[0]
			g := s.generator(depth, true)
			f := s.follow(t, g.r, g.m, Config{Shards: 2})
			show := func(b *ledger.Block) *ledger.Block {
				for range 9 {
					b.Accounts = append(b.Accounts, g.write())
				}
				f.show(with(b, signature(int(b.Slot))))
				return b
			}
			root := show(rootBlock(100))
			lost := root
			for range depth {
				lost = show(child(lost, lost.Slot+1, 1))
			}
			show(child(root, lost.Slot+1, 2))
			f.answers(f.Engine, nil)
			c, want := f.Stats().Counters, [len(sequencer.RollbackDepths)]uint64{}
			for i, most := range sequencer.RollbackDepths {
				want[i] = map[bool]uint64{true: 1}[depth <= most]
			}
			if c.RollbacksUpTo != want || c.Rollbacks != 1 || c.Undone != depth {
				t.Errorf("depth %d: %d rollbacks of %d blocks, by depth %v, want %v", depth, c.Rollbacks, c.Undone, c.RollbacksUpTo, want)
			}
		})
	}
}
