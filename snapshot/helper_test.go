package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

const testDir = "data/snapshots"

// must fails the test at an error.
func must(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// state is what a test writes and expects to read.
type state struct {
	meta     Meta
	accounts []*ledger.Account  // in key order
	mints    []ledger.MintWrite // in key order
	blocks   []HeldBlock        // from the floor on
}

func testKey(n int) (k ledger.Pubkey) {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
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
	return a
}

// cloned returns a copy that stays valid after the visit that the account was handed to.
func cloned(a *ledger.Account) *ledger.Account {
	c := *a
	if a.Token != nil {
		token := *a.Token
		c.Token = &token
	}
	if a.FieldProvenance != nil {
		earlier := *a.FieldProvenance
		c.FieldProvenance = &earlier
	}
	return &c
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
			h.Previous, h.HasPrevious = slot-2, true
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

// parts splits the state into n ranges of keys, as shards do.
func (s *state) parts(n int) []Part {
	parts := make([]Part, n)
	for i := range parts {
		in := func(k *ledger.Pubkey) bool {
			at := uint64(float64(k.Prefix()) / math.MaxUint64 * float64(n))
			return min(at, uint64(n-1)) == uint64(i)
		}
		parts[i] = Part{
			Accounts: func(visit func(*ledger.Account) bool) error {
				for _, a := range s.accounts {
					if in(&a.Pubkey) && !visit(a) {
						break
					}
				}
				return nil
			},
			Mints: func(visit func(ledger.MintWrite) bool) error {
				for _, m := range s.mints {
					if in(&m.Pubkey) && !visit(m) {
						break
					}
				}
				return nil
			},
		}
	}
	return parts
}

func openTestStore(t testing.TB, disk vfs.FS) *Store {
	t.Helper()
	s, err := OpenStore(disk, testDir, quiet)
	if err != nil {
		t.Fatalf("OpenStore: %v", err)
	}
	return s
}

// write writes the state in two parts, or fails the test.
func write(t testing.TB, s *Store, st *state) Written {
	t.Helper()
	w, err := s.Write(context.Background(), st.meta, st.parts(2), st.blocks, Pace{})
	if err != nil {
		t.Fatalf("Write at slot %d: %v", st.meta.Slot, err)
	}
	return w
}

// load reads a snapshot in ranges, each from one of the given prefixes up to the next.
func load(snap *Snapshot, ranges int) (*state, error) {
	st := &state{meta: *snap.Meta()}
	step, last := math.MaxUint64/uint64(ranges), uint64(math.MaxUint64)
	for i := range ranges {
		first := uint64(i) * step
		if last = first + step - 1; i == ranges-1 {
			last = math.MaxUint64
		}
		if err := snap.Accounts(first, last, func(a *ledger.Account) bool { st.accounts = append(st.accounts, cloned(a)); return true }); err != nil {
			return nil, err
		}
		if err := snap.Mints(first, last, func(m ledger.MintWrite) bool { st.mints = append(st.mints, m); return true }); err != nil {
			return nil, err
		}
	}
	err := snap.Blocks(func(b HeldBlock) error { st.blocks = append(st.blocks, b); return nil })
	return st, err
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
	if !reflect.DeepEqual(a, b) {
		return fmt.Sprintf("meta %+v, not %+v", a, b)
	}
	return cmp.Or(firstOther("account", s.accounts, o.accounts), firstOther("mint", s.mints, o.mints), firstOther("block", s.blocks, o.blocks))
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
	if err != nil || len(infos) == 0 {
		t.Fatalf("List: %v, %v", infos, err)
	}
	snap, err := s.Open(infos[0])
	if err != nil {
		t.Fatalf("Open(%s): %v", infos[0].Name, err)
	}
	return snap
}
