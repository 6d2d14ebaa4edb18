package stream

import (
	"bytes"
	"slices"

	"ledgerd/engine/ledger"
)

// told is a block of the present chain that some level has yet to hear of.
type told struct {
	version  ledger.Version
	slot     ledger.Slot
	time     ledger.Opt[int64]
	firstSeq ledger.Seq
	updates  []ledger.Update
}

// feed turns publications into emissions. It remembers the blocks of the chain that are not
// finalized yet, for the levels that hear of them later.
type feed struct {
	chain []told
	// heard is how many blocks of chain each level heard of. Higher levels lag behind.
	heard [ledger.Commitments]int
}

// take returns what a publication means, level by level, in order.
func (f *feed) take(p *ledger.Publication) []*emission {
	var out []*emission
	for _, r := range p.Records {
		switch r.Kind {
		case ledger.BlockRecord:
			f.chain = append(f.chain, told{r.Version, r.Slot, r.Time, r.FirstSeq, r.Updates})
			out = f.advance(out, ledger.Processed, r.Version)
		case ledger.RollbackRecord:
			out = f.rollBack(out, r)
		}
	}
	for level := ledger.Confirmed; level < ledger.Commitments; level++ {
		out = f.advance(out, level, p.Head.Tip(level).Version)
	}
	f.forget()
	return out
}

// advance emits the blocks up to a version that the level has not heard of.
func (f *feed) advance(out []*emission, level ledger.Commitment, to ledger.Version) []*emission {
	for f.heard[level] < len(f.chain) && f.chain[f.heard[level]].version <= to {
		b := &f.chain[f.heard[level]]
		f.heard[level]++
		out = append(out, &emission{
			level: level, version: b.version, slot: b.slot, time: b.time, firstSeq: b.firstSeq, updates: b.updates,
			lastSeq: b.firstSeq + ledger.Seq(len(b.updates)) - 1,
		})
	}
	return out
}

// rollBack emits the undoing of blocks to every level that heard of one of them, and forgets them.
func (f *feed) rollBack(out []*emission, r *ledger.Record) []*emission {
	keep := len(f.chain)
	for keep > 0 && f.chain[keep-1].slot > r.Slot {
		keep--
	}
	out = append(out, &emission{
		level: ledger.Processed, version: r.Version, slot: r.Slot, time: r.Time, firstSeq: r.FirstSeq, updates: r.Updates,
		lastSeq: r.LastSeq(), undoneFrom: ledger.Some(r.FromSlot),
	})
	f.heard[ledger.Processed] = keep
	for level := ledger.Confirmed; level < ledger.Commitments; level++ {
		if f.heard[level] > keep {
			out = append(out, f.restore(level, f.chain[keep:f.heard[level]], r))
			f.heard[level] = keep
		}
	}
	clear(f.chain[keep:])
	f.chain = f.chain[:keep]
	return out
}

// restore returns the rollback as a higher level sees it, which heard of the undone blocks
// only: the accounts those changed, as far as they now stand differently.
func (f *feed) restore(level ledger.Commitment, undone []told, r *ledger.Record) *emission {
	shown := make(map[ledger.Pubkey]*ledger.Account) // the newest the level was shown
	for i := range undone {
		for k := range undone[i].updates {
			a := &undone[i].updates[k].Account
			shown[a.Pubkey] = a
		}
	}
	e := &emission{
		level: level, version: r.Version, slot: r.Slot, time: r.Time, firstSeq: r.FirstSeq, lastSeq: r.LastSeq(),
		undoneFrom: ledger.Some(undone[len(undone)-1].slot),
	}
	restored := func(now *ledger.Account, seq ledger.Seq) {
		before := shown[now.Pubkey]
		if before == nil || ledger.SameToReaders(before, now) {
			return
		}
		u := ledger.Update{Account: *now}
		if before.Known&ledger.FieldOwner != 0 && (now.Known&ledger.FieldOwner == 0 || before.Owner != now.Owner) {
			u.OwnerBefore = ledger.Some(before.Owner)
		}
		e.updates = append(e.updates, u)
		e.seqs = append(e.seqs, seq)
	}
	// Both lists are in pubkey order; so is what comes of them. What has no number of its
	// own carries the last one before it.
	unchanged := r.Unchanged
	for i := range r.Updates {
		u := &r.Updates[i]
		for len(unchanged) > 0 && bytes.Compare(unchanged[0].Pubkey[:], u.Account.Pubkey[:]) < 0 {
			restored(&unchanged[0], r.FirstSeq+ledger.Seq(i)-1)
			unchanged = unchanged[1:]
		}
		restored(&u.Account, r.FirstSeq+ledger.Seq(i))
	}
	for i := range unchanged {
		restored(&unchanged[i], r.LastSeq())
	}
	return e
}

// forget drops the blocks that every level heard of.
func (f *feed) forget() {
	done := slices.Min(f.heard[:])
	clear(f.chain[:done])
	f.chain = f.chain[done:]
	for i := range f.heard {
		f.heard[i] -= done
	}
}
