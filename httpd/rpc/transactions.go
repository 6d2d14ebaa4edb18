package rpc

import (
	"errors"
	"math"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

const (
	maxStatuses      = 256
	maxSignatures    = 1000
	transactionBytes = 2048 // of a transaction while it is listed
	transactionText  = 260
)

// signatureStatuses answers what became of transactions, null for those that are not held. Without searchTransactionHistory those that only the
// disk holds are not looked for.
func (c *call) signatureStatuses(dst []byte) ([]byte, error) {
	texts := c.list(c.param(0), maxStatuses, "signatures")
	sigs := make([]ledger.Signature, len(texts))
	for i, text := range texts {
		sigs[i] = c.signature(text, "each signature")
	}
	history := c.isSet(c.config(1), "searchTransactionHistory")
	c.query.Commitment, c.query.Recent = ledger.Processed, !history // the answer tells the level of each
	if _, err := c.newest(); err != nil {
		return dst, err
	}
	dst = append(c.appendContext(dst), '[')
	var list encode.List
	for _, sig := range sigs {
		dst = list.Next(dst)
		a, _, err := c.door.config.Ledger.Transaction(c.query, sig)
		switch {
		case c.isLate():
			return dst, longTerm("for fewer signatures")
		case errors.Is(err, ledger.ErrNotFound):
			dst = append(dst, `null`...)
		case err != nil:
			return dst, err
		default:
			if dst, err = c.appendStatus(dst, a); err != nil {
				return dst, err
			}
		}
	}
	return append(dst, `]}`...), nil
}

// appendStatus appends what became of a transaction. While it is not final, the blocks since then are its confirmations.
func (c *call) appendStatus(dst []byte, a ledger.TransactionAnswer) ([]byte, error) {
	t := a.Transaction
	dst = encode.AppendNumber(dst, `{"slot":`, t.Slot)
	var since ledger.Opt[uint64]
	if a.Commitment != ledger.Finalized {
		p, _, err := c.door.config.Ledger.Slots(c.query, t.Slot+1, math.MaxUint64, maxStatuses)
		if err != nil {
			return dst, err
		}
		since = ledger.Some(uint64(len(p.Slots)))
	}
	dst = appendStatusMembers(append(encode.AppendOpt(dst, `,"confirmations":`, since, encode.Number), ','), t)
	return appendLevel(dst, a.Commitment), nil
}

// appendLevel ends what is told of a transaction.
func appendLevel(dst []byte, level ledger.Commitment) []byte {
	return append(append(append(dst, `,"confirmationStatus":"`...), level.String()...), `"}`...)
}

// appendStatusMembers appends the members that say what became of a transaction.
func appendStatusMembers(dst []byte, t *ledger.Transaction) []byte {
	dst = append(dst, `"status":{`...)
	if failed(t) {
		dst = append(appendFailure(append(dst, `"Err":`...), t), `},"err":`...)
	} else {
		dst = append(dst, `"Ok":null},"err":`...)
	}
	return appendFailure(dst, t)
}

func failed(t *ledger.Transaction) bool { return t.Success.Known && !t.Success.Value }

// appendFailure appends what a transaction failed with, null for one that did not. Where the source tells only that it failed, that is
// an error of no instruction: no error of the ledger has this name.
func appendFailure(dst []byte, t *ledger.Transaction) []byte {
	switch {
	case !failed(t):
		return append(dst, `null`...)
	case t.Err == "":
		return append(dst, `"Unknown"`...)
	}
	return append(dst, t.Err...)
}

// signaturesForAddress answers the transactions that name an address, newest first.
func (c *call) signaturesForAddress(dst []byte) ([]byte, error) {
	key, config := c.about("address")
	c.confirmedAtLeast()
	in := ledger.TransactionRange{Address: ledger.Some(key), Limit: maxSignatures}
	if v := member(config, "limit"); v != nil {
		n, err := v.Uint64()
		if err != nil || n == 0 || n > maxSignatures {
			c.bad("limit must be from 1 to %d", maxSignatures)
		}
		in.Limit = int(n)
	}
	if v := member(config, "before"); v != nil {
		in.Before = ledger.Some(c.signature(v, "before"))
	}
	if v := member(config, "until"); v != nil {
		in.After = ledger.Some(c.signature(v, "until"))
	}
	if c.wrong != nil {
		return dst, c.wrong
	}
	return c.appendHistory(dst, in)
}

// appendHistory appends the transactions of a range. The ledger may end a page early where it looks through many others.
func (c *call) appendHistory(dst []byte, in ledger.TransactionRange) ([]byte, error) {
	if err := c.x.Reserve(in.Limit * (transactionBytes + transactionText)); err != nil {
		return dst, err
	}
	dst = append(dst, '[')
	list := encode.List{Turn: c.door.config.Turn}
	for {
		p, v, err := c.door.config.Ledger.Transactions(c.query, in)
		switch err = historyError(c.from(v, err), in.Address.Value); {
		case c.isLate():
			return dst, longTerm("with a limit or another before")
		case err != nil:
			return dst, err
		}
		for _, t := range p.Transactions {
			dst = c.appendSummary(list.Next(dst), t)
		}
		in.Limit -= len(p.Transactions)
		switch {
		case in.Limit > 0 && !p.Next.Known && len(c.door.upstreams) > 0 && p.HistoryFrom > 0 && !in.After.Known:
			// An upstream may hold older ones.
			return dst, elsewhere(codeCleanedUp, "Transactions before slot %d are not held", p.HistoryFrom)
		case in.Limit == 0 || !p.Next.Known:
			return append(dst, ']'), nil
		}
		in.Before = p.Next
	}
}

// longTerm says that what is on disk was not read in time, and how to ask instead.
func longTerm(instead string) error {
	return &callError{code: codeLongTerm, message: "The history could not be searched in time; ask " + instead}
}

// historyError returns nil where the error is that nothing is known of the address: then the page is empty.
func historyError(err error, address ledger.Pubkey) error {
	absent, ok := errors.AsType[*ledger.NotFoundError](err)
	switch {
	case !ok:
		return err
	case absent.Absence == ledger.TransactionNotFound, absent.Absence == ledger.TransactionNotIndexed,
		absent.Absence == ledger.TransactionLost, absent.Absence == ledger.TransactionNotYet:
		return elsewhere(codeFilterNotFound, "The transaction of before or until is not held")
	}
	return unlessAbsent(err, address)
}

// appendSummary appends what a list shows of a transaction. Memos are not held.
func (c *call) appendSummary(dst []byte, t *ledger.Transaction) []byte {
	dst = t.Signature.AppendBase58(append(dst, `{"signature":"`...))
	dst = encode.AppendNumber(dst, `","slot":`, t.Slot)
	dst = encode.AppendNumber(dst, `,"transactionIndex":`, t.Index)
	dst = appendFailure(append(dst, `,"err":`...), t)
	return appendLevel(encode.AppendOpt(dst, `,"memo":null,"blockTime":`, t.Time, appendSeconds), c.view.Head.CommitmentOf(t.Slot))
}
