package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// recordStore owns the records and all they name.
type recordStore struct {
	view
	accounts, holds, extraSlots, delegated arena.Slots // of the chunks in the order of view
	keys                                   arena.Keys  // that names of records stand for
}

// put makes a record of an account.
func (v *recordStore) put(a *ledger.Account) arena.Ref {
	r := v.accounts.Take()
	v.records.Reach(r)
	v.write(r, a)
	return r
}

// write makes a the account of a record, which is empty or another account's no more.
func (v *recordStore) write(r arena.Ref, a *ledger.Account) {
	p := v.records.At(r)
	meta, needsExtra := flagsOf(a)
	held, extraRef := p.parts(v)
	if needsExtra {
		extraRef = v.writeExtra(extraRef, a)
	} else if extraRef != 0 {
		v.freeExtra(extraRef)
		extraRef = 0
	}
	p.more = extraRef
	if a.Token != nil {
		p.more = v.writeHolding(held, a.Token, extraRef)
	} else if held != 0 {
		v.freeHolding(held)
	}
	p.key, p.meta = a.Pubkey, meta
	p.owner = v.rename(p.owner, &a.Owner)
	if p.lamports = uint64(a.Lamports); a.Lamports == 0 {
		p.lamports = uint64(a.Since)
	}
}

// parts returns the holding and the extra of a record, 0 for none.
func (p *record) parts(v *recordStore) (held, extraRef arena.Ref) {
	if p.meta&flagToken != 0 {
		return p.more, v.holdings.At(p.more).more
	}
	return 0, p.more
}

// rename returns the name of a key for a record that has the name was.
func (v *recordStore) rename(was arena.Ref, k *ledger.Pubkey) arena.Ref {
	if was != 0 && *v.names.At(was) == *k {
		return was
	}
	now := v.keys.Use(k)
	v.keys.Drop(was)
	v.names = v.keys.Names
	return now
}

func (v *recordStore) writeHolding(r arena.Ref, t *ledger.TokenAccount, extraRef arena.Ref) arena.Ref {
	if r == 0 {
		r = v.holds.Take()
		v.holdings.Reach(r)
	}
	h := v.holdings.At(r)
	h.wallet, h.amount, h.mint, h.more = t.Owner, t.Amount, v.rename(h.mint, &t.Mint), extraRef
	return r
}

func (v *recordStore) writeExtra(r arena.Ref, a *ledger.Account) arena.Ref {
	if r == 0 {
		r = v.extraSlots.Take()
		v.extras.Reach(r)
	}
	x := v.extras.At(r)
	x.known, x.rentEpoch = a.Known, a.RentEpoch
	x.since, x.taught = uint64(a.Since), uint64(a.Provenance)
	if x.hasEarlier = a.FieldProvenance != nil; x.hasEarlier {
		x.earlier = *a.FieldProvenance
	}
	switch {
	case a.Token != nil && needsDelegation(a.Token):
		if x.delegation == 0 {
			x.delegation = v.delegated.Take()
			v.delegations.Reach(x.delegation)
		}
		v.delegations.At(x.delegation).details = a.Token.Details
	case x.delegation != 0:
		v.delegated.Give(x.delegation)
		x.delegation = 0
	}
	return r
}

// free gives up a record and all it names. Nobody may read it any more.
func (v *recordStore) free(r arena.Ref) {
	p := v.records.At(r)
	held, extraRef := p.parts(v)
	if held != 0 {
		v.freeHolding(held)
	}
	if extraRef != 0 {
		v.freeExtra(extraRef)
	}
	v.keys.Drop(p.owner)
	*p = record{}
	v.accounts.Give(r)
}

func (v *recordStore) freeHolding(r arena.Ref) {
	v.keys.Drop(v.holdings.At(r).mint)
	*v.holdings.At(r) = holding{}
	v.holds.Give(r)
}

func (v *recordStore) freeExtra(r arena.Ref) {
	if d := v.extras.At(r).delegation; d != 0 {
		v.delegated.Give(d)
	}
	*v.extras.At(r) = extra{}
	v.extraSlots.Give(r)
}
