package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// recordStore owns the records and what they refer to.
type recordStore struct {
	view
	recordSlots, holdingSlots, extraSlots, delegationSlots arena.Slots // of the chunks in view
	keys                                                   arena.Keys  // of programs and mints
}

// put returns a new record of an account.
func (v *recordStore) put(a *ledger.Account) arena.Ref {
	r := v.recordSlots.Take()
	v.records.Reach(r)
	v.write(r, a)
	return r
}

// write sets an empty record, or an older record of the same account, to a.
func (v *recordStore) write(r arena.Ref, a *ledger.Account) {
	p := v.records.At(r)
	meta, needsExtra := flagsOf(a)
	holdingRef, extraRef := p.parts(v)
	if needsExtra {
		extraRef = v.writeExtra(extraRef, a)
	} else if extraRef != 0 {
		v.freeExtra(extraRef)
		extraRef = 0
	}
	p.more = extraRef
	if a.Token != nil {
		p.more = v.writeHolding(holdingRef, a.Token, extraRef)
	} else if holdingRef != 0 {
		v.freeHolding(holdingRef)
	}
	p.key, p.meta = a.Pubkey, meta
	p.owner = v.rename(p.owner, &a.Owner)
	if p.lamports = uint64(a.Lamports); a.Lamports == 0 {
		p.lamports = uint64(a.Since)
	}
}

// parts returns the holding and the extra of a record, 0 for none.
func (p *record) parts(v *recordStore) (holdingRef, extraRef arena.Ref) {
	if p.meta&flagToken != 0 {
		return p.more, v.holdings.At(p.more).more
	}
	return 0, p.more
}

// rename returns the number of a key for a record that had the number was.
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
		r = v.holdingSlots.Take()
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
	x.since, x.provenance = uint64(a.Since), uint64(a.Provenance)
	if x.hasFieldProvenance = a.FieldProvenance != nil; x.hasFieldProvenance {
		x.fieldProvenance = *a.FieldProvenance
	}
	switch {
	case a.Token != nil && needsDelegation(a.Token):
		if x.delegation == 0 {
			x.delegation = v.delegationSlots.Take()
			v.delegations.Reach(x.delegation)
		}
		v.delegations.At(x.delegation).details = a.Token.Details
	case x.delegation != 0:
		v.delegationSlots.Give(x.delegation)
		x.delegation = 0
	}
	return r
}

// free frees a record and what it refers to. Nobody may read it any more.
func (v *recordStore) free(r arena.Ref) {
	p := v.records.At(r)
	holdingRef, extraRef := p.parts(v)
	if holdingRef != 0 {
		v.freeHolding(holdingRef)
	}
	if extraRef != 0 {
		v.freeExtra(extraRef)
	}
	v.keys.Drop(p.owner)
	*p = record{}
	v.recordSlots.Give(r)
}

func (v *recordStore) freeHolding(r arena.Ref) {
	v.keys.Drop(v.holdings.At(r).mint)
	*v.holdings.At(r) = holding{}
	v.holdingSlots.Give(r)
}

func (v *recordStore) freeExtra(r arena.Ref) {
	if d := v.extras.At(r).delegation; d != 0 {
		v.delegationSlots.Give(d)
	}
	*v.extras.At(r) = extra{}
	v.extraSlots.Give(r)
}
