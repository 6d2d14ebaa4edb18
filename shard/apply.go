package shard

import (
	"cmp"
	"slices"

	"ledgerd/engine/ledger"
)

// sliceKeys is how many keys a slice of a job handles: some hundred microseconds of work, after which
// waiting queries are answered.
const sliceKeys = 128

// Applied is what a block, a rollback or base state changed in one shard.
type Applied struct {
	Updates   []ledger.Update  // in pubkey order
	Unchanged []ledger.Account // of a rollback: written by the undone versions, but the same for readers
	Hash      ledger.StateHash // of the shard's state afterwards
}

// job is one piece of work, done in slices. step reports whether there is more.
type job interface {
	step(*state) (more bool)
}

// apply writes the shard's part of a block or of base state.
type apply struct {
	version    ledger.Version
	direct     bool
	provenance ledger.Provenance
	writes     []ledger.AccountWrite
	mints      []ledger.MintWrite

	base *ledger.BaseState // nil for a block

	started bool
	todo    []keyedWrite // remaining writes of this shard by key, those of one key in their order
	mintsAt int          // the next of mints
	result  Applied
}

// keyedWrite is a write, to be sorted by its key.
type keyedWrite struct {
	prefix uint64 // of the key
	at     int    // index among the writes
}

func (j *apply) step(s *state) (more bool) {
	w := writer{state: s, version: j.version, direct: j.direct}
	if !j.started {
		j.started = true
		j.begin(w)
	}
	for range sliceKeys {
		switch {
		case len(j.todo) > 0:
			j.writeAccount(w)
		case j.mintsAt < len(j.mints):
			j.writeMint(w, &j.mints[j.mintsAt])
			j.mintsAt++
		default:
			if j.direct {
				s.folded = j.version
			}
			j.result.Hash = s.hash
			return false
		}
	}
	return true
}

// begin selects and sorts the writes that belong to this shard.
func (j *apply) begin(w writer) {
	j.todo = make([]keyedWrite, 0, len(j.writes)/w.shards+sliceKeys)
	for i := range j.writes {
		if p := j.writes[i].Pubkey.Prefix(); w.owns(p) {
			j.todo = append(j.todo, keyedWrite{p, i})
		}
	}
	j.sort()
	if j.direct && w.accounts.overlay.Len() > 0 {
		panic("base state is applied directly while the overlay has versions")
	}
	j.result.Updates = make([]ledger.Update, 0, len(j.todo))
	if j.base != nil && !j.direct {
		w.bases = append(w.bases, baseChange{j.version, j.base})
	}
}

// sort sorts todo by key: first a radix sort by 33 bits of the keys, which leaves few out of order, then a
// comparison sort. The radix sort pays off at a million writes a second.
func (j *apply) sort() {
	const bits = 11 // of one pass: the write positions of 2^11 counters stay in the processor's caches
	from, to := j.todo, make([]keyedWrite, len(j.todo))
	for shift := 64 - 3*bits; shift < 64 && len(from) > 1<<(bits-3); shift += bits {
		var at [1 << bits]int32
		for i := range from {
			at[from[i].prefix>>shift%(1<<bits)]++
		}
		sum := int32(0)
		for i, n := range at {
			at[i] = sum
			sum += n
		}
		for _, w := range from {
			digit := w.prefix >> shift % (1 << bits)
			to[at[digit]] = w
			at[digit]++
		}
		from, to = to, from
	}
	j.todo = from
	slices.SortFunc(j.todo, func(a, b keyedWrite) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if c := j.writes[a.at].Pubkey.Compare(&j.writes[b.at].Pubkey); c != 0 {
			return c
		}
		return a.at - b.at
	})
}

func (j *apply) writeMint(w writer, m *ledger.MintWrite) {
	if w.owns(m.Pubkey.Prefix()) {
		var held *ledger.Account
		if !j.provenance.ByBlock() {
			held = w.accounts.newest(w.accounts.find(&m.Pubkey), &w.scratch[0])
		}
		before := w.mints.at(&m.Pubkey, newest)
		j.learnMint(w, m.Pubkey, before, ledger.MintAfter(held, before, &m.Mint, false, j.provenance))
	}
}

// writeAccount applies all writes of the next key; together they make at most one update.
func (j *apply) writeAccount(w writer) {
	key := &j.writes[j.todo[0].at].Pubkey
	at := j.find(w)
	before := w.accounts.newest(at, &w.scratch[0])
	after, dst, spare := before, &w.scratch[1], &w.scratch[2]
	for len(j.todo) > 0 {
		write := &j.writes[j.todo[0].at]
		if write.Pubkey != *key {
			break
		}
		j.todo = j.todo[1:]
		j.teachMint(w, after, write)
		if after = ledger.MergeInto(dst, after, write, j.provenance); after == dst {
			dst, spare = spare, dst
		}
	}
	if w.filter != nil {
		after = w.admitted(before, after)
	}
	if after == before {
		return
	}
	if after != nil && after.Token != nil && before != nil && after.Token == before.Token {
		own := *after.Token // the update outlives the token facts that before points at
		after.Token = &own
	}
	if w.setAccount(at, key, before, after) {
		j.result.Updates = append(j.result.Updates, updateOf(before, after))
	}
	if after == nil {
		w.accounts.noteForgotten(key)
	}
}

// find returns where the next key of todo is. It looks up sliceKeys keys at once.
func (j *apply) find(w writer) found {
	a := &w.accounts.prefetch
	if a.next == a.n {
		a.gather(j.writes, j.todo)
		w.accounts.findAll(a)
	}
	return a.take()
}

// teachMint applies the mint facts in a write of the mint's own account.
func (j *apply) teachMint(w writer, held *ledger.Account, write *ledger.AccountWrite) {
	if write.Known&ledger.FieldMint == 0 && write.Lamports != 0 {
		return
	}
	before := w.mints.at(&write.Pubkey, newest)
	j.learnMint(w, write.Pubkey, before, mintAfter(held, before, write, j.provenance))
}

// mintAfter returns the facts of a mint after a write of its account. held is the account and before are the
// facts before the write.
func mintAfter(held *ledger.Account, before *ledger.Mint, write *ledger.AccountWrite, provenance ledger.Provenance) *ledger.Mint {
	closes, says := write.Lamports == 0, write.Mint
	if closes {
		says = nil
	} else if write.Known&ledger.FieldMint == 0 {
		return before
	}
	return ledger.MintAfter(held, before, says, closes, provenance)
}

// learnMint stores mint facts if they changed.
func (j *apply) learnMint(w writer, key ledger.Pubkey, before, after *ledger.Mint) {
	if before != nil && after != nil && *before == *after {
		return
	}
	w.setMint(key, before, after)
}

// updateOf describes the change from before to after, one of which may be nil.
func updateOf(before, after *ledger.Account) ledger.Update {
	var u ledger.Update
	if after != nil {
		u.Account = *after
	} else {
		u.Account = ledger.Account{Pubkey: before.Pubkey}
	}
	if before != nil {
		u.OwnerBefore = groupLeft(byProgram, before, &u.Account)
		u.WalletBefore = groupLeft(byWallet, before, &u.Account)
	}
	u.Account.Known &^= ledger.FieldMint // updates carry no mint facts
	return u
}

// groupLeft returns the group of before if after is not in it.
func groupLeft(of grouping, before, after *ledger.Account) ledger.Opt[ledger.Pubkey] {
	was, belonged := of(before)
	is, belongs := of(after)
	if belonged && (!belongs || was != is) {
		return ledger.Some(was)
	}
	return ledger.Opt[ledger.Pubkey]{}
}
