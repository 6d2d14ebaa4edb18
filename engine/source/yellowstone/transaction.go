package yellowstone

import (
	"fmt"

	"ledgerd/engine/ledger"
)

// decodeTransaction reads SubscribeUpdateTransaction: transaction 1, slot 2, bank_id 3.
func (u *Update) decodeTransaction(message []byte) error {
	info, _, err := u.decodeAround(message, 3)
	if err != nil {
		return err
	}
	return decodeTransactionInfo(info, &u.Transaction)
}

// decodeTransactionStatus reads SubscribeUpdateTransactionStatus: slot 1, signature 2, is_vote 3, index 4, err 5, bank_id 6.
func (u *Update) decodeTransactionStatus(message []byte) error {
	m := reader{rest: message}
	for m.next() {
		switch m.number {
		case 1:
			number(&m, &u.Slot)
		case 4:
			m.index(&u.Transaction.Index)
		case 6:
			number(&m, &u.Bank)
		}
	}
	return m.err
}

// maxTransactions bounds the transactions of a block; no ledger comes near it.
const maxTransactions = 1 << 20

// index reads the index of a transaction in its block.
func (r *reader) index(to *uint32) {
	var index uint64
	if number(r, &index); index > maxTransactions {
		r.fail(fmt.Errorf("its index is %d", index))
	}
	*to = uint32(index)
}

// decodeTransactionInfo reads SubscribeUpdateTransactionInfo: signature 1, is_vote 2,
// transaction 3, meta 4, index 5.
func decodeTransactionInfo(message []byte, t *ledger.Transaction) error {
	var signature, transaction, meta []byte
	m := reader{rest: message}
	for m.next() {
		switch m.number {
		case 1:
			signature = m.part()
		case 3:
			transaction = m.part()
		case 4:
			meta = m.part()
			t.Success = ledger.Some(true) // unless the meta says otherwise
		case 5:
			m.index(&t.Index)
		}
	}
	switch {
	case m.err != nil:
		return m.err
	case len(signature) != len(t.Signature):
		return fmt.Errorf("its signature has %d bytes", len(signature))
	}
	t.Signature = ledger.Signature(signature)
	if err := decodeKeys(transaction, t); err != nil || !t.Success.Known {
		return err
	}
	return decodeTransactionMeta(meta, t)
}

// decodeKeys reads the static keys of a Transaction: message 2 {account_keys 2}.
func decodeKeys(transaction []byte, t *ledger.Transaction) error {
	m := reader{rest: transaction}
	for m.next() {
		if m.number != 2 {
			continue
		}
		body := reader{rest: m.part()}
		for body.next() {
			if body.number == 2 {
				body.appendKey(&t.Accounts)
			}
		}
		m.fail(body.err)
	}
	return m.err
}

// decodeTransactionMeta reads TransactionStatusMeta: err 1, fee 2, loaded_writable_addresses 12,
// loaded_readonly_addresses 13. Balances are told by the accounts themselves.
func decodeTransactionMeta(meta []byte, t *ledger.Transaction) error {
	t.Fee = ledger.Some(ledger.Lamports(0)) // unless it says otherwise
	var readonly []ledger.Pubkey
	m := reader{rest: meta}
	for m.next() {
		switch m.number {
		case 1:
			t.Success, t.Err = ledger.Some(false), decodeErr(m.part())
		case 2:
			number(&m, &t.Fee.Value)
		case 12:
			m.appendKey(&t.Accounts)
		case 13:
			m.appendKey(&readonly)
		}
	}
	t.Accounts = append(t.Accounts, readonly...)
	return m.err
}
