package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Snapshot is a snapshot whose files are whole as far as their indexes tell. It is immutable.
type Snapshot struct {
	meta    *Meta
	state   *file
	history []*file // as Meta names them; Salvage leaves nil where one is damaged
	store   *Store
}

// Open opens a snapshot and checks everything that the indexes of its files tell: that the files are
// complete, fit together, and are those it was written with. Errors match ErrDamaged, match
// fs.ErrNotExist if the snapshot was pruned, are a *vfs.FormatError, or the disk's.
func (s *Store) Open(i Info) (*Snapshot, error) { return s.open(i, false) }

// Salvage is Open for a start: damage of a history file other than the newest, or a sector of it that cannot be read, loses only
// the blocks of that file, see Blocks. The newest file must be whole, since it holds the block that the snapshot is of; its
// blocks can be had from an older snapshot and the log.
func (s *Store) Salvage(i Info) (*Snapshot, error) { return s.open(i, true) }

func (s *Store) open(i Info, salvage bool) (*Snapshot, error) {
	state, meta, err := openState(s.fs, s.dir, i.Name)
	if err != nil {
		return nil, err
	}
	found := &Snapshot{meta, state, make([]*file, len(meta.History)), s}
	for n, ref := range meta.History {
		found.history[n], err = openHistory(s.fs, s.dir, ref)
		if err != nil && salvage {
			err = s.lose(ref, n == len(meta.History)-1, err)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot open the history of %s: %w", i.Name, err)
		}
	}
	return found, nil
}

// openState opens a state file and reads its meta.
func openState(disk vfs.FS, dir, name string) (*file, *Meta, error) {
	f, err := openFile(disk, dir, name, snapshotMagic)
	if err != nil {
		return nil, nil, err
	}
	if !f.hasMeta() || len(f.of(accountChunk))+len(f.of(mintChunk))+1 != len(f.chunks) {
		return nil, nil, &DamagedError{name, f.end, "the index is not one of a snapshot"}
	}
	var m *Meta
	meta, err := f.readMeta(func(raw []byte) (err error) {
		m, err = decodeMeta(raw)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if reason := m.check(f); reason != "" {
		return nil, nil, f.damaged(meta, reason)
	}
	return f, m, nil
}

// check returns why the meta does not fit the file it was read from, "" if it does.
func (m *Meta) check(f *file) string {
	// A file that is not finished has a temporary name.
	if slot, version, ok := parseStateName(strings.TrimSuffix(f.name, vfs.TemporarySuffix)); !ok || slot != m.Slot || version != m.Version {
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

// openHistory opens the history file that a snapshot names. A missing one is damage of
// the snapshot, which is not whole without it.
func openHistory(disk vfs.FS, dir string, ref HistoryRef) (*file, error) {
	if first, last, ok := parseBlocksName(historyPrefix, ref.Name); !ok || first != ref.First || last != ref.Last {
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

// Meta returns the meta of the snapshot. The caller must not change it.
func (s *Snapshot) Meta() *Meta { return s.meta }

// Accounts calls visit for the accounts whose Pubkey.Prefix is from first to last, tombstones
// included, in key order, until visit returns false. An account is valid until visit returns.
// Several goroutines may call Accounts at once, with ranges that need not be those the
// snapshot was written in. Errors match ErrDamaged or are the disk's; after an error the caller
// must discard what was visited.
func (s *Snapshot) Accounts(first, last uint64, visit func(*ledger.Account) bool) error {
	return s.state.within(accountChunk, first, last, func(r *chunkReader, c *chunk) error {
		return r.accounts(c, between(first, last, accountKey, visit))
	})
}

// Mints does for mint facts what Accounts does for accounts.
func (s *Snapshot) Mints(first, last uint64, visit func(ledger.MintWrite) bool) error {
	return s.state.within(mintChunk, first, last, func(r *chunkReader, c *chunk) error {
		return r.mints(c, between(first, last, mintKey, visit))
	})
}

// within calls visit for each chunk of a kind that may hold keys with a prefix from first to
// last, in key order, until visit returns an error, of which errStop is none.
func (f *file) within(k kind, first, last uint64, visit func(*chunkReader, *chunk) error) error {
	chunks := slices.DeleteFunc(slices.Clone(f.of(k)), func(c chunk) bool {
		return c.last.Prefix() < first || c.first.Prefix() > last
	})
	if len(chunks) == 0 {
		return nil
	}
	r, err := f.open()
	if err != nil {
		return err
	}
	defer r.close()
	for i := range chunks {
		if err := visit(r, &chunks[i]); err != nil {
			if err == errStop {
				return nil
			}
			return err
		}
	}
	return nil
}

// Blocks calls visit for the finalized blocks held, from the retention floor on, oldest first,
// until visit returns an error, which Blocks then returns. Other errors match ErrDamaged or are
// the disk's.
//
// If lost is not nil, as it must be after Salvage, a damaged history file other than the newest is no error: Blocks calls lost for it and
// goes on with the next one. What it visited of such a file does not count.
func (s *Snapshot) Blocks(visit func(HeldBlock) error, lost func(HistoryRef)) error {
	return s.blocks(s.meta.Floor, visit, lost)
}

// blocks is Blocks from a slot on.
func (s *Snapshot) blocks(from ledger.Slot, visit func(HeldBlock) error, lost func(HistoryRef)) error {
	var newest *ledger.Block
	var previous ledger.Opt[ledger.Slot] // the slot of the block before, which may be lost
	for n, f := range s.history {
		ref := s.meta.History[n]
		if f != nil {
			var err error
			if newest, err = f.blocksFrom(from, previous, visit); err != nil && lost != nil { // Salvage did not find it
				f, err = nil, s.store.lose(ref, n == len(s.history)-1, err)
			}
			if err != nil {
				return err
			}
		}
		if f == nil {
			lost(ref)
		}
		previous = ledger.Some(ref.Last)
	}
	m := s.meta
	if newest == nil && m.BaseOnly {
		return nil
	}
	if newest == nil || newest.Slot != m.Block.Slot || newest.Blockhash != m.Block.Blockhash {
		return &DamagedError{s.state.name, s.state.end, "its history does not end at its newest block"}
	}
	return nil
}

// blocksFrom visits the blocks of a history file from a slot on and returns the newest. The parent of the first block must be at
// slot previous.
func (f *file) blocksFrom(from ledger.Slot, previous ledger.Opt[ledger.Slot], visit func(HeldBlock) error) (newest *ledger.Block, err error) {
	err = f.within(blockChunk, uint64(from), math.MaxUint64, func(r *chunkReader, c *chunk) error {
		return r.blocks(c, func(b HeldBlock) error {
			if b.Block.Slot < from {
				return nil
			}
			if previous.Known && b.Previous != previous {
				return f.damaged(c, fmt.Sprintf("the block at slot %d does not follow the one at %d", b.Block.Slot, previous.Value))
			}
			newest, previous = b.Block, ledger.Some(b.Block.Slot)
			return visit(b)
		})
	})
	return newest, err
}

// Verify reads and decodes everything, history included, and compares it with the indexes, the counts
// and the state hash. Errors match ErrDamaged, or are those of the disk or of ctx.
func (s *Snapshot) Verify(ctx context.Context, pace Pace) error {
	if err := s.VerifyState(ctx, pace); err != nil {
		return err
	}
	p := newPacer(pace)
	return s.blocks(0, func(HeldBlock) error { return p.rest(ctx) }, nil) // those below the floor, too
}

// VerifyState is Verify without the history. If all bytes are as they were written and only the counts or the state hash differ,
// the error matches ErrState too.
func (s *Snapshot) VerifyState(ctx context.Context, pace Pace) error {
	found, err := s.state.checkItems(ctx, pace)
	if err != nil {
		return err
	}
	if want := (tally{s.meta.Accounts, s.meta.Tombstones, s.meta.Mints, s.meta.StateHash}); found != want {
		return fmt.Errorf("%w: %w", ErrState, &DamagedError{s.state.name, s.state.end, fmt.Sprintf("it holds %v, its meta says %v", found, want)})
	}
	return nil
}
