package yellowstone

import (
	"errors"

	"ledgerd/engine/ledger"
)

// decodeAccount reads SubscribeUpdateAccount: account 1, slot 2, is_startup 3, bank_id 4.
func (u *Update) decodeAccount(message []byte, sliced bool) error {
	var info []byte
	err := eachField(message, func(f field) error {
		switch f.number {
		case 1:
			return f.part(&info)
		case 2:
			return f.number64((*uint64)(&u.Slot))
		case 3:
			return f.boolean(&u.Startup)
		case 4:
			return f.number64(&u.Bank)
		}
		return nil
	})
	if err == nil {
		err = u.decodeAccountInfo(info, sliced)
	}
	return explain("an account", err)
}

// decodeAccountInfo reads SubscribeUpdateAccountInfo: pubkey 1, lamports 2, owner 3,
// executable 4, rent_epoch 5, data 6, write_version 7, txn_signature 8. What is left out is zero,
// but for the keys.
func (u *Update) decodeAccountInfo(message []byte, sliced bool) error {
	w := &u.Write
	var data []byte
	var hasKey, hasOwner bool
	err := eachField(message, func(f field) error {
		switch f.number {
		case 1:
			hasKey = true
			return f.key(&w.Pubkey)
		case 2:
			return f.number64((*uint64)(&w.Lamports))
		case 3:
			hasOwner = true
			return f.key(&w.Owner)
		case 4:
			return f.boolean(&w.Executable)
		case 5:
			return f.number64(&w.RentEpoch)
		case 6:
			return f.part(&data)
		case 7:
			return f.number64(&u.WriteVersion)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case !hasKey || !hasOwner:
		return errors.New("it has no key or no owner")
	case w.Lamports == 0:
		*w = ledger.AccountWrite{Pubkey: w.Pubkey} // closed, whatever else it shows
		return nil
	}
	w.Known = ledger.FieldsShown
	if sliced {
		return teachSlices(w, data)
	}
	w.SetTokenFacts(data)
	return nil
}
