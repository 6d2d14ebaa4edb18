package httpd

import (
	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// What blocks and transactions take while they are read and encoded, in bytes.
const (
	wholeBlockBytes  = 4 << 20 // with its transactions
	transactionBytes = 2048
	transactionText  = 210 // usually, without its accounts
)

// latestBlock answers the newest block of the asked commitment.
func (r *request) latestBlock() error {
	a, v, err := r.server.config.Ledger.LatestBlock(r.params.query)
	if err != nil {
		return err
	}
	r.body = encode.AppendBlock(r.body, a.Block)
	r.view = v
	r.tagRecord()
	return nil
}

// block answers the block at a slot. The answer for a finalized block never changes.
func (r *request) block() error {
	slot, ok := parseDecimal(r.variable("slot"))
	if !ok {
		return errSlot
	}
	if r.params.query.Parts != ledger.NoTransactions {
		if err := r.reserve(wholeBlockBytes); err != nil {
			return err
		}
	}
	a, v, err := r.server.config.Ledger.Block(r.params.query, ledger.Slot(slot))
	if err != nil {
		return err
	}
	r.body = encode.AppendFullBlock(r.body, a, r.params.query.Parts, encode.List{Turn: r.server.config.Turn})
	r.view = v
	r.tagRecord()
	r.immutable = a.Commitment == ledger.Finalized
	return nil
}

// transaction answers the transaction with a first signature.
func (r *request) transaction() error {
	sig, err := ledger.ParseSignature(r.variable("signature"))
	if err != nil {
		return errSignature
	}
	a, v, err := r.server.config.Ledger.Transaction(r.params.query, sig)
	if err != nil {
		return err
	}
	r.body = encode.AppendTransaction(r.body, a.Transaction)
	r.view = v
	r.tagRecord()
	r.immutable = a.Commitment == ledger.Finalized
	return nil
}

// recent answers a page of transactions, newest first, and where the next page begins.
func (r *request) recent() error {
	_, err := r.transactions(`{`)
	r.body = append(r.body, '}')
	return err
}

// history answers a page of the transactions that name an address, and the slot from which on they are held.
func (r *request) history() error {
	key, err := r.key("pubkey", errPubkey)
	if err != nil {
		return err
	}
	r.params.in.Address = ledger.Some(key)
	from, err := r.transactions(`{"pubkey":"` + key.String() + `",`)
	r.body = append(encode.AppendNumber(r.body, `,"history_from":`, from), '}')
	return err
}

// transactions makes the body: opening, the requested page of transactions, and where the next page begins. It returns the slot from
// which on transactions are held.
func (r *request) transactions(opening string) (heldFrom ledger.Slot, err error) {
	p := &r.params
	if err := r.reserve(p.limit * transactionBytes); err != nil {
		return 0, err
	}
	p.in.Limit = p.limit
	page, v, err := r.server.config.Ledger.Transactions(p.query, p.in)
	if err != nil {
		return 0, err
	}
	r.view = v
	text := len(page.Transactions) * transactionText
	for _, t := range page.Transactions {
		text += len(t.Accounts) * len(`"12345678901234567890123456789012345678901234",`)
	}
	r.grow(text)
	r.body = append(r.body, opening...)
	r.body = append(r.body, `"transactions":[`...)
	list := encode.List{Turn: r.server.config.Turn}
	for _, t := range page.Transactions {
		r.body = encode.AppendTransaction(list.Next(r.body), t)
	}
	next := `],"next_before":`
	if p.in.OldestFirst {
		next = `],"next_after":`
	}
	r.body = encode.AppendOpt(r.body, next, page.Next, func(dst []byte, sig ledger.Signature) []byte {
		return append(sig.AppendBase58(append(dst, '"')), '"')
	})
	return page.HistoryFrom, nil
}
