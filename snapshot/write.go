package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine/ledger"
)

// Part is one range of keys to be written, with all that stands in it. Parts are given in
// key order.
type Part struct {
	// Accounts calls visit for every account in pubkey order, tombstones included, until it
	// returns false. Mints does the same for mint facts. Parts are read at once, each by a
	// goroutine of its own.
	Accounts func(visit func(*ledger.Account) bool) error
	Mints    func(visit func(ledger.MintWrite) bool) error
}

// Write writes a snapshot, and with it a history file of the blocks that no history file
// holds yet. It returns once both are verified and would survive a crash.
//
// The blocks are all those of the chain from m.Floor up to m.Block, oldest first. Those that the
// history has already, and any below m.Floor, are passed over and may be left out; without
// any of the others the snapshot is refused, since a restart from it would lose them.
//
// It does not judge whether the state hash of what the parts hold is the one of m: the caller compares
// Written.Held.
//
// After an error the older snapshots are as they were, and nothing of the new one counts; it may
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
	written, err := s.writeLocked(ctx, m, parts, blocks, pace)
	if err != nil {
		return Written{}, fmt.Errorf("cannot write a snapshot at slot %d: %w", m.Slot, err)
	}
	written.Took = time.Since(began)
	return written, nil
}

// WriteBase is Write for base state alone, without blocks. It fills in the state hash, which it sums
// up from what the parts hold, and finds it again in what it reads back.
func (s *Store) WriteBase(ctx context.Context, m Meta, parts []Part, pace Pace) (Written, error) {
	m.BaseOnly, m.StateHash = true, ledger.StateHash{}
	return s.Write(ctx, m, parts, nil, pace)
}

func (s *Store) writeLocked(ctx context.Context, m Meta, parts []Part, blocks []HeldBlock, pace Pace) (Written, error) {
	if m.BaseOnly {
		return s.writeBaseLocked(ctx, m, parts, pace)
	}
	held, err := s.historyLocked(ctx, pace)
	if err != nil {
		return Written{}, err
	}
	if m.History, blocks, err = continueHistory(held, m.Floor, m.Block, blocks); err != nil {
		return Written{}, err
	}
	var added *HistoryRef
	var isNew bool
	if len(blocks) > 0 {
		if added, isNew, err = s.writeHistory(ctx, blocks, pace); err != nil {
			return Written{}, err
		}
		m.History = append(m.History, *added)
	}
	state, hash, placed, err := s.writeState(ctx, &m, parts, pace)
	if err != nil {
		if isNew && !placed { // nothing refers to it
			delete(s.verified, added.Name)
			_ = s.fs.Remove(filepath.Join(s.dir, added.Name))
		}
		return Written{}, err
	}
	w := Written{Info: Info{state.name, m.Slot, m.Version, state.bytes}, Meta: &m, Held: hash}
	if added != nil {
		w.HistoryBytes = added.Bytes
	}
	return w, nil
}

func (s *Store) writeBaseLocked(ctx context.Context, m Meta, parts []Part, pace Pace) (Written, error) {
	state, hash, _, err := s.writeState(ctx, &m, parts, pace)
	if err != nil {
		return Written{}, err
	}
	return Written{Info: Info{state.name, m.Slot, m.Version, state.bytes}, Meta: &m, Held: hash}, nil
}

// writeState writes the state file, and returns the state hash of what it reads back. placed is true once the
// file has had its name.
func (s *Store) writeState(ctx context.Context, m *Meta, parts []Part, pace Pace) (f *file, held ledger.StateHash, placed bool, err error) {
	name := stateName(m.Slot, m.Version)
	w, err := createFile(s.fs, s.dir, name, snapshotMagic)
	if err != nil {
		return nil, held, false, err
	}
	defer func() {
		if !placed {
			w.discard()
		}
	}()
	if err := writeParts(ctx, w, m, parts, pace); err != nil {
		return nil, held, false, err
	}
	hash, err := w.finish()
	if err != nil {
		return nil, held, false, err
	}
	f, _, err = openState(s.fs, s.dir, w.temporary)
	if err != nil {
		return nil, held, false, err
	}
	found, err := f.checkItems(ctx, pace, true)
	if err != nil {
		return nil, held, false, err
	}
	reason := found.differs(m)
	if reason == "" && m.BaseOnly && found.hash != m.StateHash {
		reason = fmt.Sprintf("the state hash is %s, not %s", found.hash, m.StateHash)
	}
	if reason == "" && f.hash != hash {
		reason = "the hash is not the one that was written"
	}
	if reason != "" {
		return nil, held, false, &DamagedError{f.name, f.end, "it is not what was written: " + reason}
	}
	var isNew bool
	if placed, isNew, err = w.install(name); err != nil {
		if placed && isNew { // it must not count, but it may come back: its history stays
			_ = s.fs.Remove(filepath.Join(s.dir, name))
		}
		return nil, held, placed, err
	}
	f.name = name
	s.verified[name] = hash
	return f, found.hash, true, nil
}

// writeParts writes all chunks of a snapshot, the parts at once, and counts what it writes
// in m.
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
	m.Accounts, m.Tombstones, m.Mints = 0, 0, 0
	for _, c := range counts {
		m.Accounts += c.accounts
		m.Tombstones += c.tombstones
		m.Mints += c.mints
		if m.BaseOnly {
			m.StateHash.Add(c.hash)
		}
	}
	e, err := newEncoder(ctx, w, pace)
	if err != nil {
		return err
	}
	defer e.close()
	return e.meta(m)
}

// writePart writes one part, and adds up its state hash if asked.
func writePart(ctx context.Context, w *fileWriter, p *Part, hash bool, pace Pace) (tally, error) {
	e, err := newEncoder(ctx, w, pace)
	if err != nil {
		return tally{}, err
	}
	defer e.close()
	var sum ledger.StateHash
	var failed error
	err = p.Accounts(func(a *ledger.Account) bool {
		if hash {
			sum.Add(a.StateTerm())
		}
		failed = e.account(a)
		return failed == nil
	})
	if err = errors.Join(failed, err); err != nil {
		return tally{}, err
	}
	if err := e.flush(); err != nil {
		return tally{}, err
	}
	err = p.Mints(func(m ledger.MintWrite) bool {
		if hash {
			sum.Add(m.Mint.StateTerm(m.Pubkey))
		}
		failed = e.mint(&m)
		return failed == nil
	})
	if err = errors.Join(failed, err); err != nil {
		return tally{}, err
	}
	err = e.flush()
	e.written.hash = sum
	return e.written, err
}

// writeHistory writes a history file. isNew is false if a file of the same bytes was there
// before: it was replaced, and another snapshot may refer to it.
func (s *Store) writeHistory(ctx context.Context, blocks []HeldBlock, pace Pace) (ref *HistoryRef, isNew bool, err error) {
	first, last := blocks[0].Block.Slot, blocks[len(blocks)-1].Block.Slot
	w, err := createFile(s.fs, s.dir, historyName(first, last, FileHash{}), historyMagic)
	if err != nil {
		return nil, false, err
	}
	var placed bool
	defer func() {
		if !placed {
			w.discard()
		}
	}()
	if err := writeBlocks(ctx, w, blocks, pace); err != nil {
		return nil, false, err
	}
	hash, err := w.finish()
	if err != nil {
		return nil, false, err
	}
	f, err := openFile(s.fs, s.dir, w.temporary, historyMagic)
	if err != nil {
		return nil, false, err
	}
	if _, err := f.checkItems(ctx, pace, false); err != nil {
		return nil, false, err
	}
	if f.hash != hash || f.count(blockChunk) != uint64(len(blocks)) {
		return nil, false, &DamagedError{f.name, f.end, "it is not what was written"}
	}
	name := historyName(first, last, hash)
	if placed, isNew, err = w.install(name); err != nil {
		return nil, false, err
	}
	s.verified[name] = hash
	return &HistoryRef{Name: name, Bytes: f.bytes, Hash: hash, First: first, Last: last}, isNew, nil
}

func writeBlocks(ctx context.Context, w *fileWriter, blocks []HeldBlock, pace Pace) error {
	e, err := newEncoder(ctx, w, pace)
	if err != nil {
		return err
	}
	defer e.close()
	for i := range blocks {
		if err := e.block(&blocks[i]); err != nil {
			return err
		}
	}
	return e.flush()
}
