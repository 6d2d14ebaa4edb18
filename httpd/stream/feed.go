package stream

import (
	"bytes"
	"sync/atomic"

	"ledgerd/engine/ledger"
)

// feed turns publications into the emissions of some levels. It remembers the blocks of the chain
// that one of these has not reached, for when it does.
type feed struct {
	levels ledger.Commitment // how many, from the processed one on
	blocks bool              // emissions have their blocks
	chain  []emission        // of those blocks, at the processed level
	// emitted is how many blocks of chain were emitted at each level.
	emitted [ledger.Commitments]int
}

// take returns what a publication means, level by level, in order.
func (f *feed) take(p *ledger.Publication) (out []*emission) {
	for _, r := range p.Records {
		switch r.Kind {
		case ledger.BlockRecord:
			e := emissionOf(r, ledger.Processed)
			e.setUpdates(r.Updates)
			if f.blocks {
				e.block = r.Block
			}
			f.chain = append(f.chain, *e)
			out = f.advance(out, ledger.Processed, r.Version)
		case ledger.RollbackRecord:
			out = f.rollBack(out, r)
		}
	}
	for level := ledger.Confirmed; level < f.levels; level++ {
		out = f.advance(out, level, p.Head.Tip(level).Version)
	}
	f.forget()
	return out
}

// advance emits the blocks up to a version at a level that has not reached them.
func (f *feed) advance(out []*emission, level ledger.Commitment, to ledger.Version) []*emission {
	for f.emitted[level] < len(f.chain) && f.chain[f.emitted[level]].version <= to {
		e := f.chain[f.emitted[level]]
		e.level = level
		out = append(out, &e)
		f.emitted[level]++
	}
	return out
}

// rollBack emits the undoing of blocks at every level that reached one of them, and forgets them.
func (f *feed) rollBack(out []*emission, r *ledger.Record) []*emission {
	keep := len(f.chain)
	for keep > 0 && f.chain[keep-1].slot > r.Slot {
		keep--
	}
	for level := range f.levels {
		switch {
		case level == ledger.Processed:
			out = append(out, undoing(level, r, r.FromSlot))
			out[len(out)-1].setUpdates(r.Updates)
		case f.emitted[level] > keep:
			out = append(out, restore(level, f.chain[keep:f.emitted[level]], r))
		}
		f.emitted[level] = min(f.emitted[level], keep)
	}
	clear(f.chain[keep:])
	f.chain = f.chain[:keep]
	return out
}

// emissionOf returns the emission of a record at a level, without its updates.
func emissionOf(r *ledger.Record, level ledger.Commitment) *emission {
	return &emission{
		level: level, version: r.Version, slot: r.Slot, time: r.Time, firstSeq: r.FirstSeq, lastSeq: r.LastSeq(),
		decimals: new(atomic.Pointer[mints]), keptBy: new(int),
	}
}

// undoing returns the emission of a rollback from a slot, without its updates.
func undoing(level ledger.Commitment, r *ledger.Record, from ledger.Slot) *emission {
	e := emissionOf(r, level)
	e.undoneFrom = ledger.Some(from)
	return e
}

// restore returns the rollback as a higher level sees it, which reached the undone blocks only:
// the accounts those changed, as far as they now stand differently.
func restore(level ledger.Commitment, undone []emission, r *ledger.Record) *emission {
	shown := make(map[ledger.Pubkey]*ledger.Account) // the newest the level was shown
	for i := range undone {
		for k := range undone[i].updates {
			a := &undone[i].updates[k].Account
			shown[a.Pubkey] = a
		}
	}
	e := undoing(level, r, undone[len(undone)-1].slot)
	var updates []ledger.Update
	restored := func(now *ledger.Account, seq ledger.Seq) {
		before := shown[now.Pubkey]
		if before == nil || ledger.SameToReaders(before, now) {
			return
		}
		u := ledger.Update{Account: *now, DataBefore: ledger.DataBefore(before, now)}
		if before.Known&ledger.FieldOwner != 0 && (now.Known&ledger.FieldOwner == 0 || before.Owner != now.Owner) {
			u.OwnerBefore = ledger.Some(before.Owner)
		}
		if was, is := tokenOf(before), tokenOf(now); was != nil && (is == nil || was.Owner != is.Owner) {
			u.WalletBefore = ledger.Some(was.Owner)
		}
		updates = append(updates, u)
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
	e.setUpdates(updates)
	return e
}

// forget drops the blocks that every level has reached.
func (f *feed) forget() {
	done := len(f.chain)
	for level := range f.levels {
		done = min(done, f.emitted[level])
	}
	clear(f.chain[:done])
	f.chain = f.chain[done:]
	for i := range f.emitted {
		f.emitted[i] = max(f.emitted[i]-done, 0)
	}
}

// size returns about what the blocks take that the feed remembers.
func (f *feed) size() (bytes int) {
	for i := range f.chain {
		bytes += f.chain[i].size()
	}
	return bytes
}
