package shard

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"weak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/shard/arena"
	"ledgerd/shard/packed"
)

// TestOftenWrittenAccountIsFoundInFewSteps writes one account in every version and follows jumps to all that are held while
// the oldest are folded.
func TestOftenWrittenAccountIsFoundInFewSteps(t *testing.T) {
	a := newAccounts(packed.Kinds)
	a.overlay.cells.next = math.MaxUint32 - 1000
	hot := ledger.Account{Pubkey: key(0)}
	for v := ledger.Version(1); v <= 2500; v++ {
		hot.Lamports = ledger.Lamports(v)
		a.write(a.at(&hot.Pubkey, newest), v, &hot.Pubkey, nil, &hot)
		if v%500 != 0 {
			continue
		}
		for at := v - 250; at <= v; at++ {
			if got := a.unpack(a.at(&hot.Pubkey, at), new(ledger.Account)); got.Lamports != ledger.Lamports(at) {
				t.Fatalf("version %d of %d: %+v", at, v, got)
			}
		}
		steps := 0
		for p := a.at(&hot.Pubkey, newest).head; a.overlay.cells.holds(p); steps++ {
			w := a.overlay.cells.at(p)
			if p = w.jump; !a.overlay.cells.holds(p) {
				p = w.older
			}
		}
		ledgertest.MustHold(t, steps <= 40, "the oldest of %d values is found after %d jumps", v, steps)
		for a.fold(v-300, sliceKeys) {
		}
	}
}

// TestBytesAreWhatIsAllocated compares the counters with the growth of the heap, for new and known accounts with and without
// holdings, for mints, and when the overlay is folded.
func TestBytesAreWhatIsAllocated(t *testing.T) {
	const keys, versions = 20_000, 2
	for name, change := range map[string]func(n int, w *ledger.AccountWrite){
		"wallets": func(int, *ledger.AccountWrite) {},
		"token accounts": func(n int, w *ledger.AccountWrite) {
			w.Owner, w.Token = ledger.TokenProgram, &ledger.TokenAccount{Owner: key(-n)}
		},
		"partial accounts": func(_ int, w *ledger.AccountWrite) { w.Known = ledger.FieldOwner * ledger.Fields(w.Lamports%2) },
		"accounts with data": func(n int, w *ledger.AccountWrite) {
			w.Known, w.Data = w.Known|ledger.FieldData, ledger.NewData(make([]byte, 300))
		},
		"mints": func(n int, w *ledger.AccountWrite) {
			w.Mint, w.Known = &ledger.Mint{Decimals: uint8(w.Lamports)}, ledger.FieldsAll
		},
	} {
		shard := New(0, 1)
		s := shard.state
		empty := s.accounts.base.SizeBytes()
		grew := func(what string, before uint64) {
			t.Helper()
			s.tidy()
			got, want := float64(s.counters.OverlayBytes.Load()+s.counters.BaseBytes.Load()-int64(empty)), float64(heapBytes()-before)
			if got < 0.8*want || got > 1.2*want {
				t.Errorf("%s, %s: %.1f MB are counted, %.1f MB were allocated", name, what, got/1e6, want/1e6)
			}
		}
		before := heapBytes()
		for v := ledger.Version(1); v <= versions; v++ {
			writes := lamportsOf(keys, ledger.Lamports(v))
			for n := range writes {
				change(n, &writes[n])
			}
			for j := shard.block(v, writes); j.step(s); {
			}
			grew(fmt.Sprintf("version %d", v), before)
		}
		for j := (&fold{Point: Point{Version: versions}}); j.step(s); {
		}
		s.tidy()
		grew("folded", before)
		if got := s.counters.OverlayBytes.Load(); got > 1<<20 {
			t.Errorf("%s: %d bytes are counted of an empty overlay", name, got)
		}
	}
}

// TestReplacedDataLeavesMemory writes one account again and again. When that is folded, only the newest data is held.
func TestReplacedDataLeavesMemory(t *testing.T) {
	const versions = 20
	shard := New(0, 1)
	var told []weak.Pointer[byte]
	for v := ledger.Version(1); v <= versions; v++ {
		w := lamports(key(1), 1)
		w.Known, w.Data = w.Known|ledger.FieldData, ledger.NewData([]byte{byte(v)})
		told = append(told, weak.Make(&w.Data.Bytes()[0]))
		for j := shard.block(v, []ledger.AccountWrite{w}); j.step(shard.state); {
		}
	}
	for j := (&fold{Point: Point{Version: versions}}); j.step(shard.state); {
	}
	shard.state.scratch = [3]ledger.Account{}
	runtime.GC()
	for i := range told {
		if held := told[i].Value() != nil; held != (i == versions-1) {
			t.Errorf("the data of version %d of %d is held: %v", i+1, versions, held)
		}
	}
	runtime.KeepAlive(shard)
}

// put writes an account of a key as of a version.
func (t *accounts) put(n int, v ledger.Version) {
	x := ledger.Account{Pubkey: key(n), Lamports: 1, Known: ledger.FieldsShown, Owner: ledger.TokenProgram}
	t.write(t.at(&x.Pubkey, newest), v, &x.Pubkey, nil, &x)
}

// TestKeysAreFoundTogetherAsAlone looks keys up together that only the base has, only the overlay, both, or neither, beside
// one whose hash leads to another's value first.
func TestKeysAreFoundTogetherAsAlone(t *testing.T) {
	const keys = 3000
	a := newAccounts(packed.Kinds)
	for n := range keys {
		if n%3 == 0 {
			a.base.Put(0, &ledger.Account{Pubkey: key(n), Lamports: 1})
		}
		if n%3 == 1 || n%9 == 0 {
			a.put(n, 2)
		}
	}
	for n := 0; n < keys; n += 100 { // the hash of a key leads to the oldest value too
		k := key(n)
		hash := arena.HashOf(&k)
		a.overlay.heads.Part(hash).Add(hash, uint32(a.overlay.cells.oldest))
	}
	writes := lamportsOf(keys, 1)
	for some := range slices.Chunk(writes, sliceKeys) {
		var todo []uint64
		for i := range some {
			todo = append(todo, uint64(i))
		}
		var all prefetch
		all.find(a, some, todo)
		for i := range some {
			if got, want := all.found[i], a.at(&some[i].Pubkey, newest); got != want {
				t.Errorf("%s: found with others at %+v, alone at %+v", some[i].Pubkey, got, want)
			}
		}
	}
}

// TestKeyIsWrittenWhereItWas writes keys where they were found before others were written, for which the table had to grow. No part
// of the table may become long: a part that is resized stalls whoever adds a key by its length.
func TestKeyIsWrittenWhereItWas(t *testing.T) {
	const early, keys = 10, 50_000
	a := newAccounts(packed.Kinds)
	var at [early]location
	for n := range keys {
		a.put(n, 1)
		if n == early {
			for n := range at {
				at[n] = a.at(new(key(n)), newest)
			}
		}
	}
	for n := range uint32(256) {
		if part := a.overlay.heads.Part(n << 24); part.Used == 0 || len(part.Entries) > keys/64 {
			t.Errorf("a part has %d keys in %d buckets", part.Used, len(part.Entries))
		}
	}
	for n := range keys {
		x := ledger.Account{Pubkey: key(n), Lamports: 1}
		if n < early {
			x.Lamports = 7
			a.write(at[n], 2, &x.Pubkey, nil, &x)
		}
		for v, want := range map[ledger.Version]ledger.Lamports{1: 1, 2: x.Lamports} {
			if got := a.unpack(a.at(&x.Pubkey, v), new(ledger.Account)); got.Lamports != want {
				t.Fatalf("version %d of key %d: %+v, want %d lamports", v, n, got, want)
			}
		}
	}
}
