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
	more     arena.Ref // the holding if there is one, else the extra if there is one
}

// holding is the token facts of one account.
type holding struct {
	wallet ledger.Pubkey
	amount uint64
	mint   arena.Ref // the number of its key
	more   arena.Ref // the account's extra, if there is one
}

// extra has the fields of an account that its record cannot express.
type extra struct {
	since, provenance, rentEpoch uint64
	fieldProvenance              ledger.FieldProvenance
	delegation                   arena.Ref
	known                        ledger.Fields
	hasFieldProvenance           bool
}

// delegation is the details of a holding where they are more than its state.
type delegation struct {
	details ledger.Opt[ledger.TokenDetails]
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

	provenanceShift = 16
)

// exists reports whether the account is live.
func (p *record) exists() bool { return p.meta&flagTombstone == 0 }

// program returns the number of the program that is known to own the account, if it is live.
func (p *record) program() (arena.Ref, bool) {
	return p.owner, p.exists() && p.meta&uint64(ledger.FieldOwner) != 0
}

// flagsOf returns the meta of an account's record, and whether the account also needs an extra.
func flagsOf(a *ledger.Account) (meta uint64, needsExtra bool) {
	meta = uint64(a.Known)&flagKnown | uint64(a.Provenance)<<provenanceShift
	needsExtra = uint64(a.Known)&^flagKnown != 0 || uint64(a.Provenance)>>(64-provenanceShift) != 0 || a.FieldProvenance != nil
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

// view is the read side of the records: of the owner of the base, or of the reader of a frozen copy.
type view struct {
	records     arena.Chunks[record]
	holdings    arena.Chunks[holding]
	extras      arena.Chunks[extra]
	delegations arena.Chunks[delegation]
	names       arena.Chunks[ledger.Pubkey] // of programs and mints
}

// unpackShallow is unpack without Token and FieldProvenance.
func (v *view) unpackShallow(r arena.Ref, a *ledger.Account) {
	p := v.records.At(r)
	v.unpackRecord(p, a)
	if p.meta&flagExtra != 0 {
		more := p.more
		if p.meta&flagToken != 0 {
			more = v.holdings.At(more).more
		}
		v.extras.At(more).applyTo(a)
	}
}

// unpackRecord sets a to the account without its holding and extra.
func (v *view) unpackRecord(p *record, a *ledger.Account) {
	*a = ledger.Account{
		Pubkey: p.key, Known: ledger.Fields(p.meta & flagKnown), Executable: p.meta&flagExecutable != 0,
		Provenance: ledger.Provenance(p.meta >> provenanceShift),
	}
	if p.owner != 0 {
		a.Owner = *v.names.At(p.owner)
	}
	if p.meta&flagTombstone != 0 {
		a.Since = ledger.Provenance(p.lamports)
	} else {
		a.Lamports = ledger.Lamports(p.lamports)
	}
	if p.meta&flagRentMax != 0 {
		a.RentEpoch = math.MaxUint64
	}
}

// unpack sets a to the account of a record. What a points at is allocated from dst.
func (v *view) unpack(r arena.Ref, a *ledger.Account, dst *Slab) {
	p := v.records.At(r)
	v.unpackRecord(p, a)
	more := p.more
	if p.meta&flagToken != 0 {
		h := v.holdings.At(more)
		a.Token = dst.Token()
		a.Token.Owner, a.Token.Amount = h.wallet, h.amount
		if h.mint != 0 {
			a.Token.Mint = *v.names.At(h.mint)
		}
		a.Token.Details.Known = p.meta&flagDetails != 0
		a.Token.Details.Value.State = ledger.TokenState(p.meta >> stateShift & stateMask)
		more = h.more
	}
	if p.meta&flagExtra != 0 {
		v.unpackExtra(v.extras.At(more), a, dst)
	}
}

// applyTo sets the fields of a that need no allocation.
func (x *extra) applyTo(a *ledger.Account) {
	a.Known, a.RentEpoch = x.known, x.rentEpoch
	a.Since, a.Provenance = ledger.Provenance(x.since), ledger.Provenance(x.provenance)
}

func (v *view) unpackExtra(x *extra, a *ledger.Account, dst *Slab) {
	x.applyTo(a)
	if x.hasFieldProvenance {
		a.FieldProvenance = dst.fieldProvenance()
		*a.FieldProvenance = x.fieldProvenance
	}
	if x.delegation != 0 {
		a.Token.Details = v.delegations.At(x.delegation).details
	}
}

// Slab allocates what unpacked accounts point at, several values at once, which saves most of the cost of single
// allocations. It belongs to one goroutine.
type Slab struct {
	// Reused: each value is valid only until the next account is unpacked, and its memory is used again.
	Reused bool

	tokens           []ledger.TokenAccount
	fieldProvenances []ledger.FieldProvenance
}

// slabParts is how many values are allocated at once: few, since one that is still in use keeps all in memory.
const slabParts = 16

// Token returns empty token facts.
func (s *Slab) Token() (t *ledger.TokenAccount) {
	if len(s.tokens) == 0 {
		s.tokens = make([]ledger.TokenAccount, slabParts)
	}
	t = &s.tokens[0]
	if s.Reused {
		*t = ledger.TokenAccount{}
	} else {
		s.tokens = s.tokens[1:]
	}
	return t
}

func (s *Slab) fieldProvenance() (e *ledger.FieldProvenance) {
	if len(s.fieldProvenances) == 0 {
		s.fieldProvenances = make([]ledger.FieldProvenance, slabParts)
	}
	if e = &s.fieldProvenances[0]; !s.Reused {
		s.fieldProvenances = s.fieldProvenances[1:]
	}
	return e
}
