package importer

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestChecksOnceAllIsWritten looks at the phase at each disk call of an import.
func TestChecksOnceAllIsWritten(t *testing.T) {
	disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
	d, _, err := datadir.OpenForImport(disk, "data")
	ledgertest.Must(t, err)
	defer d.Close()
	i, err := New(Config{Dir: d, SegmentBytes: 64 << 10})
	ledgertest.Must(t, err)
	for n := range 500 {
		w := ledger.AccountWrite{Pubkey: ledgertest.Key(n), Owner: ledger.TokenProgram, Lamports: 1, Known: ledger.FieldsAll, Mint: &ledger.Mint{Decimals: 6}}
		ledgertest.Must(t, i.Add(1, 1, &w))
	}
	var mu sync.Mutex // several goroutines write
	phases := []Phase{i.Progress().Phase}
	disk.Arm(vfstest.Plan{Before: func(c vfstest.Call) {
		mu.Lock()
		defer mu.Unlock()
		got := i.Progress()
		phases = append(phases, got.Phase)
		if read := c.Kind == vfstest.KindReadAt && filepath.Ext(c.Name) == ".state"; read && (got.Phase != Checks || got.Sorted != 500) {
			t.Errorf("%v at %+v", c, got)
		}
	}})
	_, err = i.Finish(t.Context(), Point{Slot: 100})
	ledgertest.Must(t, err)
	if phases = slices.Compact(phases); len(phases) != 3 || phases[1] != Writes || phases[2] != Checks {
		t.Errorf("phases %v", phases)
	}
}
