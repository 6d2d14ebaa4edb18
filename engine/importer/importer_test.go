package importer

import (
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestChecksOnceAllIsWritten looks at the phase at each write to the snapshot.
func TestChecksOnceAllIsWritten(t *testing.T) {
	disk := vfstest.NewMemory()
	d, _, err := datadir.OpenForImport(disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	i, err := New(Config{Dir: d})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 500 {
		w := ledger.AccountWrite{
			Pubkey: ledgertest.Key(n), Owner: ledger.TokenProgram, Lamports: 1, Known: ledger.FieldsAll, Mint: &ledger.Mint{Decimals: 6},
		}
		if err := i.Add(1, 1, &w); err != nil {
			t.Fatal(err)
		}
	}
	w := &writer{Import: i, ctx: t.Context(), at: Point{Slot: 100}}
	i.phase.Store(uint32(Writes))
	parts := w.parts(2)
	for _, p := range parts {
		if err := p.Accounts(func(*ledger.Account) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range parts {
		if got := i.Progress(); got.Phase != Writes || got.Sorted != 500 {
			t.Errorf("before all mints are written: %+v", got)
		}
		if err := p.Mints(func(ledger.MintWrite) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	if got := i.Progress(); got.Phase != Checks {
		t.Errorf("all is written: %+v", got)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}
