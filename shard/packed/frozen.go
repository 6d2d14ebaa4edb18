package packed

import (
	"runtime"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Frozen is what a base held at one time. One goroutine at a time may read it.
type Frozen struct {
	view  view
	byKey *btree.BTreeG[listing]
	pin   *pin
}

// Freeze returns what b holds now, good until it is released. One that is dropped without is released when the
// garbage collector finds it.
func (b *Base) Freeze() *Frozen {
	f := &Frozen{view: b.store.view, byKey: b.byKey.listings.Copy(), pin: b.pins.add()}
	runtime.AddCleanup(f, func(p *pin) { p.released.Store(true) }, f.pin)
	return f
}

// Release lets the base reuse the records that only f reads. f must not be read any more.
func (f *Frozen) Release() { f.pin.released.Store(true) }

// Ascend calls visit for the records of all accounts, in key order, until it returns false.
func (f *Frozen) Ascend(visit func(key *ledger.Pubkey, r arena.Ref) bool) {
	if f.pin.released.Load() {
		panic("a frozen copy is walked that was released")
	}
	f.byKey.Scan(func(l listing) bool { return visit(&f.view.records.At(l.ref).key, l.ref) })
	runtime.KeepAlive(f) // or the records that are visited could be reused
}

// Unpack makes a the account of a record. What a points at comes from dst.
func (f *Frozen) Unpack(r arena.Ref, a *ledger.Account, dst *Slab) { f.view.unpack(r, a, dst) }
