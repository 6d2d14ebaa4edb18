package httpd

import (
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/httpdtest"
)

// fakeLedger answers from a few fixed records, and notes what it is asked.
type fakeLedger struct {
	httpdtest.Ledger
	err    error                              // answered to every question about the ledger
	panics bool                               // every question about the ledger panics
	hold   func()                             // called first by every question about the ledger; nil: nothing is
	pages  map[ledger.Pubkey][]ledger.Account // what some programs own, all answered at once

	asked  atomic.Int64 // how many questions, Status and Head apart
	query  ledger.Query // of the last question
	scoped ledger.TransactionRange
}

var testKey, testSignature, absent = httpdtest.Key, httpdtest.Signature, httpdtest.Absent

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

func newFakeLedger() *fakeLedger {
	l := &fakeLedger{
		Ledger: httpdtest.Ledger{
			State: ledger.NodeStatus{NodeID: "node-1", Peers: 2, Uptime: 3*time.Hour + 12*time.Minute + 5*time.Second + 400*time.Millisecond},
			Start: 10, First: 20,
			Held:  make(map[ledger.Pubkey]ledger.Account),
			Facts: map[ledger.Pubkey]*ledger.Mint{mintA: {Decimals: 6}, mintB: {Decimals: 0, Scaled: ledger.Some(true)}},
		},
		pages: make(map[ledger.Pubkey][]ledger.Account),
	}
	l.Ask = l.ask
	head := &ledger.Head{HasBlock: true, Root: 10, Floor: 10, Published: now}
	for c, slot := range []ledger.Slot{ledger.Processed: 30, ledger.Confirmed: 28, ledger.Finalized: 20} {
		head.Tips[c] = ledger.Tip{Version: ledger.Version(slot), Slot: slot}
		head.Since[c] = now.Add(-time.Duration(30-slot)*time.Second - 1500*time.Millisecond)
	}
	l.Newest.Store(head)
	all := ledger.FieldsAll &^ ledger.FieldMint
	l.Put(ledger.Account{Pubkey: whole, Owner: owner, Lamports: 1<<64 - 1, RentEpoch: 1<<64 - 1, Executable: true, Known: all})
	l.Put(ledger.Account{Pubkey: part, Lamports: 5})
	l.Put(ledger.Account{Pubkey: closed, Since: ledger.BlockProvenance(25), Provenance: ledger.BlockProvenance(25)})
	l.Put(ledger.Account{Pubkey: wallet, Owner: ledger.SystemProgram, Lamports: 7, Known: all})
	l.Put(ledger.Account{Pubkey: testKey(30), Owner: ledger.TokenProgram, Lamports: 1, Known: all, Token: &ledger.TokenAccount{
		Mint: mintA, Owner: wallet, Amount: 1500000, Details: ledger.Some(ledger.TokenDetails{
			State: ledger.TokenFrozen, Delegate: ledger.Some(testKey(40)), DelegatedAmount: 3, CloseAuthority: ledger.Some(testKey(41)),
		})}})
	l.Put(ledger.Account{Pubkey: testKey(31), Owner: ledger.Token2022Program, Lamports: 1, Known: ledger.FieldOwner | ledger.FieldToken,
		Token: &ledger.TokenAccount{Mint: mintB, Owner: wallet, Amount: 1<<64 - 1}})
	l.Put(ledger.Account{Pubkey: testKey(32), Lamports: 1, Known: ledger.FieldToken,
		Token: &ledger.TokenAccount{Mint: unminted, Owner: wallet, Amount: 0}})
	l.Put(ledger.Account{Pubkey: testKey(33), Owner: ledger.TokenProgram, Lamports: 1, Known: all, Token: &ledger.TokenAccount{
		Mint: ledger.NativeMint, Owner: wallet, Amount: 1, Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})}})
	l.addBlocks()
	return l
}

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
	l.Chain = []*ledger.Block{bare, middle, newest}
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
	v := ledger.View{Head: l.Head(), Commitment: q.Commitment, Deadline: q.Deadline}
	if v.Deadline.IsZero() {
		v.Deadline = now.Add(time.Duration(l.asked.Load()) * time.Second)
	}
	if l.err == nil && v.Head != nil && q.MinSlot > v.Head.Tips[q.Commitment].Slot {
		return v, ledger.ErrMinSlot
	}
	return v, l.err
}

func (l *fakeLedger) Transactions(q ledger.Query, in ledger.TransactionRange) (ledger.TransactionPage, ledger.View, error) {
	l.scoped = in
	return l.Ledger.Transactions(q, in)
}

func (l *fakeLedger) Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	if all, ok := l.pages[program]; ok && l.err == nil && !l.panics { // which many may ask for at once
		return append(room, all...), ledger.Opt[ledger.Pubkey]{}, ledger.View{Head: l.Head(), Commitment: q.Commitment}, nil
	}
	return l.Ledger.Program(q, program, after, limit, room)
}
