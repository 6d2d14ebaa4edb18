package httpd

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
)

// fakeLedger answers from a few fixed records. What a test changes it changes before the
// server asks.
type fakeLedger struct {
	head   *ledger.Head
	status ledger.NodeStatus
	err    error  // answered to every question about the ledger
	panics bool   // every question about the ledger panics
	hold   func() // called first by every question about the ledger; nil: nothing is

	accounts map[ledger.Pubkey]ledger.Account
	pages    map[ledger.Pubkey][]ledger.Account // what some programs own, all answered at once
	mints    map[ledger.Pubkey]*ledger.Mint
	blocks   map[ledger.Slot]*ledger.Block
	recent   []*ledger.Transaction // newest first

	asked  atomic.Int64 // how many questions, Status and Head apart
	query  ledger.Query // of the last question
	scoped ledger.TransactionRange
}

var (
	now       = time.Date(2026, 2, 5, 12, 34, 56, 789e6, time.UTC)
	blockTime = ledger.Some(now.Unix() - 60)

	whole    = testKey(1) // every field known
	part     = testKey(2) // only lamports known
	closed   = testKey(3) // a tombstone
	wallet   = testKey(4) // owns tokens
	missing  = testKey(9)
	owner    = testKey(10) // a program
	mintA    = testKey(20)
	mintB    = testKey(21)
	unminted = testKey(22) // a mint nothing is known of
)

// testKey returns a key whose bytes are all n.
func testKey(n byte) ledger.Pubkey { return ledger.Pubkey(bytes.Repeat([]byte{n}, 32)) }

func testSignature(n byte) ledger.Signature { return ledger.Signature(bytes.Repeat([]byte{n}, 64)) }

func newFakeLedger() *fakeLedger {
	l := &fakeLedger{
		status:   ledger.NodeStatus{NodeID: "node-1", Peers: 2, Uptime: 3*time.Hour + 12*time.Minute + 5*time.Second + 400*time.Millisecond},
		accounts: make(map[ledger.Pubkey]ledger.Account),
		mints:    map[ledger.Pubkey]*ledger.Mint{mintA: {Decimals: 6}, mintB: {Decimals: 0, Scaled: ledger.Some(true)}},
		blocks:   make(map[ledger.Slot]*ledger.Block),
		pages:    make(map[ledger.Pubkey][]ledger.Account),
	}
	l.head = &ledger.Head{HasBlock: true, Root: 10, Floor: 10, Published: now}
	for c, slot := range []ledger.Slot{ledger.Processed: 30, ledger.Confirmed: 28, ledger.Finalized: 20} {
		l.head.Tips[c] = ledger.Tip{Version: ledger.Version(slot), Slot: slot}
		l.head.Since[c] = now.Add(-time.Duration(30-slot)*time.Second - 1500*time.Millisecond)
	}
	all := ledger.FieldsAll &^ ledger.FieldMint
	l.put(ledger.Account{Pubkey: whole, Owner: owner, Lamports: 1<<64 - 1, RentEpoch: 1<<64 - 1, Executable: true, Known: all})
	l.put(ledger.Account{Pubkey: part, Lamports: 5})
	l.put(ledger.Account{Pubkey: closed, Provenance: ledger.BlockProvenance(25)})
	l.put(ledger.Account{Pubkey: wallet, Owner: ledger.SystemProgram, Lamports: 7, Known: all})
	l.put(ledger.Account{Pubkey: testKey(30), Owner: ledger.TokenProgram, Lamports: 1, Known: all, Token: &ledger.TokenAccount{
		Mint: mintA, Owner: wallet, Amount: 1500000, Details: ledger.Some(ledger.TokenDetails{
			State: ledger.TokenFrozen, Delegate: ledger.Some(testKey(40)), DelegatedAmount: 3, CloseAuthority: ledger.Some(testKey(41)),
		})}})
	l.put(ledger.Account{Pubkey: testKey(31), Owner: ledger.Token2022Program, Lamports: 1, Known: ledger.FieldOwner | ledger.FieldToken,
		Token: &ledger.TokenAccount{Mint: mintB, Owner: wallet, Amount: 1<<64 - 1}})
	l.put(ledger.Account{Pubkey: testKey(32), Lamports: 1, Known: ledger.FieldToken,
		Token: &ledger.TokenAccount{Mint: unminted, Owner: wallet, Amount: 0}})
	l.put(ledger.Account{Pubkey: testKey(33), Owner: ledger.TokenProgram, Lamports: 1, Known: all, Token: &ledger.TokenAccount{
		Mint: ledger.NativeMint, Owner: wallet, Amount: 1, Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})}})
	l.addBlocks()
	return l
}

func (l *fakeLedger) put(a ledger.Account) { l.accounts[a.Pubkey] = a }

// addBlocks makes a finalized, a confirmed and a processed block.
func (l *fakeLedger) addBlocks() {
	bare := &ledger.Block{Slot: 20, ParentSlot: 19, Blockhash: ledger.Hash(testKey(50)), TransactionCount: 0}
	middle := &ledger.Block{Slot: 28, ParentSlot: 20, Blockhash: ledger.Hash(testKey(51)), PreviousBlockhash: ledger.Some(bare.Blockhash),
		Time: blockTime, Height: ledger.Some(uint64(1<<64 - 1)), TransactionCount: 2}
	middle.AddTransaction(ledger.Transaction{Signature: testSignature(1), Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true), Accounts: []ledger.Pubkey{whole, owner}})
	middle.AddTransaction(ledger.Transaction{Signature: testSignature(2), Fee: ledger.Some(ledger.Lamports(1<<64 - 1)), Success: ledger.Some(false), Accounts: []ledger.Pubkey{part}})
	newest := &ledger.Block{Slot: 30, ParentSlot: 28, Blockhash: ledger.Hash(testKey(52)), PreviousBlockhash: ledger.Some(middle.Blockhash),
		Time: ledger.Some(blockTime.Value + 1), Height: ledger.Some(uint64(3)), TransactionCount: 40}
	for i := range 40 {
		newest.AddTransaction(ledger.Transaction{Signature: testSignature(byte(100 + i)), Accounts: []ledger.Pubkey{testKey(byte(i)), whole}})
	}
	for _, b := range []*ledger.Block{bare, middle, newest} {
		l.blocks[b.Slot] = b
		for i := range b.Transactions {
			l.recent = append(l.recent, &b.Transactions[i])
		}
	}
	slices.SortFunc(l.recent, func(a, b *ledger.Transaction) int {
		return cmp.Or(cmp.Compare(b.Slot, a.Slot), cmp.Compare(b.Index, a.Index))
	})
}

// Await ends at once: the slot is there, or never comes.
func (l *fakeLedger) Await(q ledger.Query) error {
	_, err := l.ask(q)
	return err
}

// ask counts a question and answers with the view, and the error the test wants.
func (l *fakeLedger) ask(q ledger.Query) (ledger.View, error) {
	l.asked.Add(1)
	if l.query = q; l.hold != nil {
		l.hold()
	}
	if l.panics {
		panic("a fault of the test's own")
	}
	v := ledger.View{Head: l.head, Commitment: q.Commitment, Deadline: q.Deadline}
	if v.Deadline.IsZero() {
		v.Deadline = now.Add(time.Duration(l.asked.Load()) * time.Second)
	}
	if l.err == nil && l.head != nil && q.MinSlot > l.head.Tips[q.Commitment].Slot {
		return v, ledger.ErrMinSlot
	}
	return v, l.err
}

func absent(why ledger.Absence) error { return &ledger.NotFoundError{Absence: why} }

func (l *fakeLedger) Head() *ledger.Head        { return l.head }
func (l *fakeLedger) Status() ledger.NodeStatus { return l.status }

func (l *fakeLedger) LatestBlock(q ledger.Query) (ledger.BlockAnswer, ledger.View, error) {
	v, err := l.ask(q)
	if err != nil {
		return ledger.BlockAnswer{}, v, err
	}
	return ledger.BlockAnswer{Block: l.blocks[v.Tip().Slot], Commitment: l.head.CommitmentOf(v.Tip().Slot)}, v, nil
}

func (l *fakeLedger) Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error) {
	v, err := l.ask(q)
	switch b := l.blocks[slot]; {
	case err != nil:
		return ledger.BlockAnswer{}, v, err
	case slot > v.Tip().Slot:
		return ledger.BlockAnswer{}, v, absent(ledger.SlotNotYetProduced)
	case slot < l.head.Root:
		return ledger.BlockAnswer{}, v, absent(ledger.SlotNotIndexed)
	case slot < 20:
		return ledger.BlockAnswer{}, v, absent(ledger.SlotPruned)
	case b == nil:
		return ledger.BlockAnswer{}, v, absent(ledger.SlotSkipped)
	default:
		return ledger.BlockAnswer{Block: b, Commitment: l.head.CommitmentOf(slot)}, v, nil
	}
}

func (l *fakeLedger) Transaction(q ledger.Query, sig ledger.Signature) (ledger.TransactionAnswer, ledger.View, error) {
	v, err := l.ask(q)
	if err != nil {
		return ledger.TransactionAnswer{}, v, err
	}
	i := l.indexOf(sig)
	if i < 0 {
		return ledger.TransactionAnswer{}, v, absent(ledger.TransactionNotFound)
	}
	return ledger.TransactionAnswer{Transaction: l.recent[i], Commitment: l.head.CommitmentOf(l.recent[i].Slot)}, v, nil
}

// indexOf returns where a transaction is among the recent ones, -1 for nowhere.
func (l *fakeLedger) indexOf(sig ledger.Signature) int {
	return slices.IndexFunc(l.recent, func(t *ledger.Transaction) bool { return t.Signature == sig })
}

func (l *fakeLedger) Transactions(q ledger.Query, in ledger.TransactionRange) (p ledger.TransactionPage, v ledger.View, err error) {
	v, err = l.ask(q)
	l.scoped = in
	if err != nil {
		return p, v, err
	}
	page := l.recent[l.indexOf(in.Before.Value)+1:] // all where none is known
	if end := l.indexOf(in.After.Value) - len(l.recent) + len(page); end >= 0 {
		page = page[:end]
	}
	page = slices.DeleteFunc(slices.Clone(page), func(t *ledger.Transaction) bool {
		return in.Address.Known && !slices.Contains(t.Accounts, in.Address.Value) || in.Success.Known && t.Success != in.Success ||
			t.Slot < in.FromSlot.Value || in.ToSlot.Known && t.Slot > in.ToSlot.Value
	})
	if in.OldestFirst {
		slices.Reverse(page)
	}
	if _, held := l.accounts[in.Address.Value]; in.Address.Known && len(page) == 0 && !held {
		return p, v, absent(ledger.AccountNotFound)
	}
	p = ledger.TransactionPage{Transactions: page[:min(len(page), in.Limit)], HistoryFrom: 20}
	if len(page) > in.Limit {
		p.Next = ledger.Some(page[in.Limit-1].Signature)
	}
	return p, v, nil
}

func (l *fakeLedger) Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	v, err := l.ask(q)
	a, ok := l.accounts[key]
	switch {
	case err != nil:
		return ledger.Account{}, v, err
	case !ok:
		return ledger.Account{}, v, absent(ledger.AccountNotFound)
	case !a.Exists():
		return ledger.Account{}, v, &ledger.NotFoundError{Absence: ledger.AccountClosed, Slot: a.Provenance.Slot()}
	}
	a.Token = nil // which comes with several accounts only
	return a, v, nil
}

func (l *fakeLedger) Accounts(q ledger.Query, keys []ledger.Pubkey) ([]ledger.Account, ledger.View, error) {
	v, err := l.ask(q)
	found := make([]ledger.Account, len(keys))
	for i, k := range keys {
		found[i] = l.accounts[k]
	}
	return found, v, err
}

func (l *fakeLedger) Mints(q ledger.Query, keys []ledger.Pubkey) ([]*ledger.Mint, ledger.View, error) {
	v, err := l.ask(q)
	found := make([]*ledger.Mint, len(keys))
	for i, k := range keys {
		found[i] = l.mints[k]
	}
	return found, v, err
}

// page returns the accounts that belong, in key order, after a key.
func (l *fakeLedger) page(belongs func(*ledger.Account) bool, after ledger.Opt[ledger.Pubkey], limit int) (page []ledger.Account, next ledger.Opt[ledger.Pubkey]) {
	for _, a := range l.accounts {
		if a.Exists() && belongs(&a) && (!after.Known || a.Pubkey.Compare(&after.Value) > 0) {
			page = append(page, a)
		}
	}
	slices.SortFunc(page, func(a, b ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) })
	if len(page) > limit {
		page, next = page[:limit], ledger.Some(page[limit-1].Pubkey)
	}
	return page, next
}

func (l *fakeLedger) Tokens(q ledger.Query, owner ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, _ []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	v, err := l.ask(q)
	if _, ok := l.accounts[owner]; err == nil && !ok {
		err = absent(ledger.OwnerNotFound)
	}
	if err != nil {
		return nil, ledger.Opt[ledger.Pubkey]{}, v, err
	}
	tokens, next := l.page(func(a *ledger.Account) bool { return a.Token != nil && a.Token.Owner == owner }, after, limit)
	return tokens, next, v, nil
}

func (l *fakeLedger) Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	if all, ok := l.pages[program]; ok && l.err == nil && !l.panics { // which many may ask for at once
		return append(room, all...), ledger.Opt[ledger.Pubkey]{}, ledger.View{Head: l.head, Commitment: q.Commitment}, nil
	}
	v, err := l.ask(q)
	if err != nil {
		return nil, ledger.Opt[ledger.Pubkey]{}, v, err
	}
	accounts, next := l.page(func(a *ledger.Account) bool {
		isOf := a.Known&ledger.FieldOwner != 0 && a.Owner == program
		v.DataUnknown = v.DataUnknown || isOf && q.Where != nil && a.Known&ledger.FieldData == 0
		return isOf && (q.Where == nil || q.Where.Match(a))
	}, after, limit)
	if len(accounts) == 0 && program != owner {
		return nil, ledger.Opt[ledger.Pubkey]{}, v, absent(ledger.OwnerNotFound)
	}
	return accounts, next, v, nil
}
