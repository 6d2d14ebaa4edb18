package packed

import (
	"math"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// record is one account.
type record struct {
	key      ledger.Pubkey
	lamports uint64    // of a tombstone: the provenance of its closing
	meta     uint64    // provenance in the upper bits, flags in the lower
	owner    arena.Ref // the number of the program's key
	more     arena.Ref // the holding, else the data, else the extra; each refers to the next of these
}

// holding is the token facts of one account.
type holding struct {
	wallet ledger.Pubkey
	amount uint64
	mint   arena.Ref // the number of its key
	more   arena.Ref // the account's data, else its extra
}

// datum is the data of one account. It alone of the packed parts has a pointer; the write that set the data has the same one.
type datum struct {
	data ledger.Data
	more arena.Ref // the account's extra, if there is one
}

// extra has the fields of an account that its record cannot express.
type extra struct {
	since, provenance, rentEpoch uint64
	fieldProvenance              ledger.FieldProvenance
	delegation                   arena.Ref
	known                        ledger.Fields
	hasFieldProvenance           bool
}

// The lower bits of meta. The lowest five are the known fields of an account.
const (
	flagKnown      = uint64(ledger.FieldsAll)
	flagExecutable = 1 << 5
	flagRentMax    = 1 << 6 // the rent epoch is the usual 2^64-1; without it 0
	flagToken      = 1 << 7
	flagDetails    = 1 << 8 // the state of the holding is known; it takes the two bits from stateShift on
	stateShift     = 9
	stateMask      = 3
	flagExtra      = 1 << 11
	flagTombstone  = 1 << 12
	flagDataKnown  = 1 << 13
	flagData       = 1 << 14 // there is data

	provenanceShift = 16
)

// exists reports whether the account is live.
func (p *record) exists() bool { return p.meta&flagTombstone == 0 }

// flagsOf returns the meta of an account's record, and whether the account also needs an extra.
func flagsOf(a *ledger.Account) (meta uint64, needsExtra bool) {
	meta = uint64(a.Known)&flagKnown | uint64(a.Provenance)<<provenanceShift
	needsExtra = a.Known&^(ledger.FieldsAll|ledger.FieldData) != 0 || uint64(a.Provenance)>>(64-provenanceShift) != 0 || a.FieldProvenance != nil
	if a.Executable {
		meta |= flagExecutable
	}
	switch a.RentEpoch {
	case 0:
	case math.MaxUint64:
		meta |= flagRentMax
	default:
		needsExtra = true
	}
	if a.Lamports == 0 {
		meta |= flagTombstone
	} else if a.Since != 0 {
		needsExtra = true
	}
	if t := a.Token; t != nil {
		meta |= flagToken
		if t.Details.Known {
			meta |= flagDetails
		}
		meta |= uint64(t.Details.Value.State) & stateMask << stateShift
		needsExtra = needsExtra || needsDelegation(t)
	}
	if a.Known&ledger.FieldData != 0 {
		meta |= flagDataKnown
	}
	if a.Data.Len() > 0 {
		meta |= flagData
	}
	if needsExtra {
		meta |= flagExtra
	}
	return meta, needsExtra
}

// needsDelegation reports whether a holding has details that flags cannot express.
func needsDelegation(t *ledger.TokenAccount) bool {
	plain := ledger.TokenDetails{State: t.Details.Value.State & stateMask}
	return t.Details.Value != plain
}

// unpackShallow sets a to the account of a record without Token, Data and FieldProvenance.
func (s *recordStore) unpackShallow(r arena.Ref, a *ledger.Account) {
	p := s.records.At(r)
	*a = ledger.Account{
		Pubkey: p.key, Owner: s.keys.Names.At(p.owner).Pubkey, Executable: p.meta&flagExecutable != 0,
		Known: ledger.Fields(p.meta & flagKnown), Provenance: ledger.Provenance(p.meta >> provenanceShift),
	}
	if p.exists() {
		a.Lamports = ledger.Lamports(p.lamports)
	} else {
		a.Since = ledger.Provenance(p.lamports)
	}
	if p.meta&flagRentMax != 0 {
		a.RentEpoch = math.MaxUint64
	}
	if p.meta&flagDataKnown != 0 {
		a.Known |= ledger.FieldData
	}
	if p.meta&flagExtra != 0 {
		x := s.extras.At(s.parts(p).extra)
		a.Known, a.RentEpoch = x.known, x.rentEpoch
		a.Since, a.Provenance = ledger.Provenance(x.since), ledger.Provenance(x.provenance)
	}
}

// room is what an unpacked account points at.
type room struct {
	token           ledger.TokenAccount
	fieldProvenance ledger.FieldProvenance
}

// unpack sets a to the account of a record. What a points at is in to, except for its data. to may be nil for a record that has
// neither a holding nor an extra.
func (s *recordStore) unpack(r arena.Ref, a *ledger.Account, to *room) {
	s.unpackShallow(r, a)
	p := s.records.At(r)
	parts := s.parts(p)
	if parts.holding != 0 {
		h := s.holdings.At(parts.holding)
		to.token = ledger.TokenAccount{Mint: s.keys.Names.At(h.mint).Pubkey, Owner: h.wallet, Amount: h.amount}
		to.token.Details.Known = p.meta&flagDetails != 0
		to.token.Details.Value.State = ledger.TokenState(p.meta >> stateShift & stateMask)
		a.Token = &to.token
	}
	if parts.data != 0 {
		a.Data = s.data.At(parts.data).data
	}
	if parts.extra == 0 {
		return
	}
	x := s.extras.At(parts.extra)
	if x.hasFieldProvenance {
		to.fieldProvenance = x.fieldProvenance
		a.FieldProvenance = &to.fieldProvenance
	}
	if x.delegation != 0 {
		a.Token.Details = *s.delegations.At(x.delegation)
	}
}
