package rpc

import (
	"bytes"
	"cmp"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/httpdtest"
)

// fakeLedger answers from a few fixed records, as a node that may have its difficulties.
type fakeLedger struct {
	httpdtest.Ledger
	err     error         // answered to every question about the ledger
	lacks   bool          // the node holds only part of the ledger
	fetches bool          // what is not held is fetched, once somebody asks for that account alone: all keys have one, but for nowhere
	fetched func()        // called when an account was fetched; nil: nothing is
	moves   bool          // each question for the newest version is followed by a newer one
	slow    time.Duration // that each question takes, if there is so much until its deadline
	read    func() error  // called for each page of the accounts of a program; nil: nothing is
	asked   func() func() // called when a transaction is asked for; what it returns is called with the answer; nil: nothing is
}

var testKey, testSignature = httpdtest.Key, httpdtest.Signature

const genesis = 1767225600 // the time of slot 0

var (
	wallet, program, partial = testKey(4), testKey(10), testKey(2)
	nowhere                  = testKey(99)
	mint, scaled, native     = testKey(20), testKey(21), ledger.NativeMint
)

// tokenData returns the data of a token account, as the programs lay it out.
func tokenData(t *ledger.TokenAccount) ledger.Data {
	b := make([]byte, tokenAccountBytes)
	copy(b, t.Mint[:])
	copy(b[32:], t.Owner[:])
	b[64], b[108] = byte(t.Amount), byte(ledger.TokenInitialized)
	if t.IsNative() {
		b[109], b[113] = 1, 99
	}
	return ledger.NewData(b)
}

func newFakeLedger() *fakeLedger {
	l := &fakeLedger{Ledger: httpdtest.Ledger{
		State: ledger.NodeStatus{NodeID: "node-1"},
		Start: 5, First: 10,
		Page: 2,
		Held: make(map[ledger.Pubkey]ledger.Account),
		Facts: map[ledger.Pubkey]*ledger.Mint{
			mint: {Decimals: 6, Supply: ledger.Some(uint64(1<<64 - 1))}, scaled: {Decimals: 2, Supply: ledger.Some(uint64(500)), Scaled: ledger.Some(true)},
			native: {Decimals: 9}, testKey(22): {Decimals: 3},
		},
	}}
	l.Ask = l.view
	head := &ledger.Head{HasBlock: true, Root: 10, Floor: 10}
	for c, slot := range []ledger.Slot{ledger.Processed: 30, ledger.Confirmed: 28, ledger.Finalized: 20} {
		head.Tips[c] = ledger.Tip{Version: ledger.Version(slot), Slot: slot}
	}
	l.Newest.Store(head)
	const shown, facts = ledger.FieldsShown, ledger.FieldsAll &^ ledger.FieldMint
	l.Put(ledger.Account{Pubkey: wallet, Lamports: 1 << 63, RentEpoch: 1<<64 - 1, Known: facts | ledger.FieldData, Since: 1})
	l.Put(ledger.Account{Pubkey: partial, Lamports: 5})
	l.Put(ledger.Account{Pubkey: testKey(15), Known: facts | ledger.FieldData, Since: 1})                  // closed
	l.Put(ledger.Account{Pubkey: testKey(1), Owner: program, Lamports: 7, Executable: true, Known: facts}) // its data is not kept
	l.Put(ledger.Account{Pubkey: testKey(11), Owner: program, Lamports: 8, Known: facts | ledger.FieldData, Data: ledger.NewData([]byte("hello world"))})
	l.Put(ledger.Account{Pubkey: testKey(12), Owner: testKey(13), Lamports: 9, Known: facts | ledger.FieldData, Data: ledger.NewData(bytes.Repeat([]byte{0, 255}, 65))})
	l.Put(ledger.Account{Pubkey: testKey(14), Owner: testKey(13), Lamports: 9, Known: facts | ledger.FieldData, Data: ledger.NewData([]byte{0, 0, 1})})
	l.Put(ledger.Account{Pubkey: mint, Owner: ledger.TokenProgram, Lamports: 1, Known: facts})
	mintData := make([]byte, mintBytes)
	mintData[0], mintData[45] = 1, 1
	l.Put(ledger.Account{Pubkey: scaled, Owner: ledger.Token2022Program, Lamports: 1, Known: shown | ledger.FieldData, Data: ledger.NewData(mintData)})
	hold := func(n byte, owner ledger.Pubkey, t ledger.TokenAccount, d *ledger.TokenDetails, withData bool) {
		t.Owner = wallet
		a := ledger.Account{Pubkey: testKey(n), Owner: owner, Lamports: 2, Known: facts, Token: &t}
		if d != nil {
			t.Details = ledger.Some(*d)
		}
		if withData {
			a.Known |= ledger.FieldData
			a.Data = tokenData(&t)
		}
		l.Put(a)
	}
	usual := &ledger.TokenDetails{State: ledger.TokenInitialized}
	hold(30, ledger.TokenProgram, ledger.TokenAccount{Mint: mint, Amount: 1500000}, &ledger.TokenDetails{
		State: ledger.TokenFrozen, Delegate: ledger.Some(testKey(40)), DelegatedAmount: 3, CloseAuthority: ledger.Some(testKey(41))}, false)
	hold(31, ledger.TokenProgram, ledger.TokenAccount{Mint: native, Amount: 100}, usual, true)
	hold(32, ledger.Token2022Program, ledger.TokenAccount{Mint: scaled, Amount: 200}, usual, true)
	hold(33, ledger.Token2022Program, ledger.TokenAccount{Mint: scaled, Amount: 300}, usual, false)
	l.addBlocks()
	return l
}

// addBlocks makes blocks at 10, 12, 14, 20, 28 and 30, with a transaction each that names the wallet; that of 14 failed, and that of 28 too.
func (l *fakeLedger) addBlocks() {
	parent := ledger.Slot(9)
	for i, slot := range []ledger.Slot{10, 12, 14, 20, 28, 30} {
		b := &ledger.Block{Slot: slot, ParentSlot: parent, Blockhash: ledger.Hash(testKey(byte(100 + slot))), Time: ledger.Some(genesis + int64(slot)), Height: ledger.Some(uint64(7 + i))}
		if i > 0 {
			b.PreviousBlockhash = ledger.Some(l.Chain[i-1].Blockhash)
		}
		t := ledger.Transaction{Signature: testSignature(byte(slot)), Success: ledger.Some(slot != 14 && slot != 28), Accounts: []ledger.Pubkey{wallet}}
		if slot == 14 {
			t.Err = `{"InstructionError":[0,{"Custom":1}]}`
		}
		b.AddTransaction(t)
		if slot == 12 { // of which another transaction is known by its signature alone, and one is not held
			b.Transactions[0].Fee, b.Transactions[0].Accounts = ledger.Some(ledger.Lamports(5000)), []ledger.Pubkey{wallet, program, testKey(19)}
			b.AddTransaction(ledger.Transaction{Signature: testSignature(140)})
			b.TransactionCount = 3
		}
		l.Chain = append(l.Chain, b)
		parent = slot
	}
}

// view is what the ledger answers a query from, and by when.
func (l *fakeLedger) view(q ledger.Query) (ledger.View, error) {
	v := ledger.View{Head: cmp.Or(q.Head, l.Newest.Load()), Commitment: q.Commitment, Lacks: l.lacks, Deadline: q.Deadline}
	if v.Deadline.IsZero() {
		v.Deadline = time.Now().Add(2 * time.Second)
	}
	time.Sleep(min(l.slow, time.Until(v.Deadline)))
	switch {
	case l.err != nil:
		return ledger.View{}, l.err
	case time.Until(v.Deadline) <= 0:
		return v, ledger.ErrUnavailable
	case q.Head == nil && q.MinSlot > v.Tip().Slot:
		return v, ledger.ErrMinSlot
	}
	if l.moves && q.Head == nil {
		l.Newest.Store(new(*v.Head))
	}
	return v, nil
}

func (l *fakeLedger) Transaction(q ledger.Query, sig ledger.Signature) (ledger.TransactionAnswer, ledger.View, error) {
	if l.asked != nil {
		defer l.asked()()
	}
	return l.Ledger.Transaction(q, sig)
}

func (l *fakeLedger) Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	a, v, err := l.Ledger.Account(q, key)
	if l.fetches && key == nowhere {
		return a, v, httpdtest.Absent(ledger.AccountNotFound)
	}
	if l.fetches && q.Head == nil && v.Head != nil { // what is fetched is in a newer version
		l.Put(ledger.Account{Pubkey: key, Lamports: 77, Known: ledger.FieldsAll | ledger.FieldData})
		l.Facts[key] = l.Facts[mint]
		if l.fetched != nil {
			l.fetched()
		}
		return l.Held[key], v, nil
	}
	return a, v, err
}

func (l *fakeLedger) Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	if l.read != nil {
		if err := l.read(); err != nil {
			return nil, ledger.Opt[ledger.Pubkey]{}, ledger.View{}, err
		}
	}
	return l.Ledger.Program(q, program, after, limit, room)
}

func (l *fakeLedger) Tokens(q ledger.Query, of ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	if l.read != nil {
		if err := l.read(); err != nil {
			return nil, ledger.Opt[ledger.Pubkey]{}, ledger.View{}, err
		}
	}
	return l.Ledger.Tokens(q, of, after, limit, room)
}
