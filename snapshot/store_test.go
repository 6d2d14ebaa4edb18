package snapshot

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
			st.accounts = append(st.accounts, testAccount(i))
			st.accounts[i].Pubkey = key
		}
		for i, key := range rapid.SliceOfNDistinct(rapid.Custom(genKey), 0, 10, rapid.ID).Draw(t, "mints") {
			st.mints = append(st.mints, testMint(i))
			st.mints[i].Pubkey = key
		}
		st.settle()
		s := ViewStore(vfstest.NewMemory(), ".", quiet)
		w, err := s.Write(t.Context(), st.meta, st.parts(rapid.IntRange(1, 4).Draw(t, "parts")), st.blocks, Pace{})
		must(t, err)
		infos, err := s.List()
		must(t, err)
		ledgertest.Equal(t, infos, []Info{w.Info}, "the list of what was written")
		snap, err := s.Open(w.Info)
		must(t, err)
		first, last := rapid.Uint64().Draw(t, "first"), rapid.Uint64().Draw(t, "last")
		if i := len(st.accounts); i > 0 && rapid.Bool().Draw(t, "first is of a key") {
			first = st.accounts[rapid.IntRange(0, i-1).Draw(t, "account")].Pubkey.Prefix()
		}
		if rapid.Bool().Draw(t, "last is first") {
			last = first
		}
		got := &state{meta: *snap.Meta()}
		must(t, errors.Join(got.read(snap, first, last), snap.Verify(t.Context(), Pace{})))
		if d := got.differs(st.between(first, last)); d != "" {
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
	ledgertest.Holds(t, err == nil && visited == 6, "Accounts and Mints: %d visited, err = %v, want 3 each", visited, err)
	err = snap.Blocks(func(HeldBlock) error {
		if more() {
			return nil
		}
		return enough
	}, nil)
	ledgertest.Holds(t, err == enough && visited == 9, "Blocks: %d visited, err = %v, want 3 and %v", visited-6, err, enough)
}

// TestWriteRefusesAState that has another hash, or whose accounts are out of order, and leaves nothing. It is no damage of a file.
func TestWriteRefusesAState(t *testing.T) {
	st := testState(20, 0, 50, 5)
	other := st.meta
	other.StateHash[2]++
	turned := st.parts(1)
	backward := slices.Clone(st.accounts)
	slices.Reverse(backward)
	turned[0].Accounts = visitAll(backward)
	for name, tt := range map[string]struct {
		meta  Meta
		parts []Part
		state bool
	}{
		"another hash":   {other, st.parts(2), true},
		"backward":       {st.meta, turned, false},
		"the same twice": {st.meta, append(st.parts(1), st.parts(1)...), false},
	} {
		disk := vfstest.NewMemory()
		_, err := openTestStore(t, disk).Write(t.Context(), tt.meta, tt.parts, st.blocks, Pace{})
		if err == nil || errors.Is(err, ErrState) != tt.state || tt.state && errors.Is(err, ErrDamaged) || len(disk.Paths()) > 0 {
			t.Errorf("%s: Write: %v, and left %v", name, err, disk.Paths())
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
	ctx, cancel := context.WithCancel(t.Context())
	parts, n := st.parts(1), 0
	parts[0].Accounts = func(visit func(*ledger.Account) error) error {
		return visitAll(st.accounts)(func(a *ledger.Account) error {
			if n++; n == 100 {
				cancel()
			}
			return visit(a)
		})
	}
	// At this pace it would rest for hours after the first chunk.
	if _, err := s.Write(ctx, st.meta, parts, st.blocks, steady(1e-9)); !errors.Is(err, context.Canceled) || n > 10000 {
		t.Errorf("Write: %v after %d accounts, want %v after little more than 100", err, n, context.Canceled)
	}
	ledgertest.Equal(t, disk.Paths(), before, "what is left, as it was before")
}

// F51: what every released version of the format wrote is read. The bytes of a new file may differ, as the compressor does.
func TestOldFormatsStayReadable(t *testing.T) {
	dir := filepath.Join("testdata", fmt.Sprintf("version%d", formatVersion))
	want := testState(20, 6, 20, 6)
	if *update {
		must(t, os.RemoveAll(dir))
		s, err := OpenStore(vfs.Disk{}, dir, quiet)
		must(t, err)
		first := write(t, s, testState(12, 6, 3, 0))
		write(t, s, want)
		must(t, os.Remove(filepath.Join(dir, first.Name)))
	}
	dirs, err := filepath.Glob(filepath.Join("testdata", "version*"))
	if err != nil || len(dirs) != formatVersion {
		t.Fatalf("golden directories: %v, %v, want one for each version up to %d", dirs, err, formatVersion)
	}
	for version, dir := range dirs {
		want := testState(20, 6, 20, 6)
		if version+1 < 4 {
			want.forgetData()
		}
		snap := newest(t, ViewStore(vfs.Disk{}, dir, quiet))
		must(t, snap.Verify(t.Context(), Pace{}))
		wantLoaded(t, dir, snap, 2, want)
		ledgertest.Equal(t, len(snap.history), 2, "%s: history files", dir)
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
	largest := make([]byte, ledger.MaxDataBytes)
	rand.NewChaCha8([32]byte{}).Read(largest)
	i := slices.IndexFunc(want.accounts, func(a *ledger.Account) bool { return a.Data.Len() > 0 })
	want.accounts[i].Data = ledger.NewData(largest)
	want.settle()
	given := *m
	given.StateHash = ledger.StateHash{1, 2, 3} // to be found, not believed
	_, err := s.Write(t.Context(), given, want.parts(3), nil, Pace{})
	must(t, err)
	snap := newest(t, s)
	must(t, snap.Verify(t.Context(), Pace{}))
	wantLoaded(t, "base state", snap, 3, want)
	next := testState(110, 104, 3000, 50)
	next.blocks[0].Previous = ledger.Opt[ledger.Slot]{}
	write(t, s, next)
	wantLoaded(t, "the snapshot after it", newest(t, s), 2, next)
}
