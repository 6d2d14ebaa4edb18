package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Snapshot is a snapshot whose files are whole as far as their indexes tell. It is immutable.
type Snapshot struct {
	meta    *Meta
	state   *file
	history []*file // as Meta names them
}

// openSnapshot opens the state file of the given name and the history files it names.
func openSnapshot(disk vfs.FS, dir, name string) (*Snapshot, error) {
	state, meta, err := openState(disk, dir, name)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{meta: meta, state: state}
	for _, ref := range meta.History {
		f, err := openHistory(disk, dir, ref)
		if err != nil {
			return nil, fmt.Errorf("cannot open the history of %s: %w", name, err)
		}
		s.history = append(s.history, f)
	}
	return s, nil
}

// Salvage opens a snapshot some of whose history is damaged or missing, without the blocks of
// the newest file that is and all before it: Meta's Floor lies behind them. It reads every
// byte of the history that it keeps. Errors are those of Open; a snapshot whose newest history
// is damaged has none to keep.
func (s *Store) Salvage(ctx context.Context, i Info) (*Snapshot, error) {
	state, meta, err := openState(s.fs, s.dir, i.Name)
	if err != nil {
		return nil, err
	}
	found := &Snapshot{meta: meta, state: state}
	for n := len(meta.History) - 1; n >= 0; n-- {
		f, err := openHistory(s.fs, s.dir, meta.History[n])
		if err == nil {
			err = f.checkStored(ctx, Pace{})
		}
		switch {
		case err == nil:
			found.history = slices.Insert(found.history, 0, f)
			continue
		case !errors.Is(err, ErrDamaged), len(found.history) == 0:
			return nil, err
		}
		meta.Floor = max(meta.Floor, meta.History[n].Last+1)
		meta.History = meta.History[n+1:]
		break
	}
	return found, nil
}

// openState opens a state file and reads what it is of.
func openState(disk vfs.FS, dir, name string) (*file, *Meta, error) {
	f, err := openFile(disk, dir, name, snapshotMagic)
	if err != nil {
		return nil, nil, err
	}
	metas := f.of(metaChunk)
	if len(metas) != 1 || metas[0].count != 1 || len(f.of(blockChunk)) > 0 {
		return nil, nil, &DamagedError{name, f.end, "the index is not one of a snapshot"}
	}
	r, err := f.open()
	if err != nil {
		return nil, nil, err
	}
	defer r.close()
	raw, err := r.read(&metas[0])
	if err != nil {
		return nil, nil, err
	}
	m, err := decodeMeta(raw)
	if err != nil {
		return nil, nil, f.damaged(&metas[0], fmt.Sprintf("what the snapshot is of cannot be read: %v", err))
	}
	if reason := m.check(f); reason != "" {
		return nil, nil, f.damaged(&metas[0], reason)
	}
	return f, m, nil
}

// check returns in what the meta does not fit the file it is from, "" if it does.
func (m *Meta) check(f *file) string {
	// A name under construction ends in another suffix than the one it will have.
	if slot, version, ok := parseStateName(trimTemporary(f.name)); !ok || slot != m.Slot || version != m.Version {
		return fmt.Sprintf("it is the state at slot %d after record %d and has another's name", m.Slot, m.Version)
	}
	if n := f.count(accountChunk); n < m.Accounts || n-m.Accounts != m.Tombstones {
		return fmt.Sprintf("the index counts %d accounts, not %d live and %d closed", n, m.Accounts, m.Tombstones)
	}
	if n := f.count(mintChunk); n != m.Mints {
		return fmt.Sprintf("the index counts %d mints, not %d", n, m.Mints)
	}
	for i, ref := range m.History {
		if ref.First > ref.Last || i > 0 && ref.First <= m.History[i-1].Last {
			return "the history files are not in order"
		}
	}
	return ""
}

// openHistory opens the history file that a snapshot means by ref. A missing one is damage: of
// the snapshot, which is not whole without it.
func openHistory(disk vfs.FS, dir string, ref HistoryRef) (*file, error) {
	if first, last, ok := parseHistoryName(ref.Name); !ok || first != ref.First || last != ref.Last {
		return nil, &DamagedError{ref.Name, 0, "a snapshot names a history file that is none"}
	}
	f, err := openFile(disk, dir, ref.Name, historyMagic)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &DamagedError{ref.Name, 0, "the file is missing"}
	}
	if err != nil {
		return nil, err
	}
	blocks := f.of(blockChunk)
	if len(blocks) == 0 || len(blocks) != len(f.chunks) {
		return nil, &DamagedError{f.name, f.end, "the index is not one of a history file"}
	}
	first, last := slotOf(&blocks[0].first), slotOf(&blocks[len(blocks)-1].last)
	if f.bytes != ref.Bytes || f.hash != ref.Hash || first != ref.First || last != ref.Last {
		return nil, &DamagedError{f.name, f.end, "it is another file than the one the snapshot was written with"}
	}
	return f, nil
}

// Meta returns what the snapshot is of. It must not be changed.
func (s *Snapshot) Meta() *Meta { return s.meta }

// Accounts calls visit for the accounts whose Pubkey.Prefix is from first to last, tombstones
// included, in key order, until it returns false. Each account is new and the visitor's.
// It may be called by several goroutines at once, with ranges that need not be those the
// snapshot was written in. Errors match ErrDamaged or are the disk's; what was visited before
// an error is of no use.
func (s *Snapshot) Accounts(first, last uint64, visit func(*ledger.Account) bool) error {
	return s.accounts(first, last, false, visit)
}

// PassAccounts does as Accounts, but an account is good only until visit returns: none is made
// anew.
func (s *Snapshot) PassAccounts(first, last uint64, visit func(*ledger.Account) bool) error {
	return s.accounts(first, last, true, visit)
}

func (s *Snapshot) accounts(first, last uint64, reuse bool, visit func(*ledger.Account) bool) error {
	return s.state.within(accountChunk, first, last, func(r *chunkReader, c *chunk) (bool, error) {
		r.made.Reuse = reuse
		return r.accounts(c, func(a *ledger.Account) bool {
			prefix := a.Pubkey.Prefix()
			return prefix < first || prefix <= last && visit(a)
		})
	})
}

// Mints does for mint facts what Accounts does for accounts.
func (s *Snapshot) Mints(first, last uint64, visit func(ledger.MintWrite) bool) error {
	return s.state.within(mintChunk, first, last, func(r *chunkReader, c *chunk) (bool, error) {
		return r.mints(c, func(m ledger.MintWrite) bool {
			prefix := m.Pubkey.Prefix()
			return prefix < first || prefix <= last && visit(m)
		})
	})
}

// within calls visit for each chunk of a kind that may hold keys with a prefix from first to
// last, in key order, until it returns false.
func (f *file) within(k kind, first, last uint64, visit func(*chunkReader, *chunk) (bool, error)) error {
	var r *chunkReader
	chunks := f.of(k)
	for i := range chunks {
		c := &chunks[i]
		if c.last.Prefix() < first {
			continue
		}
		if c.first.Prefix() > last {
			break
		}
		if r == nil {
			var err error
			if r, err = f.open(); err != nil {
				return err
			}
			defer r.close()
		}
		if more, err := visit(r, c); err != nil || !more {
			return err
		}
	}
	return nil
}

// Blocks calls visit for the finalized blocks held, from the retention floor on, oldest first,
// until it returns an error, which Blocks then returns. Other errors match ErrDamaged or are
// the disk's.
func (s *Snapshot) Blocks(visit func(HeldBlock) error) error {
	var newest *ledger.Block
	for _, f := range s.history {
		err := f.within(blockChunk, uint64(s.meta.Floor), math.MaxUint64, func(r *chunkReader, c *chunk) (bool, error) {
			err := r.blocks(c, func(b HeldBlock) error {
				if b.Block.Slot < s.meta.Floor {
					return nil
				}
				if newest != nil && (!b.HasPrevious || b.Previous != newest.Slot) {
					return f.damaged(c, fmt.Sprintf("the block at slot %d does not follow the one at %d", b.Block.Slot, newest.Slot))
				}
				newest = b.Block
				return visit(b)
			})
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return s.meta.checkNewest(s.state, newest)
}

// checkNewest holds the newest block of the history against the one the snapshot is at.
func (m *Meta) checkNewest(state *file, newest *ledger.Block) error {
	if m.BaseOnly && newest == nil {
		return nil
	}
	if newest == nil || newest.Slot != m.Block.Slot || newest.Blockhash != m.Block.Blockhash {
		return &DamagedError{state.name, state.end, "its history does not end at its newest block"}
	}
	return nil
}

// Verify reads and decodes everything, history included. All of it must be as the indexes say,
// and counts and state hash must come out as written. Errors match ErrDamaged, or are those of
// the disk or of ctx.
func (s *Snapshot) Verify(ctx context.Context, pace Pace) error {
	found, err := s.state.checkItems(ctx, pace, true)
	if err != nil {
		return err
	}
	if reason := found.differs(s.meta); reason != "" {
		return &DamagedError{s.state.name, s.state.end, reason}
	}
	if found.hash != s.meta.StateHash {
		return &DamagedError{s.state.name, s.state.end, fmt.Sprintf("the state hash is %s, not %s", found.hash, s.meta.StateHash)}
	}
	for _, f := range s.history {
		if _, err := f.checkItems(ctx, pace, false); err != nil {
			return err
		}
	}
	p := newPacer(pace)
	return s.Blocks(func(HeldBlock) error { return p.rest(ctx) })
}
