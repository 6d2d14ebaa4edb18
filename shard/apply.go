package shard

import (
	"cmp"
	"slices"

	"ledgerd/engine/ledger"
)

// sliceKeys is how many keys a job handles before waiting queries are served: some
// hundred microseconds of work.
const sliceKeys = 128

// Applied is what one shard did with a block, a rollback or base state.
type Applied struct {
	Updates   []ledger.Update  // in pubkey order
	Unchanged []ledger.Account // by a rollback: written since, but standing as before
	Hash      ledger.StateHash // of the shard, after
}

// job is one piece of work, done in slices. step reports whether there is more.
type job interface {
	step(*state) (more bool)
}

// apply teaches the shard its part of a block or of base state.
type apply struct {
	version ledger.Version
	direct  bool
	taught  ledger.Taught
	writes  []ledger.AccountWrite
	mints   []ledger.MintWrite

	held *HeldBlock        // the block as it is kept; nil with base state
	base *ledger.BaseState // nil with a block

	started        bool
	todo           []keyedWrite // this shard's writes by key, each key's in their order
	mintsAt        int
	transactionsAt int
	result         Applied
}

type keyedWrite struct {
	prefix uint64
	write  *ledger.AccountWrite
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
			same := 1
			for same < len(j.todo) && j.todo[same].write.Pubkey == j.todo[0].write.Pubkey {
				same++
			}
			j.writeAccount(w, j.todo[:same])
			j.todo = j.todo[same:]
		case j.mintsAt < len(j.mints):
			j.writeMint(w, &j.mints[j.mintsAt])
			j.mintsAt++
		case j.held != nil && j.transactionsAt < len(j.held.Block.Transactions):
			j.holdTransaction(w, &j.held.Block.Transactions[j.transactionsAt])
			j.transactionsAt++
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

// begin picks this shard's share of the writes and holds the block.
func (j *apply) begin(w writer) {
	for i := range j.writes {
		write := &j.writes[i]
		if p := write.Pubkey.Prefix(); w.owns(p) {
			j.todo = append(j.todo, keyedWrite{p, write})
		}
	}
	slices.SortStableFunc(j.todo, func(a, b keyedWrite) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return a.write.Pubkey.Compare(&b.write.Pubkey)
	})
	if j.base != nil && !j.direct {
		w.bases = append(w.bases, baseChange{j.version, j.base})
	}
	if j.held != nil && OfSlot(j.held.Block.Slot, w.shards) == w.self {
		w.blocks.put(j.version, j.held, j.held)
	}
}

func (j *apply) holdTransaction(w writer, t *ledger.Transaction) {
	if w.owns(t.Signature.Prefix()) {
		w.transactions.put(j.version, t, t)
	}
}

func (j *apply) writeMint(w writer, m *ledger.MintWrite) {
	if w.owns(m.Pubkey.Prefix()) {
		before := w.mintAt(&m.Pubkey, newest)
		j.learnMint(w, m.Pubkey, before, ledger.MergeMint(before, m.Mint, j.taught))
	}
}

// writeAccount applies all writes of one key; together they make at most one update.
func (j *apply) writeAccount(w writer, writes []keyedWrite) {
	key := &writes[0].write.Pubkey
	before := w.account(key, newest)
	after := before
	for _, kw := range writes {
		j.teachMint(w, after, kw.write)
		after = ledger.Merge(after, kw.write, j.taught)
	}
	if after == before {
		return
	}
	if w.setAccount(before, after) {
		j.result.Updates = append(j.result.Updates, updateOf(before, after))
	}
}

// teachMint applies what a write of the mint's own account says of the mint. Closing the
// account forgets the mint; base state from before the account was closed teaches nothing.
func (j *apply) teachMint(w writer, held *ledger.Account, write *ledger.AccountWrite) {
	stale := held != nil && !j.taught.ByBlock() && j.taught < held.Taught
	closes := write.Lamports == 0
	if write.Known&ledger.FieldMint == 0 && !closes {
		return
	}
	if stale && (closes || !held.Exists()) {
		return
	}
	before := w.mintAt(&write.Pubkey, newest)
	switch {
	case closes || write.Mint == nil:
		if before != nil && (j.taught.ByBlock() || j.taught >= before.Taught) {
			j.learnMint(w, write.Pubkey, before, nil)
		}
	default:
		j.learnMint(w, write.Pubkey, before, ledger.MergeMint(before, *write.Mint, j.taught))
	}
}

// learnMint stores mint facts unless they say nothing new.
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
		was, had := byProgram(before)
		is, has := byProgram(&u.Account)
		if had && (!has || was != is) {
			u.OwnerBefore = ledger.Some(was)
		}
	}
	return u
}
