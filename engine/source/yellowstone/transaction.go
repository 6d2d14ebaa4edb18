package yellowstone

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
)

// decodeTransaction reads SubscribeUpdateTransaction: transaction 1, slot 2, bank_id 3.
func (u *Update) decodeTransaction(message []byte) error {
	var info []byte
	err := eachField(message, func(f field) error {
		switch f.number {
		case 1:
			return f.part(&info)
		case 2:
			return f.number64((*uint64)(&u.Slot))
		case 3:
			return f.number64(&u.Bank)
		}
		return nil
	})
	if err == nil {
		err = decodeTransactionInfo(info, &u.Transaction)
	}
	return explain("a transaction", err)
}

// decodeTransactionInfo reads SubscribeUpdateTransactionInfo: signature 1, is_vote 2,
// transaction 3, meta 4, index 5.
func decodeTransactionInfo(message []byte, t *ledger.Transaction) error {
	var hasSignature bool
	var transaction, meta []byte
	err := eachField(message, func(f field) error {
		switch f.number {
		case 1:
			if len(f.bytes) != len(t.Signature) {
				return fmt.Errorf("its signature has %d bytes", len(f.bytes))
			}
			hasSignature = true
			copy(t.Signature[:], f.bytes)
		case 3:
			transaction = f.bytes
		case 4:
			meta = f.bytes
			t.Success = ledger.Some(true) // unless the meta says otherwise
		case 5:
			var index uint64
			if err := f.number64(&index); err != nil || index > maxTransactions {
				return errors.New("its index is none")
			}
			t.Index = uint32(index)
		}
		return nil
	})
	if err == nil && !hasSignature {
		err = errors.New("it has no signature")
	}
	if err == nil {
		err = decodeKeys(transaction, t)
	}
	if err == nil {
		err = decodeTransactionMeta(meta, t)
	}
	return err
}

// maxTransactions bounds the transactions of a block; no ledger comes near it.
const maxTransactions = 1 << 20

// decodeKeys reads the static keys of a Transaction: message 2 {account_keys 2}.
func decodeKeys(transaction []byte, t *ledger.Transaction) error {
	return eachField(transaction, func(f field) error {
		if f.number != 2 || f.kind != protowire.BytesType {
			return nil
		}
		return eachField(f.bytes, func(f field) error {
			if f.number != 2 {
				return nil
			}
			return appendKey(f, &t.Accounts)
		})
	})
}

// decodeTransactionMeta reads TransactionStatusMeta: err 1, fee 2, loaded_writable_addresses 12,
// loaded_readonly_addresses 13. Balances are told by the accounts themselves.
func decodeTransactionMeta(meta []byte, t *ledger.Transaction) error {
	if !t.Success.Known {
		return nil
	}
	t.Fee = ledger.Some(ledger.Lamports(0)) // unless it says otherwise
	var readonly []ledger.Pubkey
	err := eachField(meta, func(f field) error {
		switch f.number {
		case 1:
			t.Success = ledger.Some(false)
		case 2:
			return f.number64((*uint64)(&t.Fee.Value))
		case 12:
			return appendKey(f, &t.Accounts)
		case 13:
			return appendKey(f, &readonly)
		}
		return nil
	})
	t.Accounts = append(t.Accounts, readonly...)
	return err
}

func appendKey(f field, keys *[]ledger.Pubkey) error {
	var key ledger.Pubkey
	if err := f.key(&key); err != nil {
		return err
	}
	*keys = append(*keys, key)
	return nil
}
