package httpd

import "ledgerd/engine/ledger"

// transaction answers the transaction with a first signature.
func (r *request) transaction() error {
	sig, err := ledger.ParseSignature(r.variable)
	if err != nil {
		return errSignature
	}
	a, v, err := r.server.ledger.Transaction(r.params.query, sig)
	if err != nil {
		return err
	}
	r.body = appendTransaction(r.body, a.Transaction)
	r.answered(v)
	r.tagBody()
	r.immutable = a.Commitment == ledger.Finalized
	return nil
}

// recent answers a page of transactions, newest first, and where the next page starts.
func (r *request) recent() error {
	p := &r.params
	if p.limit == 0 {
		p.limit = defaultRecentLimit
	}
	txs, more, v, err := r.server.ledger.Recent(p.query, ledger.RecentRange{Before: p.before, After: p.after, Limit: p.limit})
	if err != nil {
		return err
	}
	r.expect(transactionsBytes(txs))
	r.body = append(r.body, `{"transactions":[`...)
	for i, t := range txs {
		r.body = appendTransaction(element(r.body, i), t)
	}
	r.body = append(r.body, `],"next_before":`...)
	if more && len(txs) > 0 {
		r.body = append(r.body, '"')
		r.body = txs[len(txs)-1].Signature.AppendBase58(r.body)
		r.body = append(r.body, '"')
	} else {
		r.body = append(r.body, `null`...)
	}
	r.body = append(r.body, '}')
	r.answered(v)
	return nil
}

// transactionsBytes is about how long the records of transactions are.
func transactionsBytes(txs []*ledger.Transaction) int {
	n := len(txs) * usualTransactionBytes
	for _, t := range txs {
		n += len(t.Accounts) * (base58Bytes + len(`"",`))
	}
	return n
}

// usualTransactionBytes is about how long the record of a transaction is without its accounts.
const usualTransactionBytes = 210
