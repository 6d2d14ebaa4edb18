package engine

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"ledgerd/engine/gather"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
)

// importVersion is the record of an import: the first, and the only one until a block comes.
const importVersion ledger.Version = 1

// importWriter writes the snapshot of an import, and the record it is the state after.
type importWriter struct {
	*Import
	ctx context.Context
	at  ImportPoint

	mu        sync.Mutex
	left      int    // parts whose accounts are not all written
	mintsLeft int    // parts whose mints are not
	lamports  uint64 // of all newest accounts, held or not
	overflow  uint64
}

func (w *importWriter) write() (done Imported, err error) {
	d := w.c.Dir
	store, err := snapshot.OpenStore(d.FS(), d.SnapshotDir(), w.c.Logger)
	if err != nil {
		return done, err
	}
	parts, err := w.parts(w.left)
	if err != nil {
		return done, err
	}
	block := &ledger.Block{Slot: w.at.Slot, ParentSlot: w.at.ParentSlot, Blockhash: w.at.Blockhash, Height: w.at.Height, Status: ledger.Finalized}
	written, err := store.WriteBase(w.ctx, snapshot.Meta{
		Version: importVersion, Slot: w.at.Slot, Blockhash: w.at.Blockhash, Block: block, Floor: w.at.Slot + 1, BaseSlot: w.at.Slot,
	}, parts, snapshot.Pace{})
	if err != nil {
		return done, err
	}
	m := written.Meta
	if err := w.log(m); err != nil {
		return done, err
	}
	return Imported{m.Accounts, m.Mints, written.Bytes, m.StateHash}, nil
}

// log writes the record that the snapshot is the state after. What it taught is in the snapshot
// alone: an import can be made again.
func (w *importWriter) log(m *snapshot.Meta) error {
	l := w.Import.log
	err := l.Commit([]*ledger.Record{{
		Version: m.Version, Kind: ledger.BaseRecord, Slot: m.Slot, Base: &ledger.BaseState{Slot: m.Slot}, FirstSeq: 1, StateHash: m.StateHash,
	}})
	if err != nil {
		return fmt.Errorf("cannot begin the log: %w", err)
	}
	w.Import.log = nil
	if err := l.Close(); err != nil {
		return fmt.Errorf("cannot begin the log: %w", err)
	}
	return nil
}

// parts splits the keys among so many goroutines.
func (w *importWriter) parts(n int) ([]snapshot.Part, error) {
	parts := make([]snapshot.Part, n)
	for i := range parts {
		first, last := i*gather.Piles/n, (i+1)*gather.Piles/n-1
		mints, err := w.gather(fmt.Sprintf("mints-%d", i))
		if err != nil {
			return nil, err
		}
		w.mints = append(w.mints, mints)
		parts[i] = snapshot.Part{
			Accounts: func(visit func(*ledger.Account) bool) error { return w.accounts(first, last, mints, visit) },
			Mints:    func(visit func(ledger.MintWrite) bool) error { return w.mintsOf(mints, visit) },
		}
	}
	return parts, nil
}

// errEnough says that whoever visits wants no more.
var errEnough = errors.New("enough")

// accounts visits the accounts that are held, and keeps the mint facts of all for later.
func (w *importWriter) accounts(first, last int, mints *gather.Gathering, visit func(*ledger.Account) bool) error {
	decoder := &ledger.AccountDecoder{Reuse: true}
	taught := ledger.TaughtByBase(w.at.Slot)
	var sum, over, seen uint64
	err := w.rows.Newest(first, last, func(row *gather.Row) error {
		r, err := decodeImportRow(row.Value, decoder)
		if err != nil {
			return err
		}
		if seen++; seen%progressStep == 0 {
			w.sorted.Add(progressStep)
			if err := w.ctx.Err(); err != nil {
				return err
			}
		}
		var carry uint64
		sum, carry = bits.Add64(sum, r.lamports, 0)
		over += carry
		if r.mint != nil {
			fact := gather.Row{Key: row.Key, Value: ledger.AppendMint(nil, ledger.MergeMint(nil, *r.mint, taught))}
			if err := mints.Add(&fact); err != nil {
				return err
			}
		}
		if r.account == nil {
			return nil
		}
		if r.account.Taught = taught; !visit(r.account) {
			return errEnough
		}
		return nil
	})
	w.sorted.Add(seen % progressStep)
	if err == errEnough {
		return nil
	}
	if err != nil {
		return err
	}
	return w.counted(sum, over)
}

// counted adds what a part's accounts hold. The last one sees whether it is what the ledger says.
func (w *importWriter) counted(sum, over uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var carry uint64
	w.lamports, carry = bits.Add64(w.lamports, sum, 0)
	w.overflow += over + carry
	if w.left--; w.left > 0 {
		return nil
	}
	if want := w.at.Capitalization; want.Known && (w.overflow != 0 || w.lamports != uint64(want.Value)) {
		return fmt.Errorf("its accounts hold %d lamports together, and its bank says that they hold %d: it is not whole", w.lamports, want.Value)
	}
	return nil
}

// mintsOf visits the mint facts of a part.
func (w *importWriter) mintsOf(mints *gather.Gathering, visit func(ledger.MintWrite) bool) error {
	if err := mints.Finish(); err != nil {
		return err
	}
	err := mints.Newest(0, gather.Piles-1, func(row *gather.Row) error {
		m, rest, err := ledger.DecodeMint(row.Value)
		if err != nil || len(rest) > 0 {
			return errImportRow
		}
		if !visit(ledger.MintWrite{Pubkey: row.Key, Mint: m}) {
			return errEnough
		}
		return nil
	})
	switch err {
	case errEnough:
		return nil
	case nil:
		w.written()
	}
	return err
}

// written notes that a part is written. Behind the last one all of it is read back.
func (w *importWriter) written() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mintsLeft--; w.mintsLeft == 0 {
		w.phase.Store(uint32(ImportChecks))
	}
}
