package importer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"ledgerd/engine/codec"
	"ledgerd/engine/extsort"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
)

const (
	// maxParts bounds the goroutines that sort; each needs its own memory.
	maxParts = 4
	// firstVersion is the version of an import's record, the first of the log.
	firstVersion ledger.Version = 1
)

// writer writes the snapshot of an import.
type writer struct {
	*Import
	ctx      context.Context
	at       Point
	lamports atomic.Uint64 // the sum over the newest records of all accounts, also of those the filter excludes
}

// write writes the snapshot, and the record that the snapshot is the state after.
func (i *Import) write(ctx context.Context, at Point) (done Result, err error) {
	d := i.c.Dir
	store, err := snapshot.OpenStore(d.FS(), d.SnapshotDir(), i.c.Logger)
	if err != nil {
		return done, err
	}
	w := &writer{Import: i, ctx: ctx, at: at}
	block := &ledger.Block{Slot: at.Slot, ParentSlot: at.ParentSlot, Blockhash: at.Blockhash, Height: at.Height, Status: ledger.Finalized}
	written, err := store.Write(ctx, snapshot.Meta{
		BaseOnly: true,
		Version:  firstVersion, Slot: at.Slot, Blockhash: at.Blockhash, Block: block, Floor: at.Slot + 1, BaseSlot: at.Slot,
	}, w.parts(min(maxParts, runtime.GOMAXPROCS(0))), nil, snapshot.Pace{})
	if err != nil {
		return done, err
	}
	if sum, want := ledger.Lamports(w.lamports.Load()), at.Capitalization; want.Known && sum != want.Value {
		return done, fmt.Errorf("its accounts hold %d lamports together, and its bank says that they hold %d: it is not whole", sum, want.Value)
	}
	m := written.Meta
	// The record has no accounts: if the snapshot is lost, the import must be repeated.
	err = i.log.Commit([]*ledger.Record{{
		Version: m.Version, Kind: ledger.BaseRecord, Slot: m.Slot, Base: &ledger.BaseState{Slot: m.Slot}, FirstSeq: 1, StateHash: m.StateHash,
	}})
	if err == nil {
		err = i.log.Close()
		i.log = nil
	}
	if err != nil {
		return done, fmt.Errorf("cannot begin the log: %w", err)
	}
	return Result{m.Accounts, m.Mints, m.StateHash}, nil
}

// parts splits the keys into n parts, each of which one goroutine writes.
func (w *writer) parts(n int) []snapshot.Part {
	parts := make([]snapshot.Part, n)
	for i := range parts {
		first, last := i*extsort.Partitions/n, (i+1)*extsort.Partitions/n-1
		mints := w.rows.NewSpool()
		parts[i] = snapshot.Part{
			Accounts: func(visit func(*ledger.Account) error) error { return w.accounts(first, last, mints, visit) },
			Mints:    func(visit func(ledger.MintWrite) error) error { return w.mintsOf(mints, visit) },
		}
	}
	return parts
}

// accounts calls visit for the accounts of a part that the filter admits, and adds the facts of all mints of the part to mints.
func (w *writer) accounts(first, last int, mints *extsort.Spool, visit func(*ledger.Account) error) error {
	var decoder codec.AccountDecoder
	return w.rows.EachNewest(first, last, func(row *extsort.Row) error {
		w.sorted.Add(1)
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if len(row.Value) == 0 { // the account is closed
			return nil
		}
		a, mint, err := decoder.Decode(row.Value)
		if err != nil {
			return fmt.Errorf("a sorted account cannot be read back: %w", err)
		}
		if n := uint64(a.Lamports); w.lamports.Add(n) < n {
			return errors.New("its accounts hold 2^64 lamports or more together: it is not whole")
		}
		if len(mint) > 0 {
			if err := mints.Add(&extsort.Row{Key: row.Key, Value: mint}); err != nil {
				return err
			}
		}
		a.Provenance = ledger.BaseProvenance(w.at.Slot)
		if a.Known == 0 { // it is excluded by the filter
			return nil
		}
		return visit(a)
	})
}

// mintsOf calls visit for the mint facts of a part.
func (w *writer) mintsOf(mints *extsort.Spool, visit func(ledger.MintWrite) error) error {
	return mints.Each(func(row *extsort.Row) error {
		m, _, err := codec.DecodeMint(row.Value)
		if err != nil {
			return fmt.Errorf("the facts of a mint cannot be read back: %w", err)
		}
		return visit(ledger.MintWrite{Pubkey: row.Key, Mint: *ledger.MergeMint(nil, m, ledger.BaseProvenance(w.at.Slot))})
	})
}
