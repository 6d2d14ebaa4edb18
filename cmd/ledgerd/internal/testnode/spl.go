package testnode

import (
	"encoding/binary"

	"ledgerd/engine/ledger"
)

// Sizes of accounts, and the extensions of Token-2022 that are written.
const (
	tokenAccountBytes = 165
	mintBytes         = 82
	voteAccountBytes  = 3762

	kindMint, kindAccount = 1, 2 // at byte tokenAccountBytes of what is extended

	extensionMintClose     = 3 // a mint's close authority: 32 bytes
	extensionImmutable     = 7 // a holding's owner never changes: nothing
	extensionScaledUI      = 25
	extensionScaledUIBytes = 56
)

// accountData returns the data of an account, in the layouts of the programs that own it.
func accountData(w *ledger.AccountWrite) []byte {
	switch {
	case w.Lamports == 0:
		return nil
	case w.Token != nil:
		return tokenData(w)
	case w.Mint != nil:
		return mintData(w)
	case w.Owner == ledger.VoteProgram:
		data := make([]byte, voteAccountBytes)
		binary.LittleEndian.PutUint32(data, 2) // the version of its state
		return data
	}
	return nil
}

// tokenData spells a token account: mint 32, owner 32, amount u64, delegate 4+32, state u8, native
// reserve 4+u64, delegated amount u64, close authority 4+32; Token-2022 adds its kind and that the
// owner never changes.
func tokenData(w *ledger.AccountWrite) []byte {
	t, d := w.Token, w.Token.Details.Value
	b := make([]byte, 0, tokenAccountBytes+5)
	b = append(b, t.Mint[:]...)
	b = append(b, t.Owner[:]...)
	b = binary.LittleEndian.AppendUint64(b, t.Amount)
	b = appendOptionalKey(b, d.Delegate)
	if !t.Details.Known {
		d.State = ledger.TokenInitialized
	}
	b = append(b, byte(d.State))
	if t.IsNative() {
		b = binary.LittleEndian.AppendUint32(b, 1)
		b = binary.LittleEndian.AppendUint64(b, uint64(w.Lamports)-min(t.Amount, uint64(w.Lamports)))
	} else {
		b = append(b, make([]byte, 12)...)
	}
	b = binary.LittleEndian.AppendUint64(b, d.DelegatedAmount)
	b = appendOptionalKey(b, d.CloseAuthority)
	if w.Owner == ledger.Token2022Program {
		b = append(b, kindAccount)
		b = appendExtension(b, extensionImmutable, nil)
	}
	return b
}

// mintData spells a mint: authority 4+32, supply u64, decimals u8, initialized u8, freeze authority
// 4+32; Token-2022 pads it to the size of a token account and adds its kind and extensions.
func mintData(w *ledger.AccountWrite) []byte {
	m := w.Mint
	b := make([]byte, 0, 256)
	b = appendOptionalKey(b, ledger.Some(w.Pubkey))
	b = binary.LittleEndian.AppendUint64(b, m.Supply.Value)
	b = append(b, m.Decimals, 1)
	b = appendOptionalKey(b, ledger.Opt[ledger.Pubkey]{})
	if w.Owner != ledger.Token2022Program {
		return b
	}
	b = append(b, make([]byte, tokenAccountBytes-mintBytes)...)
	b = append(b, kindMint)
	b = appendExtension(b, extensionMintClose, make([]byte, 32))
	if m.Scaled.Value {
		b = appendExtension(b, extensionScaledUI, make([]byte, extensionScaledUIBytes))
	}
	return b
}

func appendOptionalKey(b []byte, key ledger.Opt[ledger.Pubkey]) []byte {
	tag := uint32(0)
	if key.Known {
		tag = 1
	}
	b = binary.LittleEndian.AppendUint32(b, tag)
	return append(b, key.Value[:]...)
}

func appendExtension(b []byte, kind uint16, value []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	return append(b, value...)
}
