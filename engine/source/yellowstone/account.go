package yellowstone

import (
	"fmt"

	"ledgerd/engine/ledger"
)

// decodeAccount reads SubscribeUpdateAccount: account 1, slot 2, is_startup 3, bank_id 4. An account as it stood when the validator started is no
// write, and nothing that we need.
func (u *Update) decodeAccount(message []byte, d Decoder) error {
	info, isStartup, err := u.decodeAround(message, 4)
	if err != nil || isStartup {
		return err
	}
	u.Kind = Account
	return u.decodeAccountInfo(info, d)
}

// decodeAccountInfo reads SubscribeUpdateAccountInfo: pubkey 1, lamports 2, owner 3,
// executable 4, rent_epoch 5, data 6, write_version 7, txn_signature 8. What is left out is zero,
// but for the keys.
func (u *Update) decodeAccountInfo(message []byte, d Decoder) error {
	w := &u.Write
	var key, owner, data []byte
	m := reader{rest: message}
	for m.next() {
		switch m.number {
		case 1:
			key = m.part()
		case 2:
			number(&m, &w.Lamports)
		case 3:
			owner = m.part()
		case 4:
			m.boolean(&w.Executable)
		case 5:
			number(&m, &w.RentEpoch)
		case 6:
			data = m.part()
		case 7:
			number(&m, &u.WriteVersion)
		}
	}
	switch {
	case m.err != nil:
		return m.err
	case len(key) != len(w.Pubkey) || len(owner) != len(w.Owner):
		return fmt.Errorf("its key has %d bytes, and its owner %d", len(key), len(owner))
	}
	w.Pubkey, w.Owner = ledger.Pubkey(key), ledger.Pubkey(owner)
	if w.Lamports == 0 {
		*w = ledger.AccountWrite{Pubkey: w.Pubkey} // closed, whatever else it shows
		return nil
	}
	w.Known = ledger.FieldsShown
	if d.Sliced {
		return teachSlices(w, data)
	}
	w.SetTokenFacts(data)
	w.SetData(data, d.Data)
	return nil
}
