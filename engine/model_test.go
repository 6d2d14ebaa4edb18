package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"ledgerd/engine/ledger"
)

// The model is the ledger as the documents define it and nothing more: one map of accounts,
// one of mints, copied whole for every record, recomputed from the root after a rollback.
// It shares types with the engine, and no rule.

// teacher is who told a field: a block, or base state, at a slot.
type teacher struct {
	slot  ledger.Slot
	block bool
}

// mayReplace reports whether t may override what old taught: a block always may, base state
// never what a block taught at or after its slot, nor base state of a higher slot.
func (t teacher) mayReplace(old teacher) bool {
	switch {
	case t.block:
		return true
	case old.block:
		return t.slot > old.slot
	}
	return t.slot >= old.slot
}

// fact is one field: its value, whether anybody told it, and who.
type fact[T any] struct {
	value T
	known bool
	by    teacher
}

func (f *fact[T]) learn(v T, by teacher) {
	if !f.known || by.mayReplace(f.by) {
		*f = fact[T]{v, true, by}
	}
}

// opt returns the value where it is known.
func (f fact[T]) opt() ledger.Opt[T] { return ledger.Opt[T]{Value: f.value, Known: f.known} }

// modelAccount is an account or, while not open, the memory of its closing.
type modelAccount struct {
	open       bool
	since      fact[struct{}] // who closed it or, while open, who opened it again
	lamports   fact[ledger.Lamports]
	owner      fact[ledger.Pubkey]
	executable fact[bool]
	rentEpoch  fact[uint64]
	token      fact[*ledger.TokenAccount]
	data       ledger.Opt[string] // of the write that told the lamports, or of base state as of right after it
	mint       fact[struct{}]     // who showed that it is a mint, or that it is none
}

// modelMint is a mint: each fact obeys the rules of base state by itself. The decimals come with every lesson.
type modelMint struct {
	decimals fact[uint8]
	supply   fact[uint64]
	scaled   fact[bool]
}

// wanted is what a node holds that does not want all accounts.
type wanted struct{ owners, keys []ledger.Pubkey }

// world is the whole state at one version.
type world struct {
	accounts map[ledger.Pubkey]modelAccount
	mints    map[ledger.Pubkey]modelMint
	wanted   *wanted     // nil: everything
	data     string      // whose data is held: "", "all", or keys of programs
	horizon  ledger.Slot // what writes sees no closing of a slot below it
}

func newWorld(of *wanted) *world {
	return &world{accounts: make(map[ledger.Pubkey]modelAccount), mints: make(map[ledger.Pubkey]modelMint), wanted: of}
}

func (w *world) clone() *world {
	return &world{maps.Clone(w.accounts), maps.Clone(w.mints), w.wanted, w.data, w.horizon}
}

// writeAll makes the writes of one record. Where not everything is wanted, an account that was not
// open before it is as it was, unless it is listed, or open now and a listed program's; and its
// closing is forgotten once it is open again, unseen.
func (w *world) writeAll(writes []ledger.AccountWrite, by teacher) {
	for i := range writes {
		w.forget(writes[i].Pubkey)
	}
	before := w.clone()
	for i := range writes {
		w.write(&writes[i], by)
	}
	after := w.clone()
	for i := range writes {
		k := writes[i].Pubkey
		was, known := before.accounts[k]
		now := after.accounts[k]
		switch {
		case w.wanted == nil || was.open || slices.Contains(w.wanted.keys, k):
		case now.open && now.owner.known && slices.Contains(w.wanted.owners, now.owner.value):
		case now.open || !known:
			delete(w.accounts, k)
		default:
			w.accounts[k] = was
		}
	}
}

// forget removes an account that was closed below the horizon.
func (w *world) forget(key ledger.Pubkey) {
	if a, held := w.accounts[key]; held && !a.open && a.since.by.slot < w.horizon {
		delete(w.accounts, key)
	}
}

// learnBlock and learnBase teach the world in the order in which things happened.
func (w *world) learnBlock(b *ledger.Block) {
	by := teacher{b.Slot, true}
	w.writeAll(b.Accounts, by)
	for _, m := range b.Mints {
		w.learnMint(m.Pubkey, m.Mint, by)
	}
}

// mayTeachMint reports whether what a teacher says of a mint is about the account as it stands, and not about one that
// was closed since, or said to be no mint.
func (w *world) mayTeachMint(key ledger.Pubkey, by teacher) bool {
	a, held := w.accounts[key]
	_, isMint := w.mints[key]
	switch {
	case !held:
		return true
	case a.since.known && !by.mayReplace(a.since.by), !a.open && !by.mayReplace(a.lamports.by):
		return false
	}
	return isMint || !a.mint.known || by.mayReplace(a.mint.by)
}

func (w *world) learnBase(b *ledger.BaseState) {
	by := teacher{b.Slot, false}
	w.writeAll(b.Accounts, by)
	for _, m := range b.Mints {
		w.forget(m.Pubkey)
		if w.mayTeachMint(m.Pubkey, by) {
			w.learnMint(m.Pubkey, m.Mint, by)
		}
	}
}

func (w *world) write(wr *ledger.AccountWrite, by teacher) {
	a, held := w.accounts[wr.Pubkey]
	closes := wr.Lamports == 0
	if a.since.known && !by.mayReplace(a.since.by) {
		return // base state of an earlier life
	}
	if held && !by.mayReplace(a.lamports.by) && (closes || !a.open) {
		return // base state from before the account was opened or closed
	}
	switch {
	case closes || wr.Known&ledger.FieldMint != 0 && wr.Mint == nil:
		if m, ok := w.mints[wr.Pubkey]; ok && by.mayReplace(m.decimals.by) {
			delete(w.mints, wr.Pubkey)
		}
	case wr.Known&ledger.FieldMint != 0 && w.mayTeachMint(wr.Pubkey, by):
		w.learnMint(wr.Pubkey, *wr.Mint, by)
	}
	was, read := a, w.onlyReads(wr) && by.block && a.open && wr.Lamports == a.lamports.value
	if closes {
		if held {
			closed := fact[struct{}]{known: true, by: by}
			if !a.open {
				closed = a.since // it stays closed where it was
			}
			w.accounts[wr.Pubkey] = modelAccount{since: closed, lamports: fact[ledger.Lamports]{0, true, by}}
		}
		return
	}
	if !a.open {
		a = modelAccount{open: true} // a closed account forgot every field
		if held {
			a.since = fact[struct{}]{known: true, by: by}
		}
	}
	var told ledger.Opt[string]
	if w.tellsData(wr) {
		told = ledger.Some(string(wr.Data.Bytes()))
	}
	if !a.lamports.known || by.mayReplace(a.lamports.by) {
		a.data = told // what told none may have changed it
	} else if !a.data.Known && by.slot == a.lamports.by.slot && wr.Lamports == a.lamports.value {
		a.data = told
	}
	a.lamports.learn(wr.Lamports, by)
	if wr.Known&ledger.FieldOwner != 0 {
		a.owner.learn(wr.Owner, by)
	}
	if wr.Known&ledger.FieldExecutable != 0 {
		a.executable.learn(wr.Executable, by)
	}
	if wr.Known&ledger.FieldRentEpoch != 0 {
		a.rentEpoch.learn(wr.RentEpoch, by)
	}
	if wr.Known&ledger.FieldToken != 0 {
		a.learnToken(wr, by)
	}
	if wr.Known&ledger.FieldMint != 0 {
		a.mint.learn(struct{}{}, by)
	}
	if a.owner.known && a.owner.value != ledger.TokenProgram && a.owner.value != ledger.Token2022Program {
		a.token.value = nil
	}
	if read {
		if a.data = was.data; a.see(wr.Pubkey) == was.see(wr.Pubkey) && a.token.known == was.token.known && a.mint.known == was.mint.known {
			return // it is as it was when it was written
		}
	}
	w.accounts[wr.Pubkey] = a
}

// onlyReads reports whether a write leaves data that is held.
func (w *world) onlyReads(wr *ledger.AccountWrite) bool {
	return wr.ReadOnly && wr.Known&ledger.FieldData == 0 && w.data != "" && w.data != "none"
}

// tellsData reports whether a write tells data that is held.
func (w *world) tellsData(wr *ledger.AccountWrite) bool {
	return wr.Known&ledger.FieldData != 0 && (w.data == "all" || strings.Contains(w.data, wr.Owner.String()))
}

// heldRecord returns a record with the data alone that is held.
func (w *world) heldRecord(r ledger.Record) ledger.Record {
	held := func(writes []ledger.AccountWrite) []ledger.AccountWrite {
		writes = slices.Clone(writes)
		for i := range writes {
			writes[i].ReadOnly = w.onlyReads(&writes[i])
			if !w.tellsData(&writes[i]) {
				writes[i].Known, writes[i].Data = writes[i].Known&^ledger.FieldData, ledger.Data{}
			}
		}
		return writes
	}
	if r.Block != nil {
		b := *r.Block
		b.Accounts = held(b.Accounts)
		r.Block = &b
	}
	if r.Base != nil {
		b := *r.Base
		b.Accounts = held(b.Accounts)
		r.Base = &b
	}
	return r
}

// learnToken teaches token facts: whole ones replace, a balance keeps what only the data
// of the same holding showed, a balance without wallet changes an amount and nothing else.
func (a *modelAccount) learnToken(wr *ledger.AccountWrite, by teacher) {
	old, told := a.token.value, wr.Token
	if told == nil || told.Details.Known {
		a.token.learn(told, by)
		return
	}
	if wr.TokenOwnerUnknown {
		switch {
		case old == nil:
		case old.Mint == told.Mint:
			a.token.learn(&ledger.TokenAccount{Mint: old.Mint, Owner: old.Owner, Amount: told.Amount, Details: old.Details}, by)
		default:
			a.token.learn(nil, by)
		}
		return
	}
	now := *told
	if old != nil && old.Mint == told.Mint && old.Owner == told.Owner {
		now.Details = old.Details
	}
	a.token.learn(&now, by)
}

func (w *world) learnMint(key ledger.Pubkey, m ledger.Mint, by teacher) {
	now := w.mints[key]
	now.decimals.learn(m.Decimals, by)
	if m.Supply.Known {
		now.supply.learn(m.Supply.Value, by)
	}
	if m.Scaled.Known {
		now.scaled.learn(m.Scaled.Value, by)
	}
	w.mints[key] = now
}

// seen is what a reader can tell of an account. Two accounts that look the same are.
type seen struct {
	pubkey     ledger.Pubkey
	lamports   ledger.Lamports
	owner      ledger.Opt[ledger.Pubkey]
	executable ledger.Opt[bool]
	rentEpoch  ledger.Opt[uint64]
	token      ledger.Opt[ledger.TokenAccount]
	data       ledger.Opt[string]
}

// see returns what the world shows at key: nothing but the key where nothing is open.
func (w *world) see(key ledger.Pubkey) seen { return w.accounts[key].see(key) }

func (a modelAccount) see(key ledger.Pubkey) seen {
	if !a.open {
		return seen{pubkey: key}
	}
	s := seen{key, a.lamports.value, a.owner.opt(), a.executable.opt(), a.rentEpoch.opt(), ledger.Opt[ledger.TokenAccount]{}, a.data}
	if a.token.value != nil {
		s.token = ledger.Some(*a.token.value)
	}
	return s
}

// seeAccount returns what an account of the engine shows.
func seeAccount(a *ledger.Account) seen {
	if a.Lamports == 0 {
		return seen{pubkey: a.Pubkey}
	}
	s := seen{pubkey: a.Pubkey, lamports: a.Lamports}
	s.owner = ledger.Opt[ledger.Pubkey]{Value: a.Owner, Known: a.Known&ledger.FieldOwner != 0}
	s.executable = ledger.Opt[bool]{Value: a.Executable, Known: a.Known&ledger.FieldExecutable != 0}
	s.rentEpoch = ledger.Opt[uint64]{Value: a.RentEpoch, Known: a.Known&ledger.FieldRentEpoch != 0}
	if a.Token != nil {
		s.token = ledger.Some(*a.Token)
	}
	s.data = ledger.Opt[string]{Value: string(a.Data.Bytes()), Known: a.Known&ledger.FieldData != 0}
	return s
}

func (s seen) ownedBy(program ledger.Pubkey) bool {
	return s.lamports != 0 && s.owner == ledger.Some(program)
}

func (s seen) heldBy(wallet ledger.Pubkey) bool {
	return s.token.Known && s.token.Value.Owner == wallet
}

func (s seen) String() string {
	return fmt.Sprintf("{%s lamports %d owner %v exec %v rent %v token %v data %v}",
		s.pubkey, s.lamports, s.owner, s.executable, s.rentEpoch, s.token, s.data)
}

func comparePubkeys(a, b ledger.Pubkey) int { return bytes.Compare(a[:], b[:]) }

// keys returns every key the world ever heard of, in order.
func (w *world) keys() []ledger.Pubkey {
	return slices.SortedFunc(maps.Keys(w.accounts), comparePubkeys)
}

// members returns what is listed in one group, in key order.
func (w *world) members(in func(seen) bool) []seen {
	var all []seen
	for _, k := range w.keys() {
		if s := w.see(k); s.lamports != 0 && in(s) {
			all = append(all, s)
		}
	}
	return all
}

// hash recomputes the state hash from everything that is open, by the layout the state hash's
// documentation draws.
func (w *world) hash() string {
	sum := new(big.Int)
	add := func(b []byte) {
		digest := sha256.Sum256(b)
		slices.Reverse(digest[:]) // the digest is a little-endian number
		sum.Add(sum, new(big.Int).SetBytes(digest[:]))
	}
	for k := range w.accounts {
		if s := w.see(k); s.lamports != 0 {
			add(accountBytes(s))
		}
	}
	for k, m := range w.mints {
		add(bytesOf(byte(2), k, m.decimals.value, m.supply.known, m.supply.value, m.scaled.known, m.scaled.value))
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 256))
	return fmt.Sprintf("%064x", sum)
}

func accountBytes(s seen) []byte {
	known := 0
	for i, k := range []bool{s.owner.Known, s.executable.Known, s.rentEpoch.Known} {
		if k {
			known |= 1 << i
		}
	}
	b := bytesOf(byte(1), s.pubkey, s.lamports, byte(known), s.owner.Value, s.executable.Value, s.rentEpoch.Value)
	t := s.token.Value
	if s.token.Known {
		b = append(b, bytesOf(t.Mint, t.Owner, t.Amount, t.Details.Known)...)
	}
	if d := t.Details.Value; t.Details.Known {
		state := bytesOf(byte(d.State), d.Delegate.Known, d.Delegate.Value, d.DelegatedAmount, d.CloseAuthority.Known, d.CloseAuthority.Value)
		b = append(b, state...)
	}
	if s.data.Known {
		b = append(b, bytesOf(sha256.Sum256([]byte(s.data.Value)))...)
	}
	return b
}

// bytesOf returns the little-endian bytes of some values.
func bytesOf(values ...any) (b []byte) {
	for _, v := range values {
		var err error
		if b, err = binary.Append(b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b
}

// modelUpdate is one visible change.
type modelUpdate struct {
	after                     seen
	ownerBefore, walletBefore ledger.Opt[ledger.Pubkey]
}

func (u modelUpdate) String() string {
	return fmt.Sprintf("%v owner before %v wallet before %v", u.after, u.ownerBefore, u.walletBefore)
}

// changes returns what a reader can tell apart between two worlds, in key order.
func changes(before, after *world) []modelUpdate {
	keys := slices.Concat(before.keys(), after.keys())
	slices.SortFunc(keys, comparePubkeys)
	var all []modelUpdate
	for _, k := range slices.Compact(keys) {
		was, is := before.see(k), after.see(k)
		if was == is {
			continue
		}
		u := modelUpdate{after: is}
		if was.owner.Known && !is.ownedBy(was.owner.Value) {
			u.ownerBefore = was.owner
		}
		if wallet := was.token.Value.Owner; was.token.Known && !is.heldBy(wallet) {
			u.walletBefore = ledger.Some(wallet)
		}
		all = append(all, u)
	}
	return all
}

func nameOf(b *ledger.Block) ledger.BlockID { return ledger.BlockID{Slot: b.Slot, Hash: b.Blockhash} }
