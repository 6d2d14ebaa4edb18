package packed

import (
	"runtime"

	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// Frozen is the content of a base when it was frozen. Only one goroutine at a time may read it.
type Frozen struct {
	store recordStore
	byKey *btree.BTreeG[listing]
	pin   *pin
	room  room // for Unpack
}

// Freeze returns a copy of b that is valid until it is released. A copy that is dropped without Release is released
// when the garbage collector finds it.
func (b *Base) Freeze() *Frozen {
	f := &Frozen{store: b.store, byKey: b.byKey.listings.Copy(), pin: b.pins.add()}
	runtime.AddCleanup(f, func(p *pin) { p.released.Store(true) }, f.pin)
	return f
}

// Release lets the base reclaim the records that only f can read. f must not be read any more.
func (f *Frozen) Release() { f.pin.released.Store(true) }

// Ascend calls visit for the records of all accounts, in key order, until it returns false.
func (f *Frozen) Ascend(visit func(key *ledger.Pubkey, r arena.Ref) bool) {
	if f.pin.released.Load() {
		panic("a frozen copy is walked after its release")
	}
	f.byKey.Scan(func(l listing) bool { return visit(&f.store.records.At(l.ref).key, l.ref) })
	runtime.KeepAlive(f) // its cleanup would release the records during the walk
}

// Unpack sets a to the account of a record. What a points at is valid until the next call.
func (f *Frozen) Unpack(r arena.Ref, a *ledger.Account) { f.store.unpack(r, a, &f.room) }
