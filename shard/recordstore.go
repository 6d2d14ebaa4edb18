package shard

import "ledgerd/engine/ledger"

// recordStore owns the records and all they name.
type recordStore struct {
	view
	accounts, holds, extraSlots, delegated slots // of the chunks in the order of view
	keys                                   interned
}

func newRecordStore() *recordStore {
	v := &recordStore{}
	v.keys.names = &v.names
	return v
}

// put makes a record of an account.
func (v *recordStore) put(a *ledger.Account) ref {
	r := v.accounts.take()
	v.records.reach(r)
	v.write(r, a)
	return r
}

// write makes a the account of a record, which is empty or another account's no more.
func (v *recordStore) write(r ref, a *ledger.Account) {
	p := v.records.at(r)
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
func (p *record) parts(v *recordStore) (held, extraRef ref) {
	if p.meta&flagToken != 0 {
		return p.more, v.holdings.at(p.more).more
	}
	return 0, p.more
}

// rename returns the name of a key for a record that has the name was.
func (v *recordStore) rename(was ref, k *ledger.Pubkey) ref {
	if was != 0 && *v.names.at(was) == *k {
		return was
	}
	now := v.keys.use(k)
	v.keys.drop(was)
	return now
}

func (v *recordStore) writeHolding(r ref, t *ledger.TokenAccount, extraRef ref) ref {
	if r == 0 {
		r = v.holds.take()
		v.holdings.reach(r)
	}
	h := v.holdings.at(r)
	h.wallet, h.amount, h.mint, h.more = t.Owner, t.Amount, v.rename(h.mint, &t.Mint), extraRef
	return r
}

func (v *recordStore) writeExtra(r ref, a *ledger.Account) ref {
	if r == 0 {
		r = v.extraSlots.take()
		v.extras.reach(r)
	}
	x := v.extras.at(r)
	x.known, x.rentEpoch = a.Known, a.RentEpoch
	x.since, x.taught = uint64(a.Since), uint64(a.Provenance)
	if x.hasEarlier = a.FieldProvenance != nil; x.hasEarlier {
		x.earlier = *a.FieldProvenance
	}
	switch {
	case a.Token != nil && needsDelegation(a.Token):
		if x.delegation == 0 {
			x.delegation = v.delegated.take()
			v.delegations.reach(x.delegation)
		}
		v.delegations.at(x.delegation).details = a.Token.Details
	case x.delegation != 0:
		v.delegated.give(x.delegation)
		x.delegation = 0
	}
	return r
}

// free gives up a record and all it names. Nobody may read it any more.
func (v *recordStore) free(r ref) {
	p := v.records.at(r)
	held, extraRef := p.parts(v)
	if held != 0 {
		v.freeHolding(held)
	}
	if extraRef != 0 {
		v.freeExtra(extraRef)
	}
	v.keys.drop(p.owner)
	*p = record{}
	v.accounts.give(r)
}

func (v *recordStore) freeHolding(r ref) {
	v.keys.drop(v.holdings.at(r).mint)
	*v.holdings.at(r) = holding{}
	v.holds.give(r)
}

func (v *recordStore) freeExtra(r ref) {
	if d := v.extras.at(r).delegation; d != 0 {
		v.delegated.give(d)
	}
	*v.extras.at(r) = extra{}
	v.extraSlots.give(r)
}
