package shard

import (
	"math"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// # The packed base
//
// The base holds nearly all accounts of a ledger, and most of them are not written for
// a long time. It keeps each as one record of fixed size without pointers, so that an account
// takes little memory and the garbage collector has nothing to look at:
//
//   - a record for every account, 56 bytes: key, lamports, who taught it, flags
//   - a holding for every token account, 48 bytes more: wallet, amount, mint
//   - an extra for what few accounts have, and a delegation for what few holdings have:
//     whatever a ledger.Account can say comes out of its record as it went in
//   - programs and mints once each, counted ([interned])
//
// Records lie in chunks that never move; a [ref] names one by its place. Three trees list
// them: by key, by program, by wallet ([tree]). A reader gets a ledger.Account that is made of
// the record ([view.unpack]), so what it was answered stays true whatever becomes of the record.
//
// A record is written over where its account changes, which leaves the trees alone. A record that a
// frozen copy may read is retired instead, and reclaimed when no such copy is left ([pins]).

// record is one account. What more means depends on the flags.
type record struct {
	key      ledger.Pubkey
	lamports uint64    // of a tombstone: who closed it
	meta     uint64    // who taught it in the upper bits, flags in the lower
	owner    arena.Ref // the program's name, 0 for the key of zeros
	more     arena.Ref // the holding if there is one, else the extra if there is one
}

// holding is the token facts of one account.
type holding struct {
	wallet ledger.Pubkey
	amount uint64
	mint   arena.Ref // its name, 0 for the key of zeros
	more   arena.Ref // the account's extra, if there is one
}

// extra says in full what the flags of an account cannot.
type extra struct {
	since, taught, rentEpoch uint64
	earlier                  ledger.EarlierFields
	delegation               arena.Ref
	known                    ledger.Fields
	hasEarlier               bool
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

	taughtShift = 16
)

// exists reports whether the account is live.
func (p *record) exists() bool { return p.meta&flagTombstone == 0 }

// program returns the name of the program that is known to own the account, as byProgram does.
func (p *record) program() (arena.Ref, bool) {
	return p.owner, p.exists() && p.meta&uint64(ledger.FieldOwner) != 0
}

// flagsOf returns meta as far as it goes, and whether the account needs an extra besides.
func flagsOf(a *ledger.Account) (meta uint64, needsExtra bool) {
	meta = uint64(a.Known)&flagKnown | uint64(a.Taught)<<taughtShift
	needsExtra = uint64(a.Known)&^flagKnown != 0 || uint64(a.Taught)>>(64-taughtShift) != 0 || a.Earlier != nil
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

// needsDelegation reports whether a holding has details that flags cannot say.
func needsDelegation(t *ledger.TokenAccount) bool {
	plain := ledger.TokenDetails{State: t.Details.Value.State & stateMask}
	return t.Details.Value != plain
}

// view is the records as they can be read, by the shard or by whoever holds a frozen copy.
type view struct {
	records     arena.Chunks[record]
	holdings    arena.Chunks[holding]
	extras      arena.Chunks[extra]
	delegations arena.Chunks[delegation]
	names       arena.Chunks[ledger.Pubkey] // of programs and mints
}

// unpackShown makes a the account of a record without what it would point at.
func (v *view) unpackShown(r arena.Ref, a *ledger.Account) {
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

// unpackRecord makes a the account as far as the record itself says.
func (v *view) unpackRecord(p *record, a *ledger.Account) {
	*a = ledger.Account{
		Pubkey: p.key, Known: ledger.Fields(p.meta & flagKnown), Executable: p.meta&flagExecutable != 0,
		Taught: ledger.Taught(p.meta >> taughtShift),
	}
	if p.owner != 0 {
		a.Owner = *v.names.At(p.owner)
	}
	if p.meta&flagTombstone != 0 {
		a.Since = ledger.Taught(p.lamports)
	} else {
		a.Lamports = ledger.Lamports(p.lamports)
	}
	if p.meta&flagRentMax != 0 {
		a.RentEpoch = math.MaxUint64
	}
}

// unpack makes a the account of a record. Token facts and the like take room.
func (v *view) unpack(r arena.Ref, a *ledger.Account, dst *slab) {
	p := v.records.At(r)
	v.unpackRecord(p, a)
	more := p.more
	if p.meta&flagToken != 0 {
		h := v.holdings.At(more)
		a.Token = dst.token()
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

// applyTo puts into a what extra says of the account itself.
func (x *extra) applyTo(a *ledger.Account) {
	a.Known, a.RentEpoch = x.known, x.rentEpoch
	a.Since, a.Taught = ledger.Taught(x.since), ledger.Taught(x.taught)
}

func (v *view) unpackExtra(x *extra, a *ledger.Account, dst *slab) {
	x.applyTo(a)
	if x.hasEarlier {
		a.Earlier = dst.earlier()
		*a.Earlier = x.earlier
	}
	if x.delegation != 0 {
		a.Token.Details = v.delegations.At(x.delegation).details
	}
}

// slab is where the parts of unpacked accounts go that an account points at. Those that live
// on get memory for some at once, which saves most of what that costs one by one. It belongs to
// one goroutine.
type slab struct {
	// reused makes an account good only until the next is unpacked.
	reused bool

	tokens   []ledger.TokenAccount
	earliers []ledger.EarlierFields
}

// slabParts is how many parts get memory at once: few, so that one that lives on pins little.
const slabParts = 16

// token returns empty token facts.
func (m *slab) token() (t *ledger.TokenAccount) {
	if len(m.tokens) == 0 {
		m.tokens = make([]ledger.TokenAccount, slabParts)
	}
	t = &m.tokens[0]
	if m.reused {
		*t = ledger.TokenAccount{}
	} else {
		m.tokens = m.tokens[1:]
	}
	return t
}

func (m *slab) earlier() (e *ledger.EarlierFields) {
	if len(m.earliers) == 0 {
		m.earliers = make([]ledger.EarlierFields, slabParts)
	}
	if e = &m.earliers[0]; !m.reused {
		m.earliers = m.earliers[1:]
	}
	return e
}
