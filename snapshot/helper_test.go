package snapshot

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math"
	"path"
	"reflect"
	"slices"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

const testDir = "data/snapshots"

var (
	must    = ledgertest.Must
	testKey = ledgertest.Key
	quiet   = slog.New(slog.DiscardHandler)
)

// state is what a test writes and expects to read.
type state struct {
	meta     Meta
	accounts []*ledger.Account  // in key order
	mints    []ledger.MintWrite // in key order
	blocks   []HeldBlock        // from the floor on
}

// testAccount returns an account of one of the forms there are, by n.
func testAccount(n int) *ledger.Account {
	a := &ledger.Account{Pubkey: testKey(n), Provenance: ledger.BlockProvenance(ledger.Slot(1000 + n))}
	switch n % 5 {
	case 0:
		a.Since = a.Provenance // a tombstone
		return a
	case 1: // partial
		a.Lamports, a.Since = ledger.Lamports(n), ledger.BaseProvenance(7)
		a.FieldProvenance = &ledger.FieldProvenance{3}
		return a
	}
	a.Lamports, a.RentEpoch, a.Known = ledger.Lamports(2039280+n), 1<<64-1, ledger.FieldsAll&^ledger.FieldMint
	if n%2 == 0 {
		a.Owner = ledger.TokenProgram
		a.Token = &ledger.TokenAccount{Mint: testKey(n % 7), Owner: testKey(n + 1), Amount: uint64(n) << 20,
			Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})}
	}
	if n%3 == 0 {
		a.Known |= ledger.FieldData
		a.Data = ledger.NewData(make([]byte, n%2*300))
	}
	return a
}

func testMint(n int) ledger.MintWrite {
	m := ledger.MintWrite{Pubkey: testKey(n), Mint: ledger.Mint{Decimals: uint8(n % 10)}}
	if n%2 == 0 {
		m.Mint.Supply, m.Mint.Provenance, m.Mint.SupplyProvenance = ledger.Some(uint64(n)*1e6), ledger.BlockProvenance(5), ledger.BlockProvenance(5)
	}
	return m
}

// testBlocks returns the blocks at every second slot from first to last; all but the one at
// slot 0 have one before them.
func testBlocks(first, last ledger.Slot) (blocks []HeldBlock) {
	for slot := first; slot <= last; slot += 2 {
		b := &ledger.Block{Slot: slot, Blockhash: ledger.Hash(testKey(int(slot))), Status: ledger.Finalized,
			Height: ledger.Some(uint64(slot / 2)), Time: ledger.Some(int64(1_700_000_000 + slot)), TransactionCount: 3}
		h := HeldBlock{Block: b}
		if slot >= 2 {
			b.ParentSlot = slot - 2
			h.Previous = ledger.Some(slot - 2)
		}
		for i := range 3 {
			t := ledger.Transaction{Fee: ledger.Some(ledger.Lamports(5000)), Accounts: []ledger.Pubkey{testKey(i), testKey(int(slot))}}
			sum := sha256.Sum256(fmt.Append(nil, slot, i))
			copy(t.Signature[:], sum[:])
			b.AddTransaction(t)
		}
		blocks = append(blocks, h)
	}
	return blocks
}

// testState returns a state at the block of an even slot, with blocks from the floor on.
func testState(slot, floor ledger.Slot, accounts, mints int) *state {
	s := &state{blocks: testBlocks(floor+floor%2, slot)}
	for n := range accounts {
		s.accounts = append(s.accounts, testAccount(n+int(slot)))
	}
	for n := range mints {
		s.mints = append(s.mints, testMint(n+int(slot)))
	}
	newest := s.blocks[len(s.blocks)-1].Block
	s.meta = Meta{Version: ledger.Version(slot * 3), Slot: slot, Blockhash: newest.Blockhash, Seq: ledger.Seq(slot * 10),
		Block: bare(newest), Root: 0, Floor: floor, BaseSlot: 1, Taken: time.Unix(1_700_000_000, 0).UTC()}
	s.settle()
	return s
}

// settle puts everything in order and counts it.
func (s *state) settle() {
	slices.SortFunc(s.accounts, func(a, b *ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) })
	slices.SortFunc(s.mints, func(a, b ledger.MintWrite) int { return a.Pubkey.Compare(&b.Pubkey) })
	m := &s.meta
	m.StateHash, m.Accounts, m.Tombstones, m.Mints = ledger.StateHash{}, 0, 0, uint64(len(s.mints))
	for _, a := range s.accounts {
		m.StateHash.Add(a.StateTerm())
		if a.Exists() {
			m.Accounts++
		} else {
			m.Tombstones++
		}
	}
	for _, mint := range s.mints {
		m.StateHash.Add(mint.Mint.StateTerm(mint.Pubkey))
	}
}

// forgetData makes a state what a program held that knew no data.
func (s *state) forgetData() {
	for _, a := range s.accounts {
		a.Known, a.Data = a.Known&^ledger.FieldData, ledger.Data{}
	}
	s.settle()
}

// between returns the accounts and mints of a state whose keys have a prefix from first to last.
func (s *state) between(first, last uint64) *state {
	out := func(k *ledger.Pubkey) bool { return k.Prefix() < first || k.Prefix() > last }
	return &state{
		meta:     s.meta,
		accounts: slices.DeleteFunc(slices.Clone(s.accounts), func(a *ledger.Account) bool { return out(&a.Pubkey) }),
		mints:    slices.DeleteFunc(slices.Clone(s.mints), func(m ledger.MintWrite) bool { return out(&m.Pubkey) }),
	}
}

// ranges splits the prefixes of keys into n ranges.
func ranges(n int) (all [][2]uint64) {
	step := math.MaxUint64 / uint64(n)
	for i := range uint64(n) {
		all = append(all, [2]uint64{i * step, (i+1)*step - 1})
	}
	all[n-1][1] = math.MaxUint64
	return all
}

// visitAll returns a function that visits items until the visitor ends that.
func visitAll[T any](items []T) func(visit func(T) error) error {
	return func(visit func(T) error) error {
		for _, item := range items {
			if err := visit(item); err != nil {
				return err
			}
		}
		return nil
	}
}

// parts splits the state into n ranges of keys, as shards do.
func (s *state) parts(n int) (parts []Part) {
	for _, r := range ranges(n) {
		part := s.between(r[0], r[1])
		parts = append(parts, Part{Accounts: visitAll(part.accounts), Mints: visitAll(part.mints)})
	}
	return parts
}

func openTestStore(t testing.TB, disk vfs.FS) *Store {
	t.Helper()
	s, err := OpenStore(disk, testDir, quiet)
	must(t, err)
	return s
}

// write writes the state in two parts, or fails the test.
func write(t testing.TB, s *Store, st *state) Written {
	t.Helper()
	w, err := s.Write(t.Context(), st.meta, st.parts(2), st.blocks, Pace{})
	must(t, err)
	return w
}

// smallSnapshot returns a disk with one snapshot of a few items and one history file.
func smallSnapshot(t testing.TB) (*vfstest.Memory, *state, Written) {
	t.Helper()
	disk := vfstest.NewMemory()
	st := testState(20, 14, 7, 3)
	return disk, st, write(t, openTestStore(t, disk), st)
}

// replaced returns a copy of the disk on which the file has other bytes.
func replaced(t testing.TB, disk *vfstest.Memory, name string, content []byte) *vfstest.Memory {
	t.Helper()
	disk = disk.Clone()
	must(t, disk.WriteFile(path.Join(testDir, name), content))
	return disk
}

func content(t testing.TB, disk *vfstest.Memory, name string) []byte {
	t.Helper()
	b, err := disk.ReadFile(path.Join(testDir, name))
	must(t, err)
	return b
}

// read adds to the state what a snapshot has between two prefixes of keys.
func (s *state) read(snap *Snapshot, first, last uint64) error {
	if err := snap.Accounts(first, last, func(a *ledger.Account) bool {
		s.accounts = append(s.accounts, ledgertest.CloneAccount(a))
		return true
	}); err != nil {
		return err
	}
	return snap.Mints(first, last, func(m ledger.MintWrite) bool { s.mints = append(s.mints, m); return true })
}

// load reads a snapshot in so many ranges.
func load(snap *Snapshot, n int) (*state, error) {
	st := &state{meta: *snap.Meta()}
	for _, r := range ranges(n) {
		if err := st.read(snap, r[0], r[1]); err != nil {
			return nil, err
		}
	}
	err := snap.Blocks(func(b HeldBlock) error { st.blocks = append(st.blocks, b); return nil }, nil)
	return st, err
}

// serves opens and loads a snapshot and returns the first error.
func serves(disk vfs.FS, i Info) error {
	snap, err := ViewStore(disk, testDir, nil).Open(i)
	if err != nil {
		return err
	}
	_, err = load(snap, 2)
	return err
}

// wantLoaded reads a snapshot in so many ranges and fails the test unless it is the wanted state.
func wantLoaded(t testing.TB, what string, snap *Snapshot, ranges int, want *state) {
	t.Helper()
	got, err := load(snap, ranges)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	} else if d := got.differs(want); d != "" {
		t.Errorf("%s: got %s", what, d)
	}
}

// differs returns in what two states differ, "" if they are the same. History refs are not
// compared: they are how, not what.
func (s *state) differs(o *state) string {
	a, b := s.meta, o.meta
	a.History, b.History = nil, nil
	return cmp.Or(firstOther("meta", []Meta{a}, []Meta{b}), firstOther("account", s.accounts, o.accounts),
		firstOther("mint", s.mints, o.mints), firstOther("block", s.blocks, o.blocks))
}

// firstOther returns the first item in which two lists differ, "" if they are the same.
func firstOther[T any](what string, got, want []T) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d %ss, not %d", len(got), what, len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			return fmt.Sprintf("%s %+v, not %+v", what, got[i], want[i])
		}
	}
	return ""
}

// newest opens the newest snapshot listed.
func newest(t testing.TB, s *Store) *Snapshot {
	t.Helper()
	infos, err := s.List()
	ledgertest.MustHold(t, err == nil && len(infos) != 0, "List: %v, %v", infos, err)
	snap, err := s.Open(infos[0])
	must(t, err)
	return snap
}
