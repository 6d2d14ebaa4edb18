package nodejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// transactionJSON is one transaction of a block, with what its execution left behind.
type transactionJSON struct {
	Transaction transactionBody    `json:"transaction"`
	Meta        *metaJSON          `json:"meta"` // nil: not kept
	Version     transactionVersion `json:"version"`
}

// transactionVersion is 0 where it is not said, or "legacy".
type transactionVersion uint8

// knownVersion is the newest version of transactions whose form is known here.
const knownVersion = 1

// UnmarshalJSON implements json.Unmarshaler.
func (v *transactionVersion) UnmarshalJSON(b []byte) error {
	if number, err := strconv.ParseUint(string(b), 10, 8); err == nil {
		*v = transactionVersion(number)
	}
	return nil
}

// transactionBody is a transaction in any of the node's encodings: in wire format, or
// spelled out.
type transactionBody struct {
	wire  *codec.WireTransaction
	wrong error // why it cannot be read, which is no error of its block where its version is not known

	Signatures []string `json:"signatures"`
	Message    *struct {
		Header      *messageHeader `json:"header"`
		AccountKeys []messageKey   `json:"accountKeys"`
	} `json:"message"`
	// AccountKeys stand here where only the accounts were asked for.
	AccountKeys []messageKey `json:"accountKeys"`
}

// messageHeader is a codec.MessageHeader.
type messageHeader struct {
	Required         uint8 `json:"numRequiredSignatures"`
	ReadonlySigned   uint8 `json:"numReadonlySignedAccounts"`
	ReadonlyUnsigned uint8 `json:"numReadonlyUnsignedAccounts"`
}

// messageKey is one account of a spelled-out transaction. Encoding jsonParsed lists the
// loaded addresses too, in order; encoding json, with plain keys, leaves them to the metadata.
type messageKey struct {
	pubkey   string
	parsed   bool
	readOnly bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (k *messageKey) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &k.pubkey)
	}
	var parsed struct {
		Pubkey   string `json:"pubkey"`
		Writable *bool  `json:"writable"`
	}
	err := json.Unmarshal(b, &parsed)
	*k = messageKey{parsed.Pubkey, true, parsed.Writable != nil && !*parsed.Writable}
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *transactionBody) UnmarshalJSON(b []byte) error {
	t.wrong = t.unmarshal(b)
	return nil
}

func (t *transactionBody) unmarshal(b []byte) error {
	if b[0] == '{' {
		type spelledOut transactionBody // without this method
		return PlainError(json.Unmarshal(b, (*spelledOut)(t)))
	}
	text, encoding, ok := encodedText(b, "base58")
	const maxTextBytes = 64 << 10 // a transaction of version 1 has up to 4,096 bytes, one of a later version perhaps more
	switch {
	case !ok:
		return errors.New("it is neither an object nor encoded")
	case len(text) > maxTextBytes:
		return errors.New("it is too long")
	}
	raw, err := decodeText("it", text, encoding)
	if err != nil {
		return err
	}
	wire, err := codec.ParseTransaction(raw)
	if err != nil && !errors.Is(err, codec.ErrTransactionVersion) {
		err = errors.New("malformed wire format")
	}
	t.wire = &wire
	return err
}

// read returns the transaction and records what it wrote.
func (j *transactionJSON) read(writes *blockWrites) (ledger.Transaction, error) {
	t, readOnly, loadsFromMeta, err := j.Transaction.keys()
	if err != nil {
		return t, err
	}
	m := j.Meta
	if m == nil {
		return t, nil
	}
	if err := m.wrong(); err != nil {
		return t, err
	}
	if l := m.LoadedAddresses.value; l != nil && loadsFromMeta {
		firstRead := len(t.Accounts) + len(l.Writable)
		for _, text := range slices.Concat(l.Writable, l.Readonly) {
			k, err := parseKey("a loaded address", text)
			if err != nil {
				return t, err
			}
			t.Accounts = append(t.Accounts, k)
		}
		static := readOnly
		readOnly = func(i int) bool { return i >= firstRead || i < firstRead-len(l.Writable) && static(i) }
	}
	t.Fee = Optional((*ledger.Lamports)(m.Fee.value))
	t.Success, t.Err = m.outcome()
	return t, m.write(t.Accounts, readOnly, writes)
}

// keys returns the transaction's signature and its accounts, and which of them it only reads. Those that it loads from lookup
// tables may have to come from the metadata.
func (t *transactionBody) keys() (out ledger.Transaction, readOnly func(int) bool, loadsFromMeta bool, err error) {
	keys := t.AccountKeys
	if t.Message != nil {
		keys = t.Message.AccountKeys
	}
	switch {
	case t.wrong != nil:
		err = t.wrong
	case t.wire != nil:
		return ledger.Transaction{Signature: t.wire.Signatures[0], Accounts: t.wire.StaticKeys}, t.wire.IsReadOnly, true, nil
	case len(t.Signatures) == 0:
		err = errors.New("it has no signature")
	default:
		out.Signature, err = parseSignature("signature", t.Signatures[0])
	}
	if err == nil && len(keys) == 0 {
		err = Missing("accountKeys")
	}
	if err != nil {
		return out, nil, false, err
	}
	out.Accounts = make([]ledger.Pubkey, len(keys))
	for i, k := range keys {
		if out.Accounts[i], err = parseKey("an account key", k.pubkey); err != nil {
			return out, nil, false, err
		}
	}
	readOnly = func(i int) bool { return keys[i].readOnly }
	if t.Message != nil && t.Message.Header != nil && !keys[0].parsed {
		message := codec.WireTransaction{Header: codec.MessageHeader(*t.Message.Header), StaticKeys: out.Accounts}
		readOnly = message.IsReadOnly
	}
	return out, readOnly, !keys[0].parsed, nil
}

// metaJSON is what the execution of a transaction left behind.
type metaJSON struct {
	Err               json.RawMessage        `json:"err"` // nil: not said
	Status            part[*statusJSON]      `json:"status"`
	Fee               part[*uint64]          `json:"fee"`
	PostBalances      part[numbers]          `json:"postBalances"` // nil: not recorded
	PreTokenBalances  []tokenBalanceJSON     `json:"preTokenBalances"`
	PostTokenBalances []tokenBalanceJSON     `json:"postTokenBalances"` // nil: not recorded
	LoadedAddresses   part[*loadedAddresses] `json:"loadedAddresses"`
}

type statusJSON struct {
	Err json.RawMessage `json:"Err"` // nil: succeeded
}

type loadedAddresses struct {
	Writable []string `json:"writable"`
	Readonly []string `json:"readonly"`
}

// part is a value of the metadata. What is wrong with it is no error of its block where the version of its transaction is not known. It is
// kept for each value that is short, since JSON of a type with its own UnmarshalJSON is scanned twice more: a block would take two thirds
// longer with all of the metadata, and a quarter with the token balances. These must have the known form in all versions.
type part[T any] struct {
	value T
	wrong error
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *part[T]) UnmarshalJSON(b []byte) error {
	p.wrong = json.Unmarshal(b, &p.value)
	return nil
}

// wrong returns why the metadata cannot be read, nil if it can.
func (m *metaJSON) wrong() error {
	for _, p := range []struct {
		name  string
		wrong error
	}{
		{"status", m.Status.wrong}, {"fee", m.Fee.wrong}, {"postBalances", m.PostBalances.wrong},
		{"loadedAddresses", m.LoadedAddresses.wrong},
	} {
		if mismatch, is := errors.AsType[*json.UnmarshalTypeError](p.wrong); is && mismatch.Field == "" {
			mismatch.Field = p.name
		}
		if p.wrong != nil {
			return PlainError(p.wrong)
		}
	}
	return nil
}

// outcome returns whether the transaction succeeded, and what it failed with. Nodes say it twice; the older way
// counts only where the newer is missing.
func (m *metaJSON) outcome() (success ledger.Opt[bool], failure string) {
	switch {
	case bytes.Equal(m.Err, []byte("null")), m.Err == nil && m.Status.value != nil && m.Status.value.Err == nil:
		return ledger.Some(true), ""
	case m.Err != nil:
		return ledger.Some(false), ErrText(m.Err)
	case m.Status.value != nil:
		return ledger.Some(false), ErrText(m.Status.value.Err)
	}
	return success, ""
}

// ErrText returns what is kept of the JSON of what a transaction failed with, "" where nothing is: it is too long, or null.
func ErrText(said json.RawMessage) string {
	var text bytes.Buffer
	if err := json.Compact(&text, said); err != nil || text.Len() > ledger.MaxErrBytes || text.String() == "null" {
		return ""
	}
	return text.String()
}

// write records the balances after the transaction; a failed one has paid its fee. Token
// balances tell the token facts.
//
// An account that no transaction of the block may write has not changed, but for sysvars, which the runtime changes by itself. Those that the
// runtime does not let a transaction write although it asked for it, reserved keys and programs that it calls, are taken for written: a node
// tells which they are only in some encodings.
func (m *metaJSON) write(accounts []ledger.Pubkey, readOnly func(int) bool, writes *blockWrites) error {
	if m.PostBalances.value == nil {
		return nil
	}
	if len(m.PostBalances.value) != len(accounts) {
		return fmt.Errorf("%d postBalances for %d accounts", len(m.PostBalances.value), len(accounts))
	}
	after := make([]ledger.AccountWrite, len(accounts))
	for i, k := range accounts {
		after[i] = ledger.AccountWrite{Pubkey: k, Lamports: ledger.Lamports(m.PostBalances.value[i]), ReadOnly: writes.saysReads && readOnly(i) && !isSysvar(&k)}
	}
	if err := m.writeTokens(after, writes); err != nil {
		return err
	}
	for _, w := range after {
		writes.add(w)
	}
	return nil
}

// isSysvar reports whether a key begins as those of all sysvars do.
func isSysvar(k *ledger.Pubkey) bool { return [4]byte(k[:]) == [4]byte{0x06, 0xa7, 0xd5, 0x17} }

// writeTokens adds token facts to the writes of one transaction. An account that had a token
// balance before the transaction and has none after it is no token account any more.
func (m *metaJSON) writeTokens(after []ledger.AccountWrite, writes *blockWrites) error {
	if m.PostTokenBalances == nil {
		return nil
	}
	for _, row := range m.PreTokenBalances {
		i, err := row.account(len(after))
		if err != nil {
			return fmt.Errorf("preTokenBalances: %w", err)
		}
		after[i].Known |= ledger.FieldToken
	}
	for _, row := range m.PostTokenBalances {
		i, err := row.account(len(after))
		if err != nil {
			return fmt.Errorf("postTokenBalances: %w", err)
		}
		if err := row.teach(&after[i], writes); err != nil {
			return fmt.Errorf("postTokenBalances: %w", err)
		}
	}
	return nil
}
