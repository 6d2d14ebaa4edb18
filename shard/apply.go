package shard

import (
	"cmp"
	"math/bits"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/shard/packed"
)

// sliceKeys is how many keys a slice of work handles: some hundred microseconds of work, after which
// waiting queries are answered.
const sliceKeys = 128

// Applied is what a block, a rollback or base state changed in one shard.
type Applied struct {
	Updates   []ledger.Update  // in pubkey order; base state makes none
	Unchanged []ledger.Account // of a rollback: what the undone versions wrote and what is the same to readers as before
	Hash      ledger.StateHash // of the shard's state afterwards
}

// apply writes the shard's part of a block or of base state.
type apply struct {
	reply[Applied]
	Point
	direct     bool
	provenance ledger.Provenance
	writes     []ledger.AccountWrite
	mints      []ledger.MintWrite

	base *ledger.BaseState             // nil for a block, and after the first slice
	kept map[ledger.Pubkey][]baseWrite // the writes of base state that rollbacks may merge in again; nil: none

	todo []uint64 // indexes of the shard's remaining writes, sorted by key and, for one key, in write order
	next prefetch // of the first keys of todo
}

func (s *Shard) newApply(at Point, by ledger.Provenance, writes []ledger.AccountWrite, mints []ledger.MintWrite) *apply {
	return &apply{
		reply: newReply[Applied](s), Point: at, provenance: by, writes: writes, mints: mints, todo: s.ownWrites(writes),
	}
}

// ownWrites returns the indexes of the writes whose keys belong to the shard, sorted by key and, for one key, in write
// order. The sender of a block calls it, so the state is not locked while many writes are sorted.
func (s *Shard) ownWrites(writes []ledger.AccountWrite) []uint64 {
	// It sorts integers, each made of the first bits of a key and an index: that is faster than sorting structs with a function.
	mask := uint64(1)<<bits.Len(uint(len(writes))) - 1
	own := make([]uint64, 0, len(writes)/s.state.shards+sliceKeys)
	for i := range writes {
		if prefix := writes[i].Pubkey.Prefix(); s.state.owns(prefix) {
			own = append(own, prefix&^mask|uint64(i))
		}
	}
	slices.Sort(own)
	for from, to := 0, 1; from < len(own); from, to = to, to+1 {
		for to < len(own) && own[from]^own[to] <= mask {
			to++
		}
		if to-from > 1 { // writes of one key, or of several keys that begin with the same bits
			slices.SortFunc(own[from:to], func(a, b uint64) int {
				return cmp.Or(writes[a&mask].Pubkey.Compare(&writes[b&mask].Pubkey), cmp.Compare(a, b))
			})
		}
	}
	for i := range own {
		own[i] &= mask
	}
	return own
}

func (j *apply) step(s *state) (more bool) {
	w := writer{state: s, Point: j.Point, direct: j.direct}
	if j.base != nil {
		j.begin(s)
	}
	for range sliceKeys {
		switch {
		case len(j.todo) > 0:
			j.writeAccount(w)
		case len(j.mints) > 0:
			j.writeMint(w, &j.mints[0])
			j.mints = j.mints[1:]
		default:
			if j.direct {
				s.folded = j.Version
			}
			j.result.Hash = s.hash
			return false
		}
	}
	return true
}

// begin keeps base state until it is folded, because a rollback merges it in again.
func (j *apply) begin(s *state) {
	switch {
	case !j.direct:
		j.kept = make(map[ledger.Pubkey][]baseWrite)
		s.bases = append(s.bases, baseChange{j.Point, j.base, j.kept})
	case s.accounts.overlay.Len() > 0:
		panic("base state is applied directly while the overlay has versions")
	}
	j.base = nil
}

// keep keeps a write that a rollback may have to merge in again.
func (j *apply) keep(key ledger.Pubkey, w baseWrite) {
	if j.kept != nil {
		j.kept[key] = append(j.kept[key], w)
	}
}

func (j *apply) writeMint(w writer, m *ledger.MintWrite) {
	if !w.owns(m.Pubkey.Prefix()) {
		return
	}
	j.keep(m.Pubkey, baseWrite{mint: &m.Mint})
	var account *ledger.Account
	if !j.provenance.ByBlock() {
		account = w.atHorizon(w.accounts.unpack(w.accounts.at(&m.Pubkey, newest), &w.scratch[0]))
	}
	before := w.mints.at(&m.Pubkey, newest)
	w.setMint(m.Pubkey, before, ledger.MintAfter(account, before, &m.Mint, false, j.provenance))
}

// writeAccount applies all writes of the next key; together they make at most one update.
func (j *apply) writeAccount(w writer) {
	key := &j.writes[j.todo[0]].Pubkey
	if len(j.next.found) == 0 {
		j.next.find(w.accounts, j.writes, j.todo)
	}
	at := j.next.found[0]
	before := w.atHorizon(w.accounts.unpack(at, &w.scratch[0]))
	after, dst, spare := before, &w.scratch[1], &w.scratch[2]
	last := 0 // of the writes of the key
	for len(j.todo) > 0 {
		write := &j.writes[j.todo[0]]
		if write.Pubkey != *key {
			break
		}
		last = int(j.todo[0])
		j.todo, j.next.found = j.todo[1:], j.next.found[min(1, len(j.next.found)):]
		j.keep(*key, baseWrite{account: write})
		if setsMint(write) {
			mint := w.mints.at(key, newest)
			w.setMint(*key, mint, mintAfter(after, mint, write, j.provenance))
		}
		if after = ledger.MergeInto(dst, after, write, j.provenance); after == dst {
			dst, spare = spare, dst
		}
	}
	if after = w.admitted(before, after); after == before {
		return
	}
	if after != nil && after.Token != nil && before != nil && after.Token == before.Token {
		own := *after.Token // the update outlives the token facts that before points at
		after.Token = &own
	}
	if w.setAccount(at, key, before, after) && j.provenance.ByBlock() {
		u := updateOf(before, after)
		if after != nil && after.IsAsWritten(&j.writes[last], j.provenance) {
			u.Written = uint32(last) + 1
		}
		j.result.Updates = append(j.result.Updates, u)
	}
}

// setsMint reports whether an account write sets the mint facts of its key: it says whether the account is a mint, or it
// closes the account.
func setsMint(write *ledger.AccountWrite) bool {
	return write.Known&ledger.FieldMint != 0 || write.Lamports == 0
}

// mintAfter returns the facts of a mint after a write of its account that sets them. account and before are the account
// and the facts before the write.
func mintAfter(account *ledger.Account, before *ledger.Mint, write *ledger.AccountWrite, p ledger.Provenance) *ledger.Mint {
	closes, written := write.Lamports == 0, write.Mint
	if closes {
		written = nil
	}
	return ledger.MintAfter(account, before, written, closes, p)
}

// updateOf describes the change from before to after, one of which may be nil.
func updateOf(before, after *ledger.Account) ledger.Update {
	var u ledger.Update
	if after != nil {
		u.Account = *after
	} else {
		u.Account = ledger.Account{Pubkey: before.Pubkey}
	}
	u.OwnerBefore = groupLeft(packed.ByProgram, before, &u.Account)
	u.WalletBefore = groupLeft(packed.ByWallet, before, &u.Account)
	u.DataBefore = ledger.DataBefore(before, &u.Account)
	u.Account.Known &^= ledger.FieldMint // updates carry no mint facts
	return u
}

// groupLeft returns the group of kind k that a change takes the account out of, if there is one.
func groupLeft(k packed.Kind, before, after *ledger.Account) ledger.Opt[ledger.Pubkey] {
	if was := k.Of(before); was != nil && !packed.SameKey(was, k.Of(after)) {
		return ledger.Some(*was)
	}
	return ledger.Opt[ledger.Pubkey]{}
}
