package snapshot

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine/ledger"
)

// Part is one range of keys to be written, with every account and mint fact in it. Parts are given in
// key order.
type Part struct {
	// Accounts calls visit for every account in pubkey order, tombstones included, until visit
	// returns an error, which it then returns. Mints does the same for mint facts. Parts are read
	// at once, each by a goroutine of its own.
	Accounts func(visit func(*ledger.Account) error) error
	Mints    func(visit func(ledger.MintWrite) error) error
	// Release is called once both were read; it may be nil.
	Release func()
}

// Write writes a snapshot, and with it a history file of the blocks that no history file
// holds yet. It returns once both are verified and would survive a crash.
//
// The blocks are all those of the chain from m.Floor up to m.Block, oldest first. Write skips blocks that the
// history has already and blocks below m.Floor, so the caller may omit these. If
// any other block is missing, Write refuses the snapshot, since a restart from it would lose the block.
//
// If what the parts hold has another state hash than m, Write returns an error that matches ErrState. Base state alone has no
// blocks: Write fills in its state hash, which it sums up from what the parts hold.
//
// After an error the older snapshots are as they were, nothing of the new one counts, and Write may
// be tried again. The error of ctx is returned as soon as ctx is over.
func (s *Store) Write(ctx context.Context, m Meta, parts []Part, blocks []HeldBlock, pace Pace) (Written, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if m.Taken.IsZero() {
		m.Taken = began
	}
	m.Taken = m.Taken.Round(0).UTC()
	m.Block = bare(m.Block)
	written, err := s.writeLocked(ctx, &m, parts, blocks, pace)
	if err != nil {
		return Written{}, fmt.Errorf("cannot write a snapshot at slot %d: %w", m.Slot, err)
	}
	written.Took = time.Since(began)
	return written, nil
}

// writeLocked writes and verifies both files before it gives the first of them its name.
func (s *Store) writeLocked(ctx context.Context, m *Meta, parts []Part, blocks []HeldBlock, pace Pace) (Written, error) {
	var files []*fileWriter
	written := Written{Info: Info{Name: stateName(m.Slot, m.Version), Slot: m.Slot, Version: m.Version}, Meta: m}
	if !m.BaseOnly {
		held, err := s.historyLocked(ctx, pace)
		if err != nil {
			return written, err
		}
		if m.History, blocks, err = continueHistory(held, m.Floor, m.Block, blocks); err != nil {
			return written, err
		}
	}
	if len(blocks) > 0 {
		first, last := blocks[0].Block.Slot, blocks[len(blocks)-1].Block.Slot
		w, err := createFile(s.fs, s.dir, blocksName(historyPrefix, first, last, FileHash{}), historyMagic)
		if err != nil {
			return written, err
		}
		defer w.discard()
		if _, err := w.fill(ctx, pace, func(e *encoder) error { return e.blocks(blocks) }); err != nil {
			return written, err
		}
		written.HistoryBytes, w.name = w.end, blocksName(historyPrefix, first, last, w.hash)
		files = append(files, w)
		m.History = append(m.History, HistoryRef{Name: w.name, Bytes: written.HistoryBytes, Hash: w.hash, First: first, Last: last})
	}
	w, err := createFile(s.fs, s.dir, written.Name, snapshotMagic)
	if err != nil {
		return written, err
	}
	defer w.discard()
	if err := writeParts(ctx, w, m, parts, pace); err != nil {
		return written, err
	}
	found, err := w.fill(ctx, pace, func(e *encoder) error { return e.meta(m.encode()) })
	if err != nil {
		return written, err
	}
	if _, _, err := openState(s.fs, s.dir, w.temporary); err != nil {
		return written, err
	}
	if found.hash != m.StateHash {
		return written, fmt.Errorf("%w: it is %s and should be %s", ErrState, found.hash, m.StateHash)
	}
	written.Bytes = w.end
	for _, w := range append(files, w) { // the snapshot last: no crash leaves it without its history
		if err := w.install(); err != nil {
			return written, err
		}
		s.verified[w.name] = w.hash
	}
	return written, nil
}

// fill has write write the chunks, finishes the file, reads all of it back, and returns what is in it.
func (w *fileWriter) fill(ctx context.Context, pace Pace, write func(*encoder) error) (tally, error) {
	if err := write(newEncoder(ctx, w, pace)); err != nil {
		return tally{}, err
	}
	if err := w.finish(); err != nil {
		return tally{}, err
	}
	f, err := openFile(w.fs, w.dir, w.temporary, w.magic)
	if err != nil {
		return tally{}, err
	}
	if f.hash != w.hash {
		return tally{}, &DamagedError{f.name, f.end, "it is not what was written"}
	}
	return f.checkItems(ctx, pace)
}

// writeParts writes the parts of a snapshot at once, and counts in m what it writes.
func writeParts(ctx context.Context, w *fileWriter, m *Meta, parts []Part, pace Pace) error {
	g, gctx := errgroup.WithContext(ctx)
	counts := make([]tally, len(parts))
	for i := range parts {
		g.Go(func() (err error) {
			counts[i], err = writePart(gctx, w, &parts[i], m.BaseOnly, pace)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var total tally
	for i := range counts {
		total.add(&counts[i])
	}
	m.Accounts, m.Tombstones, m.Mints = total.accounts, total.tombstones, total.mints
	if m.BaseOnly {
		m.StateHash = total.hash
	}
	return nil
}

// writePart writes one part and counts what is in it; it sums up the state hash only if asked.
func writePart(ctx context.Context, w *fileWriter, p *Part, hash bool, pace Pace) (counts tally, err error) {
	e := newEncoder(ctx, w, pace)
	if p.Release != nil {
		defer p.Release()
	}
	err = p.Accounts(func(a *ledger.Account) error {
		counts.account(a, hash)
		return e.account(a)
	})
	if err == nil {
		err = e.flush()
	}
	if err == nil {
		err = p.Mints(func(m ledger.MintWrite) error {
			counts.mint(&m, hash)
			return e.mint(&m)
		})
	}
	if err == nil {
		err = e.flush()
	}
	return counts, err
}
