package engine

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"ledgerd/engine/datadir"
	"ledgerd/engine/importer"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// told is one account record of an archive.
type told struct {
	slot    ledger.Slot
	version uint64
	write   ledger.AccountWrite
}

// randomTold makes records in no order, many of each key, half of which are alike up to the last byte.
func randomTold(r *rand.Rand, n int) []told {
	out := make([]told, n)
	for i := range out {
		k := key(r.IntN(1 + n/4))
		if k[0]%2 == 0 {
			clear(k[:31])
		}
		out[i] = told{ledger.Slot(1 + r.IntN(100)), uint64(r.IntN(2)), owned(k, ledger.Lamports(1+r.IntN(1000)), testPrograms()[r.IntN(5)])}
		w := &out[i].write
		w.RentEpoch, w.Executable = r.Uint64(), r.IntN(9) == 0
		switch {
		case r.IntN(4) == 0:
			*w = ledger.AccountWrite{Pubkey: k}
		case ledger.IsTokenProgram(w.Owner) && r.IntN(3) > 0:
			w.Token = holding(k, key(r.IntN(9)), key(r.IntN(5)), r.Uint64()).Token
		case ledger.IsTokenProgram(w.Owner):
			w.Mint = &ledger.Mint{Decimals: 6, Supply: ledger.Some(r.Uint64()), Scaled: ledger.Some(r.IntN(2) == 0)}
		}
		w.SetData(make([]byte, []int{0, 100, 1 << 17}[r.IntN(3)]), allData)
	}
	return out
}

// allData has the data of all accounts held.
var allData, _ = ledger.ParseDataPrograms("all")

// testSegmentBytes is the room of the log.
const testSegmentBytes = 64 << 10

// importInto imports records into a directory on a disk.
func importInto(t testing.TB, disk vfs.FS, all []told, at importer.Point, c importer.Config) (done importer.Result, err error) {
	t.Helper()
	d, _, err := datadir.OpenForImport(disk, "data")
	if err != nil {
		return done, err
	}
	defer d.Close()
	c.Dir, c.Logger, c.SegmentBytes = d, slog.New(slog.DiscardHandler), testSegmentBytes
	i, err := importer.New(c)
	if err != nil {
		return done, err
	}
	for n := range all {
		if err == nil {
			err = i.Add(all[n].slot, all[n].version, &all[n].write)
		}
	}
	if err == nil {
		done, err = i.Finish(t.Context(), at)
	}
	if err != nil {
		i.Close()
	}
	return done, err
}

// imported returns a disk with the import of someTold at importPoint.
func imported(t testing.TB) *vfstest.Memory {
	t.Helper()
	disk := vfstest.NewMemory()
	_, err := importInto(t, disk, someTold(), importPoint(), importer.Config{})
	must(t, err)
	return disk
}

func someTold() []told {
	return []told{{5, 0, lamports(key(1), 10)}, {7, 0, lamports(key(1), 20)}, {9, 0, lamports(key(2), 5)}, {9, 0, owned(key(3), 7, key(9))}}
}

func importPoint() importer.Point {
	return importer.Point{Slot: 100, ParentSlot: 98, Blockhash: hash(100 * 100), Height: ledger.Some(uint64(90))}
}

// at100 is the block that stands at the slot of importPoint.
var at100 = &ledger.Block{Slot: 100, Blockhash: hash(100 * 100)}

// serving runs a node without a source on a disk.
func serving(t *testing.T, disk vfs.FS, shards int) *subject {
	t.Helper()
	n := startSource(t, nil, onDisk(t, disk, Config{Shards: shards}))
	synctest.Wait()
	if n.hasEnded() {
		t.Fatal(n.err)
	}
	return n
}

// TestImportKeepsTheNewestOfEachAccount imports records in any order, with filters and without, and holds what a node then
// serves against one whose source showed the newest of each.
func TestImportKeepsTheNewestOfEachAccount(t *testing.T) {
	for seed := range uint64(sample(40, 8, 4)) {
		bubbletest.Test(t, func(t *testing.T) {
			r := seeded(t, seed)
			all := randomTold(r, 1+r.IntN(200))
			var filter *ledger.Filter
			data := []*ledger.DataPrograms{nil, allData}[r.IntN(2)]
			if seed%2 == 1 {
				filter = ledger.NewFilter([]ledger.Pubkey{ledger.TokenProgram}, []ledger.Pubkey{key(1), key(2)})
			}
			newest := make(map[ledger.Pubkey]told) // deletions too
			for _, n := range all {
				was, ok := newest[n.write.Pubkey]
				if !ok || n.slot > was.slot || n.slot == was.slot && n.version >= was.version {
					newest[n.write.Pubkey] = n
				}
			}
			sum, base := ledger.Lamports(0), &ledger.BaseState{Slot: 100}
			for _, n := range newest {
				w := n.write
				if sum += w.Lamports; w.Lamports == 0 {
					continue
				}
				if w.Mint != nil {
					base.Mints = append(base.Mints, ledger.MintWrite{Pubkey: w.Pubkey, Mint: *w.Mint})
				}
				w.Mint, w.Known = nil, w.Known&^ledger.FieldMint
				base.Accounts = append(base.Accounts, w)
			}
			disk := vfstest.NewMemory()
			done, err := importInto(t, disk, all, importer.Point{Slot: 100, Blockhash: hash(1), Capitalization: ledger.Some(sum)},
				importer.Config{Filter: filter, Data: data, MemoryBytes: []int64{500, 4000, 0}[r.IntN(3)]})
			must(t, err)
			taught := startNode(t, live(), bound(t, Config{Shards: 2}, filter, data))
			taught.send(base, rootBlock(200))
			served := serving(t, disk, 1+r.IntN(4))
			if got, want := served.Head().StateHash, taught.Head().StateHash; got != want || done.StateHash != want {
				t.Fatalf("state hash %s, import says %s, want %s", got, done.StateHash, want)
			}
			accounts := 0
			for _, s := range taught.Stats().Shards {
				accounts += int(s.Accounts)
			}
			if int(done.Accounts) != accounts || int(done.Mints) != len(base.Mints) || served.Head().Tips[0].Slot != 100 {
				t.Errorf("imported %+v at slot %d, want %d accounts and %d mints", done, served.Head().Tips[0].Slot, accounts, len(base.Mints))
			}
			must(t, sameAccounts(taught.Engine, served.Engine, 1+len(all)/4))
			mustVerify(t, disk)
			mustHoldNothingElse(t, disk)
		})
	}
}

// mustHoldNothingElse fails the test if an import left more than it should.
func mustHoldNothingElse(t *testing.T, disk *vfstest.Memory) {
	t.Helper()
	if left := slices.DeleteFunc(disk.Paths(), func(path string) bool { return !strings.Contains(path, "import-") }); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// TestUnfinishedImportIsRefusedAndStartedAnew cuts the power at many places of an import.
func TestUnfinishedImportIsRefusedAndStartedAnew(t *testing.T) {
	all := randomTold(seeded(t, 7), 40)
	want, err := importInto(t, vfstest.NewMemory(), all, importPoint(), importer.Config{})
	must(t, err)
	refusedTimes := 0
	crashAtEveryCall(t, vfstest.NewMemory(), sample(7, 31, 61), []float64{0},
		func(_ int, disk vfs.FS) error {
			_, err := importInto(t, disk, all, importPoint(), importer.Config{MemoryBytes: 1000})
			return err
		},
		func(call int, left *vfstest.Memory) {
			dir, err := datadir.OpenOn(left, "data")
			if err == nil { // nothing was begun, or all was done
				note := dir.Imported()
				dir.Close()
				if note != nil {
					return
				}
			} else if !errors.Is(err, datadir.ErrUnfinishedImport) {
				t.Fatal(err)
			} else {
				refusedTimes++
			}
			got, err := importInto(t, left, all, importPoint(), importer.Config{})
			if err != nil || got.StateHash != want.StateHash {
				t.Errorf("anew: %+v, %v", got, err)
			}
			mustHoldNothingElse(t, left)
		})
	if refusedTimes == 0 {
		t.Error("no cut left an unfinished import")
	}
}

// TestAnotherSumThanTheBanksIsRefused has accounts whose sum, modulo 2^64, is the one that the archive's bank states, and an account that was
// closed, of which the archive has an older record and not that of the closing.
func TestAnotherSumThanTheBanksIsRefused(t *testing.T) {
	p := importPoint()
	p.Capitalization = ledger.Some(ledger.Lamports(33))
	for what, all := range map[string][]told{
		"it overflows": {{1, 0, lamports(key(1), 1<<63)}, {1, 0, lamports(key(2), 1<<63)}, {1, 0, lamports(key(3), 33)}},
		"one revived":  {{1, 0, lamports(key(1), 7)}, {2, 0, lamports(key(3), 33)}},
	} {
		_, err := importInto(t, vfstest.NewMemory(), all, p, importer.Config{})
		ledgertest.ErrorSays(t, err, "lamports", what)
	}
}

// F13: an import on a full disk says so, and can be started anew with space.
func TestImportTellsOfAFullDisk(t *testing.T) {
	all := randomTold(seeded(t, 3), 3000)
	for _, capacity := range []int64{1, 100, 16 << 10, testSegmentBytes + 1<<10, testSegmentBytes + 16<<10, testSegmentBytes + 32<<10} {
		disk := vfstest.NewMemory()
		disk.SetCapacity(capacity)
		_, err := importInto(t, disk, all, importPoint(), importer.Config{})
		if !vfs.IsFull(err) || capacity > 100 && !strings.Contains(err.Error(), "the disk is full") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d bytes: %v", capacity, err)
		}
		disk.SetCapacity(1 << 40)
		if _, err := importInto(t, disk, all, importPoint(), importer.Config{}); err != nil {
			t.Errorf("with space again after %d bytes: %v", capacity, err)
		}
	}
}
