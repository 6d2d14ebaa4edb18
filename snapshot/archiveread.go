package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// ErrLost says that the requested block or transaction is in a file that cannot be read or is damaged.
var ErrLost = errors.New("a file of history cannot be read, or is damaged")

// runReader reads the blocks of a run.
type runReader struct {
	chunkReader
	run    *run
	cut    *chunk        // the chunk whose blocks are packed, while the reader has its bytes
	packed []packedBlock // in raw
}

// keptBytes bounds the buffers of a reader that is kept for the next question: those of a usual block fit. At most two are used
// at once, one in each lane; the pool may hold some more until the next garbage collection.
const keptBytes = 8 << 20

// with calls use with a reader of a run, and notes damage that it finds. Its error matches fs.ErrClosed if the run was merged or
// dropped meanwhile.
func (a *Archive) with(r *run, use func(*runReader) error) error {
	if r.lost.Load() {
		return ErrLost
	}
	reader := a.readers.Get().(*runReader)
	defer func() {
		if cap(reader.stored)+cap(reader.raw) <= keptBytes {
			a.readers.Put(reader)
		}
	}()
	reader.run, reader.cut = r, nil
	reader.begin(r.file, r.kept)
	return a.failed(r, use(reader))
}

// failed returns the error of a query for an error of reading a run. If the error is permanent, because the run is damaged or the
// disk cannot read a sector of it, it notes the run as lost and returns ErrLost.
func (a *Archive) failed(r *run, err error) error {
	switch {
	case isPermanent(err):
		a.lose(r, err)
		return ErrLost
	case vfs.IsShortage(err):
		return fmt.Errorf("history cannot be read: %w: %w", ledger.ErrUnavailable, err)
	}
	return err
}

// block returns the first block at or above a slot, which must not be above the last one of the run.
func (r *runReader) block(slot ledger.Slot) (h HeldBlock, err error) {
	chunks := r.run.of(blockChunk)
	c := &chunks[min(chunkFrom(chunks, blockKey(slot)), len(chunks)-1)]
	if r.cut != c || r.held != c { // a walk comes to one block of a chunk after the other
		r.packed, r.cut = r.packed[:0], c
		err := decodeChunk(&r.chunkReader, c, cutBlock, packedBlock.key, func(p packedBlock) error {
			r.packed = append(r.packed, p)
			return nil
		})
		if err != nil {
			return h, err
		}
	}
	at := sort.Search(len(r.packed), func(i int) bool { return r.packed[i].slot >= slot })
	if at == len(r.packed) {
		return h, r.run.damaged(c, "a signature or a filter is of a block that is not there")
	}
	if h, err = r.packed[at].decode(); err != nil {
		return h, r.run.damaged(c, err.Error())
	}
	return h, nil
}

// Block returns the first block of the archive at or above a slot; HeldBlock.Block is nil if there is none. Its error is ErrLost
// if that block may be in a damaged run, or matches ledger.ErrUnavailable, or is the disk's.
func (a *Archive) Block(slot ledger.Slot, by Asker) (HeldBlock, error) {
	var found HeldBlock
	err := a.read(&a.one, by, func(runs []*run) error {
		i := sort.Search(len(runs), func(i int) bool { return runs[i].Last >= slot })
		if i == len(runs) {
			return nil
		}
		return a.with(runs[i], func(r *runReader) (err error) {
			found, err = r.block(slot)
			return err
		})
	})
	if err != nil {
		return HeldBlock{}, err
	}
	return found, nil
}

// Transaction returns the newest transaction below a slot with a signature, nil if there is none. It skips damaged runs.
func (a *Archive) Transaction(sig *ledger.Signature, below ledger.Slot, by Asker) (*ledger.Transaction, error) {
	var found *ledger.Transaction
	err := a.read(&a.one, by, func(runs []*run) error {
		for _, r := range slices.Backward(runs) {
			if time.Now().After(by.Deadline) {
				return errLate
			}
			err := a.with(r, func(r *runReader) (err error) {
				found, err = r.transaction(sig, below)
				return err
			})
			if found != nil || err != nil && !errors.Is(err, ErrLost) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// transaction is Archive.Transaction for one run.
func (r *runReader) transaction(sig *ledger.Signature, below ledger.Slot) (*ledger.Transaction, error) {
	slots, err := r.run.slots(&r.chunkReader, sig)
	if err != nil {
		return nil, err
	}
	for _, slot := range slices.Backward(slots) {
		if slot >= below {
			continue
		}
		b, err := r.block(slot)
		if err != nil {
			return nil, err
		}
		for i := range slices.Backward(b.Block.Transactions) {
			if t := &b.Block.Transactions[i]; t.Signature == *sig && t.Slot == slot {
				return t, nil
			}
		}
	}
	return nil, nil
}

// Candidate is a block that a walk comes to.
type Candidate struct {
	Slot  ledger.Slot
	Named bool // it may name the key that is looked for
	Lines int  // cache lines of its filter; each holds some 46 keys
	// Load returns the block. It is valid until the visit ends.
	Load func() (*ledger.Block, error)
}

// Walk visits the blocks from slot first to slot last, oldest first or newest first, until visit returns false or an error. If a
// key is given, Candidate.Named says whether a block may name it. It skips damaged runs. Errors match ledger.ErrUnavailable, or
// are visit's or the disk's. After an error visit may still be running: the caller must not read what it writes.
func (a *Archive) Walk(key ledger.Opt[ledger.Pubkey], first, last ledger.Slot, oldestFirst bool, by Asker, visit func(Candidate) (more bool, err error)) error {
	var done ledger.Opt[ledger.Slot] // visited last: if runs were merged meanwhile, the walk goes on after it
	err := a.read(&a.lists, by, func(runs []*run) error {
		for n := range runs {
			r, from, to := runs[n], first, last
			if !oldestFirst {
				r = runs[len(runs)-1-n]
			}
			switch {
			case done.Known && oldestFirst:
				from = max(from, done.Value+1)
			case done.Known:
				to = min(to, done.Value-1)
			}
			if r.Last < from || r.First > to {
				continue
			}
			err := a.with(r, func(reader *runReader) error {
				return reader.walk(key, from, to, oldestFirst, func(c Candidate) error {
					if time.Now().After(by.Deadline) {
						return errLate
					}
					done = ledger.Some(c.Slot)
					if more, err := visit(c); err != nil || more {
						return err
					}
					return errStop
				})
			})
			if err != nil && !errors.Is(err, ErrLost) {
				return err
			}
		}
		return nil
	})
	if err == errStop {
		return nil
	}
	return err
}

// walk visits the blocks of a run, until visit returns an error.
func (r *runReader) walk(key ledger.Opt[ledger.Pubkey], first, last ledger.Slot, oldestFirst bool, visit func(Candidate) error) error {
	chunks := r.run.of(filterChunk)
	chunks = chunks[chunkFrom(chunks, blockKey(first)):]
	chunks = chunks[:sort.Search(len(chunks), func(i int) bool { return slotOf(&chunks[i].first) > last })]
	for n := range chunks {
		c := &chunks[n]
		if !oldestFirst {
			c = &chunks[len(chunks)-1-n]
		}
		var blocks []Candidate
		err := decodeChunk(&r.chunkReader, c, decodeFilter, filterEntry.key, func(f filterEntry) error {
			if f.slot >= first && f.slot <= last {
				blocks = append(blocks, Candidate{f.slot, !key.Known || f.filter.Has(key.Value.Prefix()), len(f.filter), func() (*ledger.Block, error) {
					b, err := r.block(f.slot)
					return b.Block, err
				}})
			}
			return nil
		})
		if err != nil {
			return err
		}
		if !oldestFirst {
			slices.Reverse(blocks)
		}
		for _, b := range blocks {
			if err := visit(b); err != nil {
				return err
			}
		}
	}
	return nil
}
