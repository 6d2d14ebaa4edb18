package nodejson

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// TestAccountsThatATransactionMayNotWriteAreOnlyRead reads one transaction in all encodings: six static keys, of two signers and of two others
// the last one read only, and two keys that are loaded, the second one read only.
func TestAccountsThatATransactionMayNotWriteAreOnlyRead(t *testing.T) {
	const clock = 4 // of the keys, a sysvar: read only, but the runtime changes it
	var keys []ledger.Pubkey
	for i := range 8 {
		keys = append(keys, ledger.Pubkey{byte(i + 1)})
	}
	keys[clock] = ledger.Pubkey{0x06, 0xa7, 0xd5, 0x17, 0x18}
	readOnly := map[int]bool{1: true, 5: true, 7: true}
	quoted := func(keys []ledger.Pubkey) string {
		return `"` + strings.Join(strings.Split(ledger.JoinKeys(keys), ","), `","`) + `"`
	}
	var parsed []string
	for i, k := range keys {
		parsed = append(parsed, fmt.Sprintf(`{"pubkey":%q,"writable":%v}`, k, !readOnly[i] && i != clock))
	}
	signature := ledger.Signature{9}.String()
	wire := append(append([]byte{2}, make([]byte, 128)...), 0x80, 2, 1, 2, 6)
	wire[1] = 9
	for _, k := range keys[:6] {
		wire = append(wire, k[:]...)
	}
	wire = append(append(wire, make([]byte, 32)...), 0, 0)
	for name, text := range map[string]string{
		"base64": fmt.Sprintf(`[%q,"base64"]`, base64.StdEncoding.EncodeToString(wire)),
		"json": fmt.Sprintf(`{"signatures":[%q],"message":{"header":{"numRequiredSignatures":2,"numReadonlySignedAccounts":1,
			"numReadonlyUnsignedAccounts":2},"accountKeys":[%s]}}`, signature, quoted(keys[:6])),
		"jsonParsed": fmt.Sprintf(`{"signatures":[%q],"message":{"accountKeys":[%s]}}`, signature, strings.Join(parsed, ",")),
		"accounts":   fmt.Sprintf(`{"signatures":[%q],"accountKeys":[%s]}`, signature, strings.Join(parsed, ",")),
	} {
		var j transactionJSON
		ledgertest.Must(t, json.Unmarshal(fmt.Appendf(nil, `{"transaction":%s,"meta":{"err":null,"postBalances":[1,2,3,4,5,6,7,8],
			"loadedAddresses":{"writable":[%s],"readonly":[%s]}}}`, text, quoted(keys[6:7]), quoted(keys[7:])), &j))
		writes := newBlockWrites()
		writes.saysReads = true
		_, err := j.read(writes)
		ledgertest.Must(t, err)
		for i, w := range writes.accounts {
			if w.Pubkey != keys[i] || w.ReadOnly != readOnly[i] {
				t.Errorf("%s: key %d is %v, only read: %v", name, i, w.Pubkey, w.ReadOnly)
			}
		}
		ledgertest.Equal(t, len(writes.accounts), len(keys), "%s: writes", name)
		other := transactionJSON{
			Transaction: transactionBody{Signatures: []string{signature}, AccountKeys: []messageKey{{pubkey: keys[1].String()}}},
			Meta:        &metaJSON{PostBalances: part[numbers]{value: numbers{2}}},
		}
		for n, next := range []*transactionJSON{&other, &j} {
			_, err = next.read(writes)
			ledgertest.Must(t, err)
			if writes.accounts[1].ReadOnly {
				t.Errorf("%s: of %d transactions the second may write an account: the block only reads it", name, n+2)
			}
		}
	}
}
