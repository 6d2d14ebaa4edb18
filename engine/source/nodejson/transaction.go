package nodejson

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// transactionJSON is one transaction of a block, with what its execution left behind.
type transactionJSON struct {
	Transaction transactionBody    `json:"transaction"`
	Meta        *metaJSON          `json:"meta"` // nil: not kept
	Version     transactionVersion `json:"version"`
	wrong       error              // why it cannot be read, which is no error of its block where its version is not known
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (j *transactionJSON) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := dec.ReadValue()
	if err != nil {
		return err
	}
	type known transactionJSON // without this method
	if err := Unmarshal(text, (*known)(j)); err != nil {
		var unknown struct {
			Version transactionVersion `json:"version"`
		}
		_ = Unmarshal(text, &unknown) // which fails at nothing
		*j = transactionJSON{Version: unknown.Version, wrong: err}
	}
	return nil
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
	wire *codec.WireTransaction

	Signatures []*ledger.Signature `json:"signatures"`
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

// messageKey is one account of a transaction. Encoding jsonParsed lists the
// loaded addresses too, in order; encoding json, with plain keys, leaves them to the metadata.
type messageKey struct {
	pubkey   ledger.Pubkey
	parsed   bool
	readOnly bool
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (k *messageKey) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		return json.UnmarshalDecode(dec, &k.pubkey)
	}
	var parsed struct {
		Pubkey   *ledger.Pubkey `json:"pubkey"`
		Writable *bool          `json:"writable"`
	}
	err := json.UnmarshalDecode(dec, &parsed)
	switch {
	case err != nil:
		return err
	case parsed.Pubkey == nil:
		return Missing("pubkey")
	}
	*k = messageKey{*parsed.Pubkey, true, parsed.Writable != nil && !*parsed.Writable}
	return nil
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *transactionBody) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '{' {
		type spelledOut transactionBody // without this method
		return json.UnmarshalDecode(dec, (*spelledOut)(t))
	}
	b, err := dec.ReadValue()
	if err != nil {
		return err
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
	if j.wrong != nil {
		return ledger.Transaction{}, j.wrong
	}
	t, readOnly, loadsFromMeta, err := j.Transaction.keys()
	m := j.Meta
	if err != nil || m == nil {
		return t, err
	}
	if l := m.LoadedAddresses; loadsFromMeta {
		firstRead := len(t.Accounts) + len(l.Writable)
		t.Accounts = appendKeys(t.Accounts, slices.Concat(l.Writable, l.Readonly))
		static := readOnly
		readOnly = func(i int) bool { return i >= firstRead || i < firstRead-len(l.Writable) && static(i) }
	}
	t.Fee = Optional(m.Fee)
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
	case t.wire != nil:
		return ledger.Transaction{Signature: t.wire.Signatures[0], Accounts: t.wire.StaticKeys}, t.wire.IsReadOnly, true, nil
	case len(t.Signatures) == 0 || t.Signatures[0] == nil:
		return out, nil, false, errors.New("it has no signature")
	case len(keys) == 0:
		return out, nil, false, Missing("accountKeys")
	}
	out = ledger.Transaction{Signature: *t.Signatures[0], Accounts: appendKeys(nil, keys)}
	readOnly = func(i int) bool { return keys[i].readOnly }
	if t.Message != nil && t.Message.Header != nil && !keys[0].parsed {
		message := codec.WireTransaction{Header: codec.MessageHeader(*t.Message.Header), StaticKeys: out.Accounts}
		readOnly = message.IsReadOnly
	}
	return out, readOnly, !keys[0].parsed, nil
}

// appendKeys appends the keys of accounts.
func appendKeys(dst []ledger.Pubkey, keys []messageKey) []ledger.Pubkey {
	dst = slices.Grow(dst, len(keys))
	for i := range keys {
		dst = append(dst, keys[i].pubkey)
	}
	return dst
}

// metaJSON is what the execution of a transaction left behind.
type metaJSON struct {
	Err               jsontext.Value     `json:"err"` // nil: not said
	Status            *statusJSON        `json:"status"`
	Fee               *ledger.Lamports   `json:"fee"`
	PostBalances      numbers            `json:"postBalances"` // nil: not recorded
	PreTokenBalances  []balanceOf        `json:"preTokenBalances"`
	PostTokenBalances []tokenBalanceJSON `json:"postTokenBalances"` // nil: not recorded
	LoadedAddresses   struct {
		Writable []messageKey `json:"writable"`
		Readonly []messageKey `json:"readonly"`
	} `json:"loadedAddresses"`
}

type statusJSON struct {
	Err jsontext.Value `json:"Err"` // nil: succeeded
}

// outcome returns whether the transaction succeeded, and what it failed with. Nodes say it twice; the older way
// counts only where the newer is missing.
func (m *metaJSON) outcome() (success ledger.Opt[bool], failure string) {
	switch {
	case string(m.Err) == "null", m.Err == nil && m.Status != nil && m.Status.Err == nil:
		return ledger.Some(true), ""
	case m.Err != nil:
		return ledger.Some(false), ErrText(m.Err)
	case m.Status != nil:
		return ledger.Some(false), ErrText(m.Status.Err)
	}
	return success, ""
}

// ErrText returns what is kept of the JSON of what a transaction failed with, "" where nothing is: it is too long, or null.
func ErrText(said jsontext.Value) string {
	text := said.Clone()
	if err := text.Compact(); err != nil || len(text) > ledger.MaxErrBytes || string(text) == "null" {
		return ""
	}
	return string(text)
}

// write records the balances after the transaction; a failed one has paid its fee. Token
// balances tell the token facts.
//
// An account that no transaction of the block may write has not changed, but for sysvars, which the runtime changes by itself. Those that the
// runtime does not let a transaction write although it asked for it, reserved keys and programs that it calls, are taken for written: a node
// tells which they are only in some encodings.
func (m *metaJSON) write(accounts []ledger.Pubkey, readOnly func(int) bool, writes *blockWrites) error {
	if m.PostBalances == nil {
		return nil
	}
	if len(m.PostBalances) != len(accounts) {
		return fmt.Errorf("%d postBalances for %d accounts", len(m.PostBalances), len(accounts))
	}
	after := make([]ledger.AccountWrite, len(accounts))
	for i, k := range accounts {
		after[i] = ledger.AccountWrite{Pubkey: k, Lamports: ledger.Lamports(m.PostBalances[i]), ReadOnly: writes.saysReads && readOnly(i) && !isSysvar(&k)}
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
