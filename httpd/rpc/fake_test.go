package rpc

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
)

// fakeLedger answers from a few fixed records. An account's lamports grow with the slot that is answered from, where Since says so.
type fakeLedger struct {
	head     atomic.Pointer[ledger.Head]
	status   ledger.NodeStatus
	err      error         // answered to every question about the ledger
	lacks    bool          // the node holds only part of the ledger
	fetches  bool          // what is not held is fetched, once somebody asks for that account alone
	fetched  func()        // called when an account was fetched; nil: nothing is
	moves    bool          // each question for the newest version is followed by a newer one
	slow     time.Duration // that each question takes, if there is so much until its deadline
	page     int           // how many accounts a page of a list has at most
	read     func() error  // called for each page of the accounts of a program; nil: nothing is
	accounts map[ledger.Pubkey]ledger.Account
	mints    map[ledger.Pubkey]*ledger.Mint
	looked   atomic.Int64    // mints that were asked for
	blocks   []*ledger.Block // oldest first
	asked    func() func()   // called when a transaction is asked for; what it returns is called with the answer; nil: nothing is
}

const genesis = 1767225600 // the time of slot 0

// testKey returns a key whose bytes are all n.
func testKey(n byte) ledger.Pubkey { return ledger.Pubkey(bytes.Repeat([]byte{n}, 32)) }

func testSignature(n byte) ledger.Signature { return ledger.Signature(bytes.Repeat([]byte{n}, 64)) }

var (
	wallet, program, partial = testKey(4), testKey(10), testKey(2)
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
	l := &fakeLedger{
		status:   ledger.NodeStatus{NodeID: "node-1"},
		page:     2,
		accounts: make(map[ledger.Pubkey]ledger.Account),
		mints: map[ledger.Pubkey]*ledger.Mint{
			mint: {Decimals: 6, Supply: ledger.Some(uint64(1<<64 - 1))}, scaled: {Decimals: 2, Supply: ledger.Some(uint64(500)), Scaled: ledger.Some(true)},
			native: {Decimals: 9}, testKey(22): {Decimals: 3},
		},
	}
	head := &ledger.Head{HasBlock: true, Root: 10, Floor: 10}
	for c, slot := range []ledger.Slot{ledger.Processed: 30, ledger.Confirmed: 28, ledger.Finalized: 20} {
		head.Tips[c] = ledger.Tip{Version: ledger.Version(slot), Slot: slot}
	}
	l.head.Store(head)
	const shown, facts = ledger.FieldsShown, ledger.FieldsAll &^ ledger.FieldMint
	l.put(ledger.Account{Pubkey: wallet, Lamports: 1 << 63, RentEpoch: 1<<64 - 1, Known: facts | ledger.FieldData, Since: 1})
	l.put(ledger.Account{Pubkey: partial, Lamports: 5})
	l.put(ledger.Account{Pubkey: testKey(15), Known: facts | ledger.FieldData, Since: 1})                  // closed
	l.put(ledger.Account{Pubkey: testKey(1), Owner: program, Lamports: 7, Executable: true, Known: facts}) // its data is not kept
	l.put(ledger.Account{Pubkey: testKey(11), Owner: program, Lamports: 8, Known: facts | ledger.FieldData, Data: ledger.NewData([]byte("hello world"))})
	l.put(ledger.Account{Pubkey: testKey(12), Owner: testKey(13), Lamports: 9, Known: facts | ledger.FieldData, Data: ledger.NewData(bytes.Repeat([]byte{0, 255}, 65))})
	l.put(ledger.Account{Pubkey: testKey(14), Owner: testKey(13), Lamports: 9, Known: facts | ledger.FieldData, Data: ledger.NewData([]byte{0, 0, 1})})
	l.put(ledger.Account{Pubkey: mint, Owner: ledger.TokenProgram, Lamports: 1, Known: facts})
	mintData := make([]byte, mintBytes)
	mintData[0], mintData[45] = 1, 1
	l.put(ledger.Account{Pubkey: scaled, Owner: ledger.Token2022Program, Lamports: 1, Known: shown | ledger.FieldData, Data: ledger.NewData(mintData)})
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
		l.put(a)
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

func (l *fakeLedger) put(a ledger.Account) { l.accounts[a.Pubkey] = a }

// addBlocks makes blocks at 10, 12, 14, 20, 28 and 30, with a transaction each that names the wallet; that of 14 failed, and that of 28 too.
func (l *fakeLedger) addBlocks() {
	parent := ledger.Slot(9)
	for i, slot := range []ledger.Slot{10, 12, 14, 20, 28, 30} {
		b := &ledger.Block{Slot: slot, ParentSlot: parent, Blockhash: ledger.Hash(testKey(byte(100 + slot))), Time: ledger.Some(genesis + int64(slot)), Height: ledger.Some(uint64(7 + i))}
		if i > 0 {
			b.PreviousBlockhash = ledger.Some(l.blocks[i-1].Blockhash)
		}
		t := ledger.Transaction{Signature: testSignature(byte(slot)), Success: ledger.Some(slot != 14 && slot != 28), Accounts: []ledger.Pubkey{wallet}}
		if slot == 14 {
			t.Err = `{"InstructionError":[0,{"Custom":1}]}`
		}
		b.AddTransaction(t)
		if slot == 12 { // of which another transaction is known by its signature alone, and one is not held
			b.Transactions[0].Fee, b.Transactions[0].Accounts = ledger.Some(ledger.Lamports(5000)), []ledger.Pubkey{wallet, program, testKey(9)}
			b.AddTransaction(ledger.Transaction{Signature: testSignature(112)})
			b.TransactionCount = 3
		}
		l.blocks = append(l.blocks, b)
		parent = slot
	}
}

// view is what the ledger answers a query from, and by when.
func (l *fakeLedger) view(q ledger.Query) (ledger.View, error) {
	v := ledger.View{Head: cmp.Or(q.Head, l.head.Load()), Commitment: q.Commitment, Lacks: l.lacks, Deadline: q.Deadline}
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
		l.head.Store(new(*v.Head))
	}
	return v, nil
}

func absent(why ledger.Absence) error { return &ledger.NotFoundError{Absence: why} }

func (l *fakeLedger) Head() *ledger.Head         { return l.head.Load() }
func (l *fakeLedger) Status() ledger.NodeStatus  { return l.status }
func (l *fakeLedger) Await(q ledger.Query) error { _, err := l.view(q); return err }

func (l *fakeLedger) LatestBlock(q ledger.Query) (ledger.BlockAnswer, ledger.View, error) {
	v, err := l.view(q)
	if err != nil {
		return ledger.BlockAnswer{}, v, err
	}
	return l.block(v, v.Tip().Slot)
}

func (l *fakeLedger) Block(q ledger.Query, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error) {
	v, err := l.view(q)
	if err != nil {
		return ledger.BlockAnswer{}, v, err
	}
	return l.block(v, slot)
}

func (l *fakeLedger) block(v ledger.View, slot ledger.Slot) (ledger.BlockAnswer, ledger.View, error) {
	var err error
	switch {
	case slot > v.Tip().Slot:
		err = absent(ledger.SlotNotYetProduced)
	case slot < 5:
		err = absent(ledger.SlotNotIndexed)
	case slot < 10:
		err = absent(ledger.SlotPruned)
	}
	if err != nil {
		return ledger.BlockAnswer{}, v, err
	}
	for _, b := range l.blocks {
		if b.Slot == slot {
			return ledger.BlockAnswer{Block: b, Commitment: v.Head.CommitmentOf(slot)}, v, nil
		}
	}
	return ledger.BlockAnswer{}, v, absent(ledger.SlotSkipped)
}

func (l *fakeLedger) Slots(q ledger.Query, from, to ledger.Slot, limit int) (p ledger.SlotPage, v ledger.View, err error) {
	v, err = l.view(q)
	p.HistoryFrom = 10
	for _, b := range l.blocks {
		if err == nil && b.Slot >= from && b.Slot <= min(to, v.Tip().Slot) && len(p.Slots) < limit {
			p.Slots = append(p.Slots, b.Slot)
		}
	}
	return p, v, err
}

func (l *fakeLedger) Transaction(q ledger.Query, sig ledger.Signature) (ledger.TransactionAnswer, ledger.View, error) {
	if l.asked != nil {
		defer l.asked()()
	}
	v, err := l.view(q)
	for _, b := range l.blocks {
		if t := &b.Transactions[0]; t.Signature == sig && err == nil && b.Slot <= v.Tip().Slot && (!q.Recent || b.Slot > 10) { // that of 10 is on disk
			return ledger.TransactionAnswer{Transaction: t, Commitment: v.Head.CommitmentOf(b.Slot)}, v, nil
		}
	}
	return ledger.TransactionAnswer{}, v, cmp.Or(err, absent(ledger.TransactionNotFound))
}

// Transactions ends each page behind two blocks, whatever its limit.
func (l *fakeLedger) Transactions(q ledger.Query, in ledger.TransactionRange) (p ledger.TransactionPage, v ledger.View, err error) {
	if v, err = l.view(q); err != nil {
		return p, v, err
	}
	p.HistoryFrom = 10
	newest, oldest := v.Tip().Slot+1, ledger.Slot(0)
	for bound, at := range map[ledger.Opt[ledger.Signature]]*ledger.Slot{in.Before: &newest, in.After: &oldest} {
		if bound.Known {
			a, _, err := l.Transaction(q, bound.Value)
			if err != nil {
				return p, v, err
			}
			*at = a.Transaction.Slot
		}
	}
	if in.Address.Value != wallet {
		_, _, err := l.Account(q, in.Address.Value)
		return p, v, err
	}
	seen := 0
	for _, b := range slices.Backward(l.blocks) {
		if b.Slot >= newest || b.Slot <= oldest {
			continue
		}
		if seen++; seen > 2 || len(p.Transactions) == in.Limit {
			p.Next = ledger.Some(p.Transactions[len(p.Transactions)-1].Signature)
			break
		}
		p.Transactions = append(p.Transactions, &b.Transactions[0])
	}
	return p, v, nil
}

// at returns an account as it stands in a view.
func (l *fakeLedger) at(v ledger.View, key ledger.Pubkey) ledger.Account {
	a := l.accounts[key]
	a.Pubkey = key
	if a.Since != 0 && a.Exists() {
		a.Lamports += ledger.Lamports(v.Tip().Slot)
	}
	return a
}

func (l *fakeLedger) Account(q ledger.Query, key ledger.Pubkey) (ledger.Account, ledger.View, error) {
	v, err := l.view(q)
	if err != nil {
		return ledger.Account{}, v, err
	}
	if l.fetches && q.Head == nil { // what is fetched is in a newer version
		l.put(ledger.Account{Pubkey: key, Lamports: 77, Known: ledger.FieldsAll | ledger.FieldData})
		l.mints[key] = l.mints[mint]
		if l.fetched != nil {
			l.fetched()
		}
	}
	a := l.at(v, key)
	switch {
	case a.Exists():
	case a.Since != 0:
		err = absent(ledger.AccountClosed)
	case l.lacks:
		err = absent(ledger.AccountNotIndexed)
	default:
		err = absent(ledger.AccountNotFound)
	}
	a.Token = nil // which comes with several accounts only
	return a, v, err
}

func (l *fakeLedger) Accounts(q ledger.Query, keys []ledger.Pubkey) (all []ledger.Account, v ledger.View, err error) {
	if v, err = l.view(q); err != nil {
		return nil, v, err
	}
	v.Lacks = false
	for _, key := range keys {
		all = append(all, l.at(v, key))
		v.Lacks = v.Lacks || l.lacks && v.Misses(&all[len(all)-1])
	}
	return all, v, nil
}

func (l *fakeLedger) Mints(q ledger.Query, keys []ledger.Pubkey) (all []*ledger.Mint, v ledger.View, err error) {
	v, err = l.view(q)
	l.looked.Add(int64(len(keys)))
	for _, key := range keys {
		all = append(all, l.mints[key])
	}
	return all, v, err
}

// list returns the accounts behind a key that are wanted, a page at most.
func (l *fakeLedger) list(v ledger.View, after ledger.Opt[ledger.Pubkey], limit int, wanted func(*ledger.Account) bool) (all []ledger.Account, next ledger.Opt[ledger.Pubkey]) {
	for key := range l.accounts {
		a := l.at(v, key)
		if a.Exists() && wanted(&a) && (!after.Known || key.Compare(&after.Value) > 0) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) })
	if limit = min(limit, l.page); len(all) > limit {
		all, next = all[:limit], ledger.Some(all[limit-1].Pubkey)
	}
	return all, next
}

func (l *fakeLedger) Tokens(q ledger.Query, owner ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, _ []ledger.Account) (all []ledger.Account, next ledger.Opt[ledger.Pubkey], v ledger.View, err error) {
	if v, err = l.view(q); err != nil {
		return nil, next, v, err
	}
	all, next = l.list(v, after, limit, func(a *ledger.Account) bool {
		switch {
		case a.Wallet() != nil && q.TokensOf == ledger.OfDelegate:
			return a.Token.Details.Value.Delegate == ledger.Some(owner)
		case a.Wallet() != nil && q.TokensOf == ledger.OfMint:
			return a.Token.Mint == owner
		}
		w := a.Wallet()
		return w != nil && *w == owner
	})
	if len(all) == 0 {
		err = absent(ledger.OwnerNotFound)
	}
	return all, next, v, err
}

func (l *fakeLedger) Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, _ []ledger.Account) (all []ledger.Account, next ledger.Opt[ledger.Pubkey], v ledger.View, err error) {
	if v, err = l.view(q); err != nil {
		return nil, next, v, err
	}
	if l.read != nil {
		if err := l.read(); err != nil {
			return nil, next, v, err
		}
	}
	all, next = l.list(v, after, limit, func(a *ledger.Account) bool {
		p := a.Program()
		if p == nil || *p != program || q.Where == nil {
			return p != nil && *p == program
		}
		known := a.Known&ledger.FieldData != 0
		v.DataUnknown = v.DataUnknown || !known
		return q.Where.Match(a)
	})
	if len(all) == 0 {
		err = absent(ledger.OwnerNotFound)
	}
	return all, next, v, err
}
