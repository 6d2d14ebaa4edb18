package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
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

// huge makes a block count as so many bytes and take few: its transactions share one list.
func huge(b *ledger.Block, bytes int) *ledger.Block {
	for b.SizeBytes() < bytes {
		b.AddTransaction(ledger.Transaction{Signature: signature(int(b.Slot)*1000 + len(b.Transactions)), Accounts: manyKeys})
	}
	return b
}

var manyKeys = make([]ledger.Pubkey, 1<<18) // 8 MiB that nobody touches

// TestContradictionsStopIngest shows sources that contradict themselves: one that follows a
// node is frozen, a finite one ends the node, a refused rollback freezes both.
func TestContradictionsStopIngest(t *testing.T) {
	root := rootBlock(100, lamports(key(1), 100))
	blocks := chainOf(root, 40)
	final := status(blocks[4], ledger.StatusFinalized)
	skipping := child(blocks[4], 110, 3)
	twin := func(of *ledger.Block, claims ledger.Commitment) *ledger.Block {
		b := child(&ledger.Block{Slot: of.ParentSlot, Blockhash: of.PreviousBlockhash.Value}, of.Slot, 7)
		b.Status = claims
		return b
	}
	const goesOn, stops, refuses = "goes on", "stops", "refuses"
	tests := map[string]struct {
		before []ledger.Event
		event  ledger.Event
		want   string
		says   string
	}{
		"a block that is its own parent": {
			events(root), &ledger.Block{Slot: 105, ParentSlot: 105, Blockhash: hash(1)}, stops, "names slot 105 as its parent"},
		"a parent above the block": {
			events(root), &ledger.Block{Slot: 105, ParentSlot: 106, Blockhash: hash(1)}, stops, "names slot 106 as its parent"},
		"a block on a finalized block's ancestor": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), child(blocks[2], 120, 5), stops, "below the finalized slot 105"},
		"another block beside the finalized one, on the right parent": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), twin(blocks[4], ledger.Processed), goesOn, ""},
		"another block at a finalized slot": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), twin(blocks[2], ledger.Processed), goesOn, ""},
		"another block at a finalized slot that claims confirmed": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), twin(blocks[2], ledger.Confirmed), stops, "another block at slot 103 confirmed"},
		"another block at a finalized slot that claims finalized": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), twin(blocks[4], ledger.Finalized), stops, "another block at slot 105 finalized"},
		"another block at a finalized slot is called confirmed": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), status(twin(blocks[2], 0), ledger.StatusConfirmed), stops, "another block at slot 103 confirmed"},
		"another block at a finalized slot is called dead": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), status(twin(blocks[2], 0), ledger.StatusDead), goesOn, ""},
		"a finalized block is shown again": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), blocks[2], goesOn, ""},
		"a finalized block is called confirmed": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), status(blocks[2], ledger.StatusConfirmed), goesOn, ""},
		"a confirmed block in a slot that was skipped for good": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4], skipping), status(skipping, ledger.StatusFinalized)),
			&ledger.Block{Slot: 107, ParentSlot: 105, Blockhash: hash(1), Status: ledger.Confirmed}, stops, "another block at slot 107"},
		"a finalized block is dead": {
			append(events(root, blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]), final), status(blocks[3], ledger.StatusDead), refuses, "calls slot 104 dead"},
		"a block below the root": {
			events(root, blocks[0]), child(&ledger.Block{Slot: 90, Blockhash: hash(2)}, 95, 0), goesOn, ""},
		"a status below the root": {
			events(root, blocks[0]), &ledger.SlotStatus{Slot: 95, Status: ledger.StatusFinalized}, goesOn, ""},
		"a status of a slot nobody knows": {
			events(root, blocks[0]), &ledger.SlotStatus{Slot: 500, Status: ledger.StatusDead}, goesOn, ""},
		"32 blocks are undone": {
			events(append([]*ledger.Block{root}, blocks[:32]...)...), child(root, 200, 5), goesOn, ""},
		"33 blocks would be undone": {
			events(append([]*ledger.Block{root}, blocks[:33]...)...), child(root, 200, 5), refuses, "would undo 33 blocks, more than 32"},
		"33 blocks are dead": {
			events(append([]*ledger.Block{root}, blocks[:33]...)...), status(blocks[0], ledger.StatusDead), refuses, "would undo 33 blocks, more than 32"},
	}
	for name, tt := range tests {
		for _, info := range []ledger.SourceInfo{live(), {Name: "test", Finite: true}} {
			t.Run(name+", "+map[bool]string{true: "live", false: "finite"}[info.Live], func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					n := startNode(t, info, Config{Shards: 2})
					n.send(tt.before...)
					head := n.Head()
					n.try(tt.event)
					if tt.want == stops && !info.Live {
						if !n.hasEnded() || n.err == nil || !strings.Contains(n.err.Error(), tt.says) {
							t.Fatalf("Run: ended %v, %v, want an error with %q", n.hasEnded(), n.err, tt.says)
						}
						return
					}
					if why := n.Status().Unhealthy; (why == "") != (tt.want == goesOn) || !strings.Contains(why, tt.says) {
						t.Errorf("health says %q, want %q", why, tt.says)
					}
					if tt.want != goesOn && n.Head() != head {
						t.Errorf("the head moved from slot %d to %d", head.Tip(0).Slot, n.Head().Tip(0).Slot)
					}
					if _, _, err := n.Account(ledger.Query{}, key(1)); err != nil {
						t.Errorf("reads do not go on: %v", err)
					}
					n.mustStop()
				})
			})
		}
	}
}

// TestRefusalAppliesNothing checks that what came in one burst before a contradiction is good.
func TestRefusalAppliesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		gate := newGateLog()
		n := startNode(t, live(), Config{Shards: 2, Log: gate})
		root := rootBlock(100)
		blocks := chainOf(root, 3)
		n.send(root)
		n.send(append(events(blocks...), status(root, ledger.StatusDead), chainOf(blocks[2], 1)[0])...)
		gate.open()
		if tip := n.Head().Tip(ledger.Processed); tip.Slot != 103 || n.Status().Unhealthy == "" {
			t.Errorf("stands at slot %d, health %q, want slot 103 and why ingest stopped", tip.Slot, n.Status().Unhealthy)
		}
		n.mustStop()
	})
}

func TestGapEndsFiniteSource(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		root := rootBlock(100)
		n := startNode(t, finite(), Config{Shards: 2})
		n.send(root, child(&ledger.Block{Slot: 103, Blockhash: hash(5)}, 105, 0))
		if tip := n.Head().Tip(ledger.Processed); tip.Slot != 100 {
			t.Fatalf("the tip passed a gap to slot %d", tip.Slot)
		}
		n.endInput()
		<-n.ended
		if n.err == nil || !strings.Contains(n.err.Error(), "block 105 builds on slot 103") || strings.Contains(n.err.Error(), "\n") {
			t.Errorf("Run: %v, want one line that names block 105 and slot 103", n.err)
		}
	})
}

// TestForeignParentAtTheFinalizedSlotIsAGap shows a chain that builds on another block than the root:
// to pass over it in silence would hide that two ledgers were mixed up.
func TestForeignParentAtTheFinalizedSlotIsAGap(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, finite(), Config{Shards: 2})
		foreign := child(&ledger.Block{Slot: 100, Blockhash: hash(5)}, 101, 0)
		n.send(rootBlock(100), foreign, child(foreign, 102, 0))
		n.endInput()
		<-n.ended
		if n.err == nil || !strings.Contains(n.err.Error(), "block 101 builds on slot 100") {
			t.Errorf("Run: %v, want a line that names block 101 and slot 100", n.err)
		}
	})
}

func TestGapIsPassedWhereAllowed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		info := finite()
		info.GapsAllowed = true
		n := startNode(t, info, Config{Shards: 2})
		root := rootBlock(100, lamports(key(1), 7), lamports(key(2), 8))
		after := child(&ledger.Block{Slot: 103, Blockhash: hash(5)}, 105, 0, lamports(key(2), 9))
		n.send(root, after)
		n.endInput()
		for slot, want := range map[ledger.Slot]ledger.Absence{
			99: ledger.SlotNotIndexed, 101: ledger.SlotNotIndexed, 103: ledger.SlotNotIndexed, 104: ledger.SlotSkipped, 106: ledger.SlotNotYetProduced,
		} {
			_, _, err := n.Block(ledger.Query{}, slot)
			if why, ok := absence(err); !ok || why.Absence != want {
				t.Errorf("block %d: %v, want %v", slot, err, &ledger.NotFoundError{Absence: want})
			}
		}
		for k, want := range map[ledger.Pubkey]ledger.Lamports{key(1): 7, key(2): 9} {
			if a, _, err := n.Account(at(ledger.Finalized), k); err != nil || a.Lamports != want {
				t.Errorf("account %s: %d lamports, %v, want %d", k, a.Lamports, err, want)
			}
		}
		if n.Stats().Gaps != 1 || n.Status().Unhealthy != "" {
			t.Errorf("%d gaps, health %q, want 1 and none", n.Stats().Gaps, n.Status().Unhealthy)
		}
		n.mustStop()
	})
}

// TestGapNeverJoinsAnotherBranch shows blocks whose unknown parent lies beside or below the tip: to put
// them behind it would mix two branches.
func TestGapNeverJoinsAnotherBranch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		info := finite()
		info.GapsAllowed = true
		n := startNode(t, info, Config{Shards: 2})
		root := rootBlock(100, lamports(key(1), 1))
		tip := child(root, 110, 0, lamports(key(1), 2))
		beside := child(&ledger.Block{Slot: 105, Blockhash: hash(5)}, 112, 1, lamports(key(1), 3))
		above := child(beside, 113, 1, lamports(key(1), 4))
		twin := child(&ledger.Block{Slot: 110, Blockhash: hash(6)}, 114, 2, lamports(key(1), 5))
		n.send(root, tip, above, beside, twin)
		n.endInput()
		if slot := n.Head().Tip(ledger.Processed).Slot; slot != 110 {
			t.Errorf("tip %d, want 110", slot)
		}
		if a, _, err := n.Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 2 {
			t.Errorf("%d lamports, %v; want 2 of the tip's branch", a.Lamports, err)
		}
		if n.Stats().Orphans < 2 || n.Status().Unhealthy != "" {
			t.Errorf("%d orphans, health %q", n.Stats().Orphans, n.Status().Unhealthy)
		}
		n.mustStop()
	})
}

// TestBaseStateAfterTheLastBlockBelongsToIt reads accounts learned when nothing is unfinalized: every
// level sees them, and the overlay lets go of them.
func TestBaseStateAfterTheLastBlockBelongsToIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, finite(), Config{Shards: 2})
		n.send(final(rootBlock(100)), &ledger.BaseState{Slot: 90, Accounts: []ledger.AccountWrite{lamports(key(1), 7)}})
		for _, level := range levels {
			if a, _, err := n.Account(at(level), key(1)); err != nil || a.Lamports != 7 {
				t.Errorf("%s: %d lamports, %v; want 7", level, a.Lamports, err)
			}
		}
		time.Sleep(2 * foldAfter) // of the bubble's clock
		synctest.Wait()
		for i, s := range n.Stats().Shards {
			if s.OverlayCells != 0 {
				t.Errorf("shard %d still holds %d values in its overlay", i, s.OverlayCells)
			}
		}
		if n.seq.Chain().UnfinalizedBytes != 0 {
			t.Errorf("%d bytes are unfinalized, want none", n.seq.Chain().UnfinalizedBytes)
		}
		n.mustStop()
	})
}

// TestWaitingIsBounded shows blocks whose parent never comes: they wait over 64 slots or 64 MiB,
// then the gap rule applies.
func TestWaitingIsBounded(t *testing.T) {
	lost := child(rootBlock(100), 101, 0)
	wait := func(slots ...ledger.Slot) []ledger.Event {
		var all []ledger.Event
		parent := lost
		for _, s := range slots {
			parent = child(parent, s, 0)
			all = append(all, parent)
		}
		return all
	}
	tests := map[string]struct {
		waiting []ledger.Event
		stops   bool
	}{
		"over 63 slots":      {wait(102, 150, 165), false},
		"over 64 slots":      {wait(102, 150, 166), true},
		"far above the tip":  {wait(5000, 5010), false},
		"less than 64 MiB":   {[]ledger.Event{huge(child(lost, 102, 0), 33<<20)}, false},
		"more than 64 MiB":   {[]ledger.Event{huge(child(lost, 102, 0), 33<<20), huge(child(lost, 103, 1), 33<<20)}, true},
		"the same one twice": {slices.Repeat([]ledger.Event{huge(child(lost, 102, 0), 33<<20)}, 3), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n := startNode(t, live(), Config{Shards: 1})
				n.send(rootBlock(100))
				n.send(tt.waiting...)
				if why := n.Status().Unhealthy; (why != "") != tt.stops {
					t.Errorf("health says %q, want it to stop: %v", why, tt.stops)
				}
				if tip := n.Head().Tip(ledger.Processed); tip.Slot != 100 {
					t.Errorf("the tip passed a gap to slot %d", tip.Slot)
				}
				n.mustStop()
			})
		})
	}
}

// TestStatusOfWaitingBlockCounts says something of blocks before their parent came.
func TestStatusOfWaitingBlockCounts(t *testing.T) {
	root := rootBlock(100)
	blocks := chainOf(root, 3)
	tests := map[string]struct {
		status    *ledger.SlotStatus
		confirmed ledger.Slot
		finalized ledger.Slot
		tip       ledger.Slot
	}{
		"confirmed":               {status(blocks[1], ledger.StatusConfirmed), 102, 100, 103},
		"finalized":               {status(blocks[1], ledger.StatusFinalized), 102, 102, 103},
		"dead":                    {status(blocks[1], ledger.StatusDead), 100, 100, 101},
		"finalized, by slot only": {&ledger.SlotStatus{Slot: 102, Status: ledger.StatusFinalized}, 102, 102, 103},
		"another hash":            {&ledger.SlotStatus{Slot: 102, Status: ledger.StatusFinalized, Blockhash: ledger.Some(hash(1))}, 100, 100, 103},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n := startNode(t, live(), Config{Shards: 2})
				n.send(root, blocks[2], blocks[1], tt.status, blocks[0])
				want := []ledger.Slot{tt.tip, tt.confirmed, tt.finalized}
				for i, level := range levels {
					if got := n.Head().Tip(level).Slot; got != want[i] {
						t.Errorf("%s at slot %d, want %d", level, got, want[i])
					}
				}
				n.mustStop()
			})
		})
	}
}

// TestFinalityByDepth follows sources that do not speak of finality, or begin to.
// TestSiblingOfFinalizedBlockIsGivenUpWhileItWaits shows two blocks that wait for one parent, one
// of them called final already: with the parent comes the finality that passes it.
func TestSiblingOfFinalizedBlockIsGivenUpWhileItWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		root := rootBlock(100, lamports(key(1), 100))
		parent := child(root, 101, 0, lamports(key(1), 101))
		chosen := child(parent, 102, 0, lamports(key(1), 102))
		sibling := child(parent, 103, 1, lamports(key(1), 103))
		below := child(sibling, 104, 1, lamports(key(1), 104))
		next := child(chosen, 105, 0, lamports(key(1), 105))
		n := startNode(t, live(), Config{Shards: 2})
		n.send(root, below, sibling, chosen, status(chosen, ledger.StatusFinalized), parent, next)
		head := n.Head()
		if tip, final := head.Tip(ledger.Processed).Slot, head.Tip(ledger.Finalized).Slot; tip != 105 || final != 102 {
			t.Errorf("tip %d, finalized %d; want 105 on 102", tip, final)
		}
		if why := n.Status().Unhealthy; why != "" {
			t.Errorf("the node is unhealthy: %s", why)
		}
		n.mustStop()
	})
}

func TestFinalityByDepth(t *testing.T) {
	root := rootBlock(100)
	blocks := chainOf(root, 40)
	byStatus := finite()
	byStatus.FinalityByDepth = false
	tests := map[string]struct {
		info       ledger.SourceInfo
		events     []ledger.Event
		before     ledger.Slot // finalized before the end of input
		atEnd      ledger.Slot
		statusSeen bool
	}{
		"32 deep and not yet final":       {finite(), events(blocks[:32]...), 100, 132, false},
		"33 deep":                         {finite(), events(blocks[:33]...), 101, 133, false},
		"40 deep":                         {finite(), events(blocks...), 108, 140, false},
		"a status ends it":                {finite(), append(append(events(blocks[:33]...), status(blocks[9], ledger.StatusFinalized)), events(blocks[33:]...)...), 110, 110, true},
		"a status of an unknown slot too": {finite(), append(append(events(blocks[:33]...), &ledger.SlotStatus{Slot: 1000, Status: ledger.StatusConfirmed}), events(blocks[33:]...)...), 101, 101, true},
		"the source never lets depth say": {byStatus, events(blocks...), 100, 100, false},
		"final on arrival":                {byStatus, []ledger.Event{blocks[0], final(blocks[1]), blocks[2]}, 102, 102, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n := startNode(t, tt.info, Config{Shards: 2})
				n.send(root)
				n.send(tt.events...)
				if got := n.Head().Tip(ledger.Finalized).Slot; got != tt.before {
					t.Errorf("finalized slot %d, want %d", got, tt.before)
				}
				n.endInput()
				if got := n.Head().Tip(ledger.Finalized).Slot; got != tt.atEnd {
					t.Errorf("finalized slot %d at the end of input, want %d", got, tt.atEnd)
				}
				if n.Status().Unhealthy != "" {
					t.Errorf("health says %q after the end of input", n.Status().Unhealthy)
				}
				n.mustStop()
			})
		})
	}
}

// final returns the block as one that arrives finalized.
func final(b *ledger.Block) *ledger.Block {
	c := *b
	c.Status = ledger.Finalized
	return &c
}

// TestStatusesSeenAreDurable stops a node after a status that changed nothing, cleanly or by a power cut: what comes
// after it is not final for its depth.
func TestStatusesSeenAreDurable(t *testing.T) {
	root := rootBlock(1)
	two := child(root, 2, 0)
	for name, said := range map[string]*ledger.SlotStatus{
		"of what is final":   status(root, ledger.StatusFinalized),
		"of an unknown slot": {Slot: 1000, Status: ledger.StatusConfirmed},
	} {
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, power cut %v", name, cut), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					disk := vfstest.NewMemory()
					n := startNode(t, finite(), onDisk(t, disk, Config{Shards: 1}))
					n.send(root, two, said)
					if cut {
						disk = disk.Crash(0, 1)
					}
					n.mustStop()
					n.config.Dir.Close()
					n = startNode(t, finite(), onDisk(t, disk, Config{Shards: 1}))
					defer n.mustStop()
					n.send(two, child(two, 3, 0)) // a source leaves out what is said of final slots
					n.endInput()
					if got := n.Head().Tip(ledger.Finalized).Slot; got != 1 {
						t.Errorf("slot %d is final, want 1", got)
					}
				})
			})
		}
	}
}

// TestLastSlot follows blocks up to the last slot there is, and refuses what is beyond.
func TestLastSlot(t *testing.T) {
	root := rootBlock(ledger.MaxSlot-1, lamports(key(1), 1))
	last := child(root, ledger.MaxSlot, 1, lamports(key(1), 0))
	for name, beyond := range map[string]ledger.Event{
		"a block":    child(last, ledger.MaxSlot+1, 2),
		"base state": &ledger.BaseState{Slot: ledger.MaxSlot + 1, Accounts: []ledger.AccountWrite{lamports(key(2), 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n := startNode(t, finite(), Config{Shards: 2})
				n.send(root, last)
				_, _, err := n.Account(ledger.Query{}, key(1))
				if why, _ := absence(err); why != (ledger.NotFoundError{Absence: ledger.AccountClosed, Slot: ledger.MaxSlot}) {
					t.Errorf("an account that was closed in the last slot: %v", err)
				}
				if _, _, err := n.Block(ledger.Query{}, ledger.MaxSlot+1); err == nil || !strings.HasPrefix(err.Error(), "slot not yet produced") {
					t.Errorf("the block beyond the last slot: %v", err)
				}
				n.try(beyond)
				if err := n.stop(); err == nil || !strings.Contains(err.Error(), "the last slot is 9223372036854775807") {
					t.Errorf("Run: %v, want that the slot is beyond the last one", err)
				}
			})
		})
	}
}
