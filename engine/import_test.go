package engine

import (
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"ledgerd/engine/datadir"
	"ledgerd/engine/importer"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// told is one account record of an archive.
type told struct {
	slot    ledger.Slot
	version uint64
	write   ledger.AccountWrite
}

// randomTold makes records in no order, many of each key.
func randomTold(r *rand.Rand, n int) []told {
	out := make([]told, n)
	for i := range out {
		k := key(r.IntN(1 + n/4))
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
	}
	return out
}

// newestOf keeps the newest of each key in a map, deletions too.
func newestOf(all []told) map[ledger.Pubkey]told {
	newest := make(map[ledger.Pubkey]told)
	for _, n := range all {
		was, ok := newest[n.write.Pubkey]
		if !ok || n.slot > was.slot || n.slot == was.slot && n.version >= was.version {
			newest[n.write.Pubkey] = n
		}
	}
	return newest
}

// testSegmentBytes is the room of the log.
const testSegmentBytes = 64 << 10

// importInto imports records into a directory on a disk.
func importInto(t testing.TB, disk vfs.FS, all []told, at importer.Point, c importer.Config) (importer.Result, error) {
	t.Helper()
	d, _, err := datadir.OpenForImportOn(disk, "data")
	if err != nil {
		return importer.Result{}, err
	}
	defer d.Close()
	c.Dir, c.Logger, c.SegmentBytes = d, slog.New(slog.DiscardHandler), testSegmentBytes
	i, err := importer.New(c)
	if err != nil {
		return importer.Result{}, err
	}
	for n := range all {
		if err := i.Add(all[n].slot, all[n].version, &all[n].write); err != nil {
			i.Close()
			return importer.Result{}, err
		}
	}
	done, err := i.Finish(t.Context(), at)
	if err != nil {
		i.Close()
	}
	return done, err
}

// serving runs a node without a source on a disk.
func serving(t *testing.T, disk vfs.FS, shards int) *subject {
	t.Helper()
	n := &subject{t: t, Engine: New(onDisk(t, disk, Config{Shards: shards, Logger: slog.New(slog.DiscardHandler)})), ended: make(chan struct{})}
	go func() {
		defer close(n.ended)
		n.err = n.Run(t.Context())
	}()
	synctest.Wait()
	if n.hasEnded() {
		t.Fatal(n.err)
	}
	return n
}

// TestImportKeepsTheNewestOfEachAccount imports records in any order and holds what a node then
// serves against a map, with filters and without.
func TestImportKeepsTheNewestOfEachAccount(t *testing.T) {
	for seed := range uint64(rounds(t, 8)) {
		bubble.Test(t, func(t *testing.T) {
			r := seeded(t, seed)
			all := randomTold(r, 1+r.IntN(200))
			var filter *ledger.Filter
			if seed%2 == 1 {
				filter = ledger.NewFilter([]ledger.Pubkey{ledger.TokenProgram}, []ledger.Pubkey{key(1), key(2)})
			}
			newest, sum := newestOf(all), ledger.Lamports(0)
			base := &ledger.BaseState{Slot: 100}
			for _, n := range newest {
				sum += n.write.Lamports
				w := n.write
				if w.Lamports == 0 {
					continue
				}
				if w.Mint != nil {
					base.Mints = append(base.Mints, ledger.MintWrite{Pubkey: w.Pubkey, Mint: *w.Mint})
				}
				w.Mint, w.Known = nil, w.Known&^ledger.FieldMint
				if filter == nil || w.Owner == ledger.TokenProgram || w.Pubkey == key(1) || w.Pubkey == key(2) {
					base.Accounts = append(base.Accounts, w)
				}
			}
			disk := vfstest.NewMemory()
			done, err := importInto(t, disk, all, importer.Point{Slot: 100, Blockhash: hash(1), Capitalization: ledger.Some(sum)},
				importer.Config{Filter: filter, MemoryBytes: []int64{500, 4000, 0}[r.IntN(3)]})
			if err != nil {
				t.Fatal(err)
			}
			taught := startNode(t, live(), Config{Shards: 2})
			taught.send(base, rootBlock(200))
			served := serving(t, disk, 1+r.IntN(4))
			if got, want := served.Head().StateHash, taught.Head().StateHash; got != want || done.StateHash != want {
				t.Fatalf("state hash %s, import says %s, want %s", got, done.StateHash, want)
			}
			if int(done.Accounts) != len(base.Accounts) || int(done.Mints) != len(base.Mints) || served.Head().Tips[0].Slot != 100 {
				t.Errorf("imported %+v at slot %d, want %d accounts and %d mints", done, served.Head().Tips[0].Slot, len(base.Accounts), len(base.Mints))
			}
			for n := range 1 + len(all)/4 {
				mustAnswerImported(t, served, key(n), newest, filter, base)
			}
			mustVerify(t, disk)
			mustHoldNothingElse(t, disk)
			taught.mustStop()
		})
	}
}

// mustAnswerImported asks for one account.
func mustAnswerImported(t *testing.T, n *subject, k ledger.Pubkey, newest map[ledger.Pubkey]told, f *ledger.Filter, base *ledger.BaseState) {
	t.Helper()
	a, _, err := n.Account(ledger.Query{}, k)
	for i := range base.Accounts {
		w := &base.Accounts[i]
		if w.Pubkey != k {
			continue
		}
		if err != nil || a.Lamports != w.Lamports || a.Owner != w.Owner || a.RentEpoch != w.RentEpoch || a.Executable != w.Executable || a.Unknown() != 0 {
			t.Errorf("account %+v, %v, want %+v", a, err, w)
		}
		return
	}
	want := ledger.AccountNotFound
	if f != nil {
		want = ledger.AccountNotIndexed
	}
	if why, ok := absence(err); !ok || why.Absence != want {
		t.Errorf("an account whose newest record is %+v: %v, want absence %d", newest[k], err, want)
	}
}

// mustHoldNothingElse fails the test if an import left more than it should.
func mustHoldNothingElse(t *testing.T, disk vfs.FS) {
	t.Helper()
	for _, of := range []string{"import-accounts", "import-mints-0", "import-mints-1"} {
		if names, err := disk.List(filepath.Join("data", of)); err == nil && len(names) > 0 {
			t.Errorf("%s is left with %v", of, names)
		}
	}
}

func someTold() []told {
	return []told{{5, 0, lamports(key(1), 10)}, {7, 0, lamports(key(1), 20)}, {9, 0, lamports(key(2), 5)}, {9, 0, owned(key(3), 7, key(9))}}
}

func importPoint() importer.Point {
	return importer.Point{Slot: 100, ParentSlot: 98, Blockhash: hash(100 * 100), Height: ledger.Some(uint64(90))}
}

// at100 is the block that stands at the slot of importPoint.
var at100 = &ledger.Block{Slot: 100, Blockhash: hash(100 * 100)}

// TestImportedNodeGoesOnWithTheNextBlock follows forks, statuses and restarts from an import on.
func TestImportedNodeGoesOnWithTheNextBlock(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		p := importPoint()
		if _, err := importInto(t, disk, someTold(), p, importer.Config{}); err != nil {
			t.Fatal(err)
		}
		info := live()
		info.Identity, info.Complete = "", false
		config := onDisk(t, disk, Config{Shards: 2})
		if err := config.Dir.BindSource(info); err != nil {
			t.Fatal(err)
		}
		n := startNode(t, info, config)
		synctest.Wait()
		mustAnswerTheImport(t, n)
		if why := n.Status().Unhealthy; !strings.Contains(why, "no block has come since the start, reads are answered from the import of slot 100") {
			t.Fatalf("health before the first block says %q", why)
		}
		if from := n.resumePoint(); from == nil || from.Slot != 100 || from.Blockhash != p.Blockhash {
			t.Fatalf("goes on from %+v", from)
		}
		one := child(at100, 103, 0, lamports(key(1), 33))
		other := child(at100, 104, 1, lamports(key(2), 44))
		n.send(one)
		if a, v, err := n.Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 33 || v.Tip().Slot != 103 {
			t.Fatalf("after the first block: %+v, %v", a, err)
		}
		if a, v, err := n.Account(at(ledger.Finalized), key(1)); err != nil || a.Lamports != 20 || v.Tip().Slot != 100 {
			t.Fatalf("finalized: %+v at %d, %v", a, v.Tip().Slot, err)
		}
		if _, _, err := n.LatestBlock(at(ledger.Finalized)); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("the block at the import: %v", err)
		}
		n.send(other) // a fork right behind the import
		if a, _, _ := n.Account(ledger.Query{}, key(1)); a.Lamports != 20 {
			t.Errorf("after the fork: %+v", a)
		}
		n.send(status(one, ledger.StatusConfirmed))
		if _, v, err := n.Block(ledger.Query{}, 101); err == nil || v.Tip().Slot != 103 {
			t.Errorf("slot 101: %v at %d", err, v.Tip().Slot)
		} else if why, _ := absence(err); why.Absence != ledger.SlotNotIndexed {
			t.Errorf("slot 101: %v", err)
		}
		if _, _, err := n.Account(ledger.Query{}, key(77)); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("an account that the archive does not hold: %v", err)
		}
		want := n.Head().StateHash
		n.mustStop()

		c := onDisk(t, disk.Crash(0, 1), Config{Shards: 3})
		again := startNode(t, info, c)
		synctest.Wait()
		if h := again.Head(); h == nil || h.StateHash != want || h.Tips[ledger.Processed].Slot != 103 || h.Root != 103 {
			t.Fatalf("after a restart: %+v", h)
		}
		two := child(one, 105, 0, lamports(key(2), 1))
		again.send(two, status(two, ledger.StatusFinalized))
		if from := again.resumePoint(); from.Slot != 105 {
			t.Errorf("goes on from %+v", from)
		}
		again.mustStop()
		mustVerify(t, disk)
	})
}

// mustAnswerTheImport asks a node on which no block came since the import of importPoint.
func mustAnswerTheImport(t *testing.T, n *subject) {
	t.Helper()
	for c := ledger.Processed; c < ledger.Commitments; c++ {
		a, v, err := n.Account(at(c), key(1))
		if err != nil || a.Lamports != 20 || v.Tip().Slot != 100 || !v.Head.HasSlot() || v.Head.HasBlock {
			t.Errorf("%v: %+v, %v in %+v, want what the archive holds, at its slot", c, a, err, v.Head)
		}
	}
	if _, _, err := n.Account(ledger.Query{MinSlot: 101}, key(1)); !errors.Is(err, ledger.ErrMinSlot) {
		t.Errorf("from slot 101 on: %v", err)
	}
	for slot, want := range map[ledger.Slot]ledger.Absence{
		0: ledger.SlotNotIndexed, 99: ledger.SlotNotIndexed, 100: ledger.SlotNotIndexed, 101: ledger.SlotNotYetProduced,
	} {
		_, _, err := n.Block(ledger.Query{}, slot)
		if why, ok := absence(err); !ok || why.Absence != want {
			t.Errorf("block %d: %v, want absence %d", slot, err, want)
		}
	}
	if _, _, err := n.LatestBlock(ledger.Query{}); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the latest block: %v", err)
	}
	if page, more, _, err := n.Recent(ledger.Query{}, ledger.RecentRange{Limit: 5}); err != nil || more || len(page) > 0 {
		t.Errorf("recent transactions: %v, %v", page, err)
	}
}

// TestImportIsServedBeforeTheFirstBlock with every kind of source, and without one: reads are answered, and
// health is what it is of a node that waits for its source.
func TestImportIsServedBeforeTheFirstBlock(t *testing.T) {
	file := finite()
	file.Identity = ""
	stream := partial()
	stream.Identity = ""
	tests := map[string]struct {
		info  *ledger.SourceInfo // nil: none
		words string             // of health; "": it is well
	}{
		"none":          {nil, ""},
		"a file":        {&file, "starting: no block has come since the start, reads are answered from the import of slot 100"},
		"a live source": {&stream, "starting: no block has come since the start, reads are answered from the import of slot 100: the source"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				disk := vfstest.NewMemory()
				if _, err := importInto(t, disk, someTold(), importPoint(), importer.Config{}); err != nil {
					t.Fatal(err)
				}
				if tt.info == nil {
					n := serving(t, disk, 2)
					mustAnswerTheImport(t, n)
					if why := n.Status().Unhealthy; why != "" {
						t.Errorf("health: %q", why)
					}
					return
				}
				n := startNode(t, *tt.info, onDisk(t, disk, Config{Shards: 2}))
				synctest.Wait()
				mustAnswerTheImport(t, n)
				if why := n.Status().Unhealthy; !strings.HasPrefix(why, tt.words) {
					t.Errorf("health: %q, want %q", why, tt.words)
				}
				n.send(&ledger.BaseState{Slot: 200, Accounts: []ledger.AccountWrite{lamports(key(9), 9)}}) // names no slot of the chain
				mustAnswerTheImport(t, n)
				if n.Status().Unhealthy == "" {
					t.Error("healthy with base state alone")
				}
				n.send(child(at100, 101, 0, lamports(key(1), 33)))
				if a, v, err := n.Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 33 || v.Tip().Slot != 101 || n.Status().Unhealthy != "" {
					t.Errorf("after the first block: %+v, %v, %q", a, err, n.Status().Unhealthy)
				}
				n.mustStop()
			})
		})
	}
}

// TestBlocksThatDoNotFollowAnImport are gaps, or another ledger.
func TestBlocksThatDoNotFollowAnImport(t *testing.T) {
	final := func(b *ledger.Block) *ledger.Block { b.Status = ledger.Finalized; return b }
	noParentHash := func(b *ledger.Block) *ledger.Block { b.PreviousBlockhash.Known = false; return b }
	beyond := child(&ledger.Block{Slot: 101, Blockhash: hash(1)}, 103, 0)
	below := child(&ledger.Block{Slot: 99, Blockhash: hash(1)}, 103, 0)
	tests := map[string]struct {
		block *ledger.Block
		want  string // "": it follows
	}{
		"child":                       {child(at100, 101, 0), ""},
		"child behind skipped slots":  {child(at100, 109, 0), ""},
		"child without a parent hash": {noParentHash(child(at100, 109, 0)), ""},
		"the slot itself skipped":     {below, "below the finalized slot"},
		"beyond":                      {beyond, "did not show after slot 100"},
		"child of another block":      {final(child(&ledger.Block{Slot: 100, Blockhash: hash(1)}, 101, 0)), "another ledger"},
		"another block at the slot":   {final(child(&ledger.Block{Slot: 98}, 100, 5)), "another ledger"},
		"an older block":              {final(child(&ledger.Block{Slot: 90}, 91, 5)), ""},
		"the block itself":            {final(child(&ledger.Block{Slot: 98}, 100, 0)), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				disk := vfstest.NewMemory()
				p := importPoint()
				if _, err := importInto(t, disk, someTold(), p, importer.Config{}); err != nil {
					t.Fatal(err)
				}
				info := finite()
				info.Identity = ""
				n := startNode(t, info, onDisk(t, disk, Config{Shards: 2}))
				b := *tt.block
				n.try(&b)
				if !n.hasEnded() {
					n.endInput()
				}
				err := n.stop()
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("Run: %v, want %q", err, tt.want)
				}
				if tt.want == "" && b.Slot > 100 && n.Head().Tips[0].Slot != b.Slot {
					t.Errorf("stands at %+v", n.Head())
				}
			})
		})
	}
}

// TestUnfinishedImportIsRefusedAndStartedAnew cuts the power at many places of an import.
func TestUnfinishedImportIsRefusedAndStartedAnew(t *testing.T) {
	all := randomTold(seeded(t, 7), 40)
	whole := vfstest.NewMemory()
	want, err := importInto(t, whole, all, importPoint(), importer.Config{MemoryBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	refusedTimes := 0
	for n := 1; ; n += 1 + n/16 {
		disk := vfstest.NewMemory()
		faulty := vfstest.NewFaulty(disk, vfstest.Plan{Call: n, Lasting: true, Err: syscall.EIO})
		_, err := importInto(t, faulty, all, importPoint(), importer.Config{MemoryBytes: 1000})
		left := disk.Crash(0, uint64(n))
		if err == nil {
			break
		}
		dir, openErr := datadir.OpenOn(left, "data")
		if openErr == nil { // nothing was begun, or all was done
			note := dir.Imported()
			dir.Close()
			if note != nil {
				continue
			}
		} else if !errors.Is(openErr, datadir.ErrUnfinishedImport) {
			t.Fatalf("call %d: %v", n, openErr)
		} else {
			refusedTimes++
		}
		got, err := importInto(t, left, all, importPoint(), importer.Config{})
		if err != nil || got.StateHash != want.StateHash {
			t.Fatalf("call %d: anew: %+v, %v", n, got, err)
		}
		mustHoldNothingElse(t, left)
	}
	if refusedTimes == 0 {
		t.Error("no cut left an unfinished import")
	}
}

func TestImportRefusesADirectoryThatIsUsed(t *testing.T) {
	disk := vfstest.NewMemory()
	if _, err := importInto(t, disk, someTold(), importPoint(), importer.Config{}); err != nil {
		t.Fatal(err)
	}
	if _, err := importInto(t, disk, someTold(), importPoint(), importer.Config{}); err == nil || !strings.Contains(err.Error(), "holds a ledger already") {
		t.Errorf("a second import: %v", err)
	}
	strange := vfstest.NewMemory()
	strange.MkdirAll("data")
	f, err := strange.Create("data/holiday.jpg")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := importInto(t, strange, nil, importPoint(), importer.Config{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with other things: %v", err)
	}
}

// TestAFreshFileSystemIsAnEmptyDirectory: ext4 puts lost+found into each.
func TestAFreshFileSystemIsAnEmptyDirectory(t *testing.T) {
	for _, at := range []string{"data", "data/log", "data/snapshots"} {
		disk := vfstest.NewMemory()
		if err := disk.MkdirAll(at + "/lost+found"); err != nil {
			t.Fatal(err)
		}
		d, err := datadir.OpenOn(disk, "data")
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if err := d.BindFilter(ledger.NewFilter(nil, []ledger.Pubkey{key(1)})); err != nil { // it is new
			t.Errorf("%s: %v", at, err)
		}
		d.Close()
		if at != "data" {
			continue // an import wants no folders of ours there
		}
		disk = vfstest.NewMemory()
		if err := disk.MkdirAll(at + "/lost+found"); err != nil {
			t.Fatal(err)
		}
		if _, err := importInto(t, disk, someTold(), importPoint(), importer.Config{}); err != nil {
			t.Errorf("an import: %v", err)
		}
		bubble.Test(t, func(t *testing.T) {
			if a, _, err := serving(t, disk, 1).Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 20 {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// TestImportTakesTheRoomOfTheLogFirst: hours later is too late to learn that it is not there.
func TestImportTakesTheRoomOfTheLogFirst(t *testing.T) {
	disk := vfstest.NewMemory()
	disk.SetCapacity(1 << 20)
	d, _, err := datadir.OpenForImportOn(disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := importer.New(importer.Config{Dir: d}); !vfs.IsFull(err) || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("on a disk of 1 MiB: %v", err)
	}
	disk.SetCapacity(1 << 30)
	i, err := importer.New(importer.Config{Dir: d})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Add(1, 1, &ledger.AccountWrite{Pubkey: key(1), Lamports: 5}); err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}

func TestImportThatIsNotWholeIsRefused(t *testing.T) {
	p := importPoint()
	p.Capitalization = ledger.Some(ledger.Lamports(33)) // it is 32
	disk := vfstest.NewMemory()
	if _, err := importInto(t, disk, someTold(), p, importer.Config{}); err == nil || !strings.Contains(err.Error(), "32 lamports") {
		t.Errorf("another sum than the bank's: %v", err)
	}
	if _, err := datadir.OpenOn(disk, "data"); !errors.Is(err, datadir.ErrUnfinishedImport) {
		t.Errorf("the directory: %v", err)
	}
	all := []told{{1, 0, lamports(key(1), 1<<63)}, {1, 0, lamports(key(2), 1<<63)}, {1, 0, lamports(key(3), 33)}}
	if _, err := importInto(t, vfstest.NewMemory(), all, p, importer.Config{}); err == nil {
		t.Error("a sum that overflows to the bank's is taken for it")
	}
}

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

// TestDamagedImportIsNotReplayed: the log holds nothing of what was imported.
func TestDamagedImportIsNotReplayed(t *testing.T) {
	for _, gone := range []bool{true, false} {
		disk := vfstest.NewMemory()
		if _, err := importInto(t, disk, someTold(), importPoint(), importer.Config{}); err != nil {
			t.Fatal(err)
		}
		names, _ := disk.List("data/snapshots")
		if len(names) != 1 {
			t.Fatalf("snapshots: %v", names)
		}
		name := "data/snapshots/" + names[0]
		if gone {
			if err := disk.Remove(name); err != nil {
				t.Fatal(err)
			}
		} else {
			f, err := disk.OpenWrite(name)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteAt([]byte{1, 2, 3, 4}, 40)
			f.Close()
		}
		e := New(onDisk(t, disk, Config{Shards: 2, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}))
		if err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "import the archive again") {
			t.Errorf("gone %v: %v", gone, err)
		}
	}
}
