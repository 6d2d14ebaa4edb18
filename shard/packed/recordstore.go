package packed

import (
	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// recordStore has the records and what they refer to. A frozen copy has a shallow copy of it.
type recordStore struct {
	records     arena.Pool[record]
	holdings    arena.Pool[holding]
	data        arena.Pool[datum]
	dataBytes   int // what data points at
	extras      arena.Pool[extra]
	delegations arena.Pool[ledger.Opt[ledger.TokenDetails]] // the details of holdings where they are more than a state
	keys        arena.Keys                                  // of programs and mints
}

// put returns a new record of an account.
func (s *recordStore) put(a *ledger.Account) arena.Ref {
	r := s.records.Take()
	s.write(r, a)
	return r
}

// write sets an empty record, or an older record of the same account, to a.
func (s *recordStore) write(r arena.Ref, a *ledger.Account) {
	p := s.records.At(r)
	was := s.parts(p)
	s.freeExtra(was.extra)
	meta, needsExtra := flagsOf(a)
	p.more = 0
	if needsExtra {
		p.more = s.putExtra(a)
	}
	if a.Data.Len() > 0 {
		p.more = s.writeData(was.data, a.Data, p.more)
	} else {
		s.freeData(was.data)
	}
	if a.Token != nil {
		p.more = s.writeHolding(was.holding, a.Token, p.more)
	} else {
		s.freeHolding(was.holding)
	}
	p.key, p.meta = a.Pubkey, meta
	p.owner = s.rename(p.owner, &a.Owner)
	if p.lamports = uint64(a.Lamports); a.Lamports == 0 {
		p.lamports = uint64(a.Since)
	}
}

// sameGroups reports whether account a is in the same groups as its record r, of the kinds below kinds. It compares the fields
// that determine the groups, since nearly all writes leave these alone and a wallet takes long to hash.
func (s *recordStore) sameGroups(r arena.Ref, a *ledger.Account, kinds Kind) bool {
	const listed = flagTombstone | uint64(ledger.FieldOwner) | flagToken
	p := s.records.At(r)
	meta, _ := flagsOf(a)
	return (p.meta^meta)&listed == 0 && s.keys.Names.At(p.owner).Pubkey == a.Owner &&
		(a.Token == nil || s.holdings.At(p.more).wallet == a.Token.Owner) &&
		(a.Token == nil || kinds <= ByMint || s.keys.Names.At(s.holdings.At(p.more).mint).Pubkey == a.Token.Mint) &&
		((p.meta|meta)&flagExtra == 0 || SameKey(s.delegate(p), ByDelegate.Of(a))) // without extras there is no delegate
}

// delegate returns the delegate of the account of a record, nil for none.
func (s *recordStore) delegate(p *record) *ledger.Pubkey {
	r := s.parts(p).extra
	if r == 0 || !p.exists() || s.extras.At(r).delegation == 0 {
		return nil
	}
	return delegateIn(s.delegations.At(s.extras.At(r).delegation))
}

// SameKey reports whether two keys, nil for none, are equal.
func SameKey(a, b *ledger.Pubkey) bool { return a == b || a != nil && b != nil && *a == *b }

// parts are what a record refers to, 0 for none.
type parts struct{ holding, data, extra arena.Ref }

func (s *recordStore) parts(p *record) (all parts) {
	all.extra = p.more
	if p.meta&flagToken != 0 {
		all.holding, all.extra = all.extra, s.holdings.At(all.extra).more
	}
	if p.meta&flagData != 0 {
		all.data, all.extra = all.extra, s.data.At(all.extra).more
	}
	return all
}

// rename returns the number of key k for a record that so far had the number was, 0 for none.
func (s *recordStore) rename(was arena.Ref, k *ledger.Pubkey) arena.Ref {
	if was == 0 {
		return s.keys.Use(k)
	}
	if s.keys.Names.At(was).Pubkey == *k {
		return was
	}
	now := s.keys.Use(k)
	s.keys.Drop(was)
	return now
}

func (s *recordStore) writeData(r arena.Ref, d ledger.Data, more arena.Ref) arena.Ref {
	if r == 0 {
		r = s.data.Take()
	}
	s.dataBytes += d.SizeBytes() - s.data.At(r).data.SizeBytes()
	*s.data.At(r) = datum{d, more}
	return r
}

func (s *recordStore) writeHolding(r arena.Ref, t *ledger.TokenAccount, more arena.Ref) arena.Ref {
	if r == 0 {
		r = s.holdings.Take()
	}
	h := s.holdings.At(r)
	h.wallet, h.amount, h.mint, h.more = t.Owner, t.Amount, s.rename(h.mint, &t.Mint), more
	return r
}

func (s *recordStore) putExtra(a *ledger.Account) arena.Ref {
	r := s.extras.Take()
	x := s.extras.At(r)
	x.known, x.rentEpoch = a.Known, a.RentEpoch
	x.since, x.provenance = uint64(a.Since), uint64(a.Provenance)
	if x.hasFieldProvenance = a.FieldProvenance != nil; x.hasFieldProvenance {
		x.fieldProvenance = *a.FieldProvenance
	}
	if a.Token != nil && needsDelegation(a.Token) {
		x.delegation = s.delegations.Take()
		*s.delegations.At(x.delegation) = a.Token.Details
	}
	return r
}

// sizeBytes returns how much memory the records and what they refer to take.
func (s *recordStore) sizeBytes() int {
	return s.records.SizeBytes() + s.holdings.SizeBytes() + s.data.SizeBytes() + s.dataBytes + s.extras.SizeBytes() + s.delegations.SizeBytes() + s.keys.SizeBytes()
}

// free frees a record and what it refers to. Nobody may read it any more.
func (s *recordStore) free(r arena.Ref) {
	p := s.records.At(r)
	parts := s.parts(p)
	s.freeHolding(parts.holding)
	s.freeData(parts.data)
	s.freeExtra(parts.extra)
	s.keys.Drop(p.owner)
	s.records.Give(r)
}

func (s *recordStore) freeData(r arena.Ref) {
	if r != 0 {
		s.dataBytes -= s.data.At(r).data.SizeBytes()
		s.data.Give(r)
	}
}

func (s *recordStore) freeHolding(r arena.Ref) {
	if r != 0 {
		s.keys.Drop(s.holdings.At(r).mint)
		s.holdings.Give(r)
	}
}

func (s *recordStore) freeExtra(r arena.Ref) {
	if r == 0 {
		return
	}
	if d := s.extras.At(r).delegation; d != 0 {
		s.delegations.Give(d)
	}
	s.extras.Give(r)
}
