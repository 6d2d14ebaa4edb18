package importer

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"ledgerd/engine/codec"
	"ledgerd/engine/extsort"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
)

// firstVersion is the version of an import's record, the first of the log.
const firstVersion ledger.Version = 1

// writer writes the snapshot of an import, and the record that the snapshot is the state after.
type writer struct {
	*Import
	ctx context.Context
	at  Point

	mu        sync.Mutex
	left      int    // parts whose accounts are not yet written
	mintsLeft int    // parts whose mints are not yet written
	lamports  uint64 // the sum over the newest records of all accounts, also of those the filter excludes
	overflow  uint64 // the sum's upper 64 bits
}

func (w *writer) write() (done Result, err error) {
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
		Version: firstVersion, Slot: w.at.Slot, Blockhash: w.at.Blockhash, Block: block, Floor: w.at.Slot + 1, BaseSlot: w.at.Slot,
	}, parts, snapshot.Pace{})
	if err != nil {
		return done, err
	}
	m := written.Meta
	if err := w.beginLog(m); err != nil {
		return done, err
	}
	return Result{m.Accounts, m.Mints, written.Bytes, m.StateHash}, nil
}

// beginLog writes the record that the snapshot is the state after. The record has no accounts: if the snapshot is
// lost, the import must be repeated.
func (w *writer) beginLog(m *snapshot.Meta) error {
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

// parts splits the keys into n parts, each of which one goroutine writes.
func (w *writer) parts(n int) ([]snapshot.Part, error) {
	parts := make([]snapshot.Part, n)
	for i := range parts {
		first, last := i*extsort.Partitions/n, (i+1)*extsort.Partitions/n-1
		mints, err := w.sorter(fmt.Sprintf("mints-%d", i))
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

// sortedStep is how many accounts are sorted between two checks of ctx and two updates of Progress.
const sortedStep = 4096

// errStop stops a walk after visit returned false.
var errStop = errors.New("stop")

// accounts calls visit for the accounts of a part that the filter admits, and adds the facts of all mints of the part to mints.
func (w *writer) accounts(first, last int, mints *extsort.Sorter, visit func(*ledger.Account) bool) error {
	decoder := new(codec.AccountDecoder)
	provenance := ledger.BaseProvenance(w.at.Slot)
	var sum, over, count uint64
	err := w.rows.EachNewest(first, last, func(row *extsort.Row) error {
		r, err := decodeRow(row.Value, decoder)
		if err != nil {
			return err
		}
		if count++; count%sortedStep == 0 {
			w.sorted.Add(sortedStep)
			if err := w.ctx.Err(); err != nil {
				return err
			}
		}
		var carry uint64
		sum, carry = bits.Add64(sum, r.lamports, 0)
		over += carry
		if r.mint != nil {
			fact := extsort.Row{Key: row.Key, Value: codec.AppendMint(nil, ledger.MergeMint(nil, *r.mint, provenance))}
			if err := mints.Add(&fact); err != nil {
				return err
			}
		}
		if r.account == nil {
			return nil
		}
		if r.account.Provenance = provenance; !visit(r.account) {
			return errStop
		}
		return nil
	})
	w.sorted.Add(count % sortedStep)
	if err == errStop {
		return nil
	}
	if err != nil {
		return err
	}
	return w.addLamports(sum, over)
}

// addLamports adds the sum of a part's lamports. After the last part it compares the total with Point.Capitalization.
func (w *writer) addLamports(sum, over uint64) error {
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

// mintsOf calls visit for the mint facts of a part.
func (w *writer) mintsOf(mints *extsort.Sorter, visit func(ledger.MintWrite) bool) error {
	err := mints.EachNewest(0, extsort.Partitions-1, func(row *extsort.Row) error {
		m, rest, err := codec.DecodeMint(row.Value)
		if err != nil || len(rest) > 0 {
			return errRow
		}
		if !visit(ledger.MintWrite{Pubkey: row.Key, Mint: m}) {
			return errStop
		}
		return nil
	})
	switch err {
	case errStop:
		return nil
	case nil:
		w.partWritten()
	}
	return err
}

// partWritten counts a written part. After the last one the phase is Checks.
func (w *writer) partWritten() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mintsLeft--; w.mintsLeft == 0 {
		w.phase.Store(uint32(Checks))
	}
}
