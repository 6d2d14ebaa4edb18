package snapshot

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatIsWrittenIsRead(t *testing.T) {
	disk := vfstest.NewMemory()
	s := openTestStore(t, disk)
	want := testState(100, 40, 20000, 300)
	w := write(t, s, want)
	if w.Meta.Accounts != want.meta.Accounts || w.Slot != 100 || w.Version != want.meta.Version || w.HistoryBytes == 0 || w.Bytes == 0 {
		t.Errorf("Write = %+v with %d accounts, want %d", w, w.Meta.Accounts, want.meta.Accounts)
	}
	snap := newest(t, openTestStore(t, disk))
	if n := len(snap.state.of(accountChunk)); n < 4 {
		t.Fatalf("%d chunks of accounts: too few to tell anything", n)
	}
	if err := snap.Verify(context.Background(), Pace{}); err != nil {
		t.Errorf("Verify: %v", err)
	}
	var readers sync.WaitGroup // they share the snapshot
	for _, ranges := range []int{1, 2, 3, 7} {
		readers.Go(func() { wantLoaded(t, fmt.Sprintf("in %d ranges", ranges), snap, ranges, want) })
	}
	readers.Wait()
}

// genKey makes keys that are near each other: many share their first 8 bytes.
func genKey(t *rapid.T) (k ledger.Pubkey) {
	k[0] = rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xff}).Draw(t, "first byte")
	k[7] = rapid.Byte().Draw(t, "eighth byte")
	k[31] = rapid.Byte().Draw(t, "last byte")
	return k
}

func TestAnyStateIsReadInAnyRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st := testState(20, 10, 0, 0)
		for i, key := range rapid.SliceOfNDistinct(rapid.Custom(genKey), 0, 40, rapid.ID).Draw(t, "accounts") {
			a := testAccount(i)
			a.Pubkey = key
			st.accounts = append(st.accounts, a)
		}
		for i, key := range rapid.SliceOfNDistinct(rapid.Custom(genKey), 0, 10, rapid.ID).Draw(t, "mints") {
			m := testMint(i)
			m.Pubkey = key
			st.mints = append(st.mints, m)
		}
		st.settle()
		s := ViewStore(vfstest.NewMemory(), ".", quiet)
		w, err := s.Write(context.Background(), st.meta, st.parts(rapid.IntRange(1, 4).Draw(t, "parts")), st.blocks, Pace{})
		must(t, err)
		snap, err := s.Open(w.Info)
		must(t, err)
		first, last := rapid.Uint64().Draw(t, "first"), rapid.Uint64().Draw(t, "last")
		if i := len(st.accounts); i > 0 && rapid.Bool().Draw(t, "first is of a key") {
			first = st.accounts[rapid.IntRange(0, i-1).Draw(t, "account")].Pubkey.Prefix()
		}
		if rapid.Bool().Draw(t, "last is first") {
			last = first
		}
		in := func(k *ledger.Pubkey) bool { return first <= k.Prefix() && k.Prefix() <= last }
		want := &state{meta: st.meta, blocks: st.blocks, accounts: slices.Clone(st.accounts), mints: slices.Clone(st.mints)}
		want.accounts = slices.DeleteFunc(want.accounts, func(a *ledger.Account) bool { return !in(&a.Pubkey) })
		want.mints = slices.DeleteFunc(want.mints, func(m ledger.MintWrite) bool { return !in(&m.Pubkey) })
		got := &state{meta: *snap.Meta(), blocks: st.blocks}
		if err := snap.Accounts(first, last, func(a *ledger.Account) bool { got.accounts = append(got.accounts, cloned(a)); return true }); err != nil {
			t.Fatal(err)
		}
		if err := snap.Mints(first, last, func(m ledger.MintWrite) bool { got.mints = append(got.mints, m); return true }); err != nil {
			t.Fatal(err)
		}
		if d := got.differs(want); d != "" {
			t.Fatalf("from %#x to %#x: got %s", first, last, d)
		}
	})
}

func TestVisitorsEndAReading(t *testing.T) {
	s := openTestStore(t, vfstest.NewMemory())
	write(t, s, testState(20, 0, 500, 20))
	snap := newest(t, s)
	visited, enough := 0, errors.New("enough")
	more := func() bool { visited++; return visited%3 != 0 }
	err := errors.Join(snap.Accounts(0, math.MaxUint64, func(*ledger.Account) bool { return more() }),
		snap.Mints(0, math.MaxUint64, func(ledger.MintWrite) bool { return more() }))
	if err != nil || visited != 6 {
		t.Errorf("Accounts and Mints: %d visited, err = %v, want 3 each", visited, err)
	}
	err = snap.Blocks(func(HeldBlock) error {
		if more() {
			return nil
		}
		return enough
	})
	if err != enough || visited != 9 {
		t.Errorf("Blocks: %d visited, err = %v, want 3 and %v", visited-6, err, enough)
	}
}

// TestAnotherStateHashIsTold by Write, which then leaves nothing, and of a file that was written all the same by Verify.
func TestAnotherStateHashIsTold(t *testing.T) {
	disk := vfstest.NewMemory()
	st := testState(20, 0, 50, 5)
	st.meta.StateHash[2]++
	_, err := openTestStore(t, disk).Write(t.Context(), st.meta, st.parts(2), st.blocks, Pace{})
	if !errors.Is(err, ErrState) || errors.Is(err, ErrDamaged) || len(disk.Paths()) > 0 {
		t.Errorf("Write: %v, and left %v; want %v", err, disk.Paths(), ErrState)
	}
	disk, meta := genuine(t)
	a := testAccount(2)
	right, other := *meta, *meta
	right.StateHash.Add(a.StateTerm())
	other.StateHash[2]++
	for what, raw := range map[string][]byte{
		"":                 metaOf(t, right, 1, 0, 0),
		"another hash":     metaOf(t, other, 1, 0, 0),
		"a live tombstone": metaOf(t, right, 0, 1, 0),
	} {
		forged := (&forgery{magic: snapshotMagic}).add(chunkOf(a)).add(chunk{kind: metaChunk, count: 1}, raw)
		must(t, disk.WriteFile(testDir+"/"+stateName(1, 1), forged.bytes()))
		if err := newest(t, openTestStore(t, disk)).Verify(t.Context(), Pace{}); errors.Is(err, ErrDamaged) != (what != "") {
			t.Errorf("%s: Verify: %v", what, err)
		}
	}
}

func TestPartsOutOfOrderAreRefused(t *testing.T) {
	st := testState(20, 0, 50, 5)
	turned := st.parts(1)
	turned[0].Accounts = func(visit func(*ledger.Account) bool) error {
		for _, a := range slices.Backward(st.accounts) {
			if !visit(a) {
				break
			}
		}
		return nil
	}
	for name, parts := range map[string][]Part{"backward": turned, "the same twice": append(st.parts(1), st.parts(1)...)} {
		disk := vfstest.NewMemory()
		s := openTestStore(t, disk)
		if _, err := s.Write(context.Background(), st.meta, parts, st.blocks, Pace{}); err == nil {
			t.Errorf("%s: it was written", name)
		}
		if left := disk.Paths(); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

func TestWriteEndsWithItsContext(t *testing.T) {
	disk := vfstest.NewMemory()
	s := openTestStore(t, disk)
	write(t, s, testState(20, 0, 3, 0)) // all blocks are held, and the accounts come first
	before := disk.Paths()
	st := testState(20, 0, 20000, 5)
	st.meta.Version++
	ctx, cancel := context.WithCancel(context.Background())
	parts := st.parts(1)
	accounts, n := parts[0].Accounts, 0
	parts[0].Accounts = func(visit func(*ledger.Account) bool) error {
		return accounts(func(a *ledger.Account) bool {
			if n++; n == 100 {
				cancel()
			}
			return visit(a)
		})
	}
	// At this pace it would rest for hours after the first chunk.
	if _, err := s.Write(ctx, st.meta, parts, st.blocks, steady(1e-9)); !errors.Is(err, context.Canceled) {
		t.Errorf("Write: %v, want %v", err, context.Canceled)
	}
	if n > 10000 {
		t.Errorf("Write asked for %d accounts after its context was over at 100", n)
	}
	if left := disk.Paths(); !slices.Equal(left, before) {
		t.Errorf("left %v, before it was %v", left, before)
	}
}

// TestOldFormatsStayReadable reads what every released version of the format wrote. The bytes of
// a new file may differ, as the compressor does.
func TestOldFormatsStayReadable(t *testing.T) {
	dir := filepath.Join("testdata", fmt.Sprintf("version%d", formatVersion))
	want := testState(20, 6, 20, 6)
	if *update {
		must(t, os.RemoveAll(dir))
		s, err := OpenStore(vfs.Disk{}, dir, quiet)
		must(t, err)
		first := testState(12, 6, 3, 0)
		write(t, s, first)
		write(t, s, want)
		must(t, os.Remove(filepath.Join(dir, stateName(first.meta.Slot, first.meta.Version))))
	}
	dirs, err := filepath.Glob(filepath.Join("testdata", "version*"))
	if err != nil || len(dirs) != formatVersion {
		t.Fatalf("golden directories: %v, %v, want one for each version up to %d", dirs, err, formatVersion)
	}
	for _, dir := range dirs {
		snap := newest(t, ViewStore(vfs.Disk{}, dir, quiet))
		if err := snap.Verify(context.Background(), Pace{}); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		wantLoaded(t, dir, snap, 2, want)
		if n := len(snap.history); n != 2 {
			t.Errorf("%s: %d history files, want 2", dir, n)
		}
	}
}

// Base state alone has no blocks; its state hash is found while it is written, and the first
// blocks after it begin a history of their own.
func TestBaseStateAloneIsWrittenAndRead(t *testing.T) {
	s := openTestStore(t, vfstest.NewMemory())
	want := testState(100, 100, 3000, 50)
	want.blocks = nil
	m := &want.meta
	m.Version, m.Seq, m.Floor, m.BaseOnly = 1, 0, 101, true
	given := *m
	given.StateHash = ledger.StateHash{1, 2, 3} // to be found, not believed
	if _, err := s.WriteBase(context.Background(), given, want.parts(3), Pace{}); err != nil {
		t.Fatal(err)
	}
	snap := newest(t, s)
	if err := snap.Verify(context.Background(), Pace{}); err != nil {
		t.Errorf("Verify: %v", err)
	}
	wantLoaded(t, "base state", snap, 3, want)
	next := testState(110, 104, 3000, 50)
	next.blocks[0].HasPrevious, next.blocks[0].Previous = false, 0
	write(t, s, next)
	wantLoaded(t, "the snapshot after it", newest(t, s), 2, next)
}
