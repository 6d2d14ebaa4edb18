package rpc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/stream"
)

// A subscription that is resumed is told what another was told after that number, in the same bytes, also what is longer than a write, and goes on with
// what is told then.
func TestResumeFrom(t *testing.T) {
	f, r := serveHub(t)
	stays, comes := r.dial(), r.dial()
	const config = `{"commitment":"processed","encoding":"base64"%s}`
	subjects := []struct{ method, params string }{
		{"accountSubscribe", `["<14>",` + config + `]`},
		{"programSubscribe", `["<13>",` + config + `]`},
		{"programSubscribe", `["<13>",` + strings.Replace(config, "%s", `,"filters":[{"dataSize":3}]%s`, 1) + `]`},
	}
	var told [][]string // by seq, what each subject was told
	for i, s := range subjects {
		ledgertest.Equal(t, stays.ask(s.method, fmt.Sprintf(s.params, "")), subscribed(i+1), s.method)
	}
	stays.ask("slotSubscribe", `[]`)
	write := func(kind ledger.RecordKind, slot, from ledger.Slot, a ledger.Account) {
		f.publish(kind, slot, from, a)
		if kind == ledger.RollbackRecord {
			f.publish(ledger.BlockRecord, slot+9, 0)
		}
		all := make([]string, len(subjects))
		for text := stays.next(); !strings.Contains(text, "slotNotification"); text = stays.next() {
			for i := range all {
				if strings.HasSuffix(text, fmt.Sprintf(`"subscription":%d}}`, i+1)) {
					all[i] = text
				}
			}
		}
		told = append(told, all)
	}
	account := func(n byte, data []byte) ledger.Account {
		return ledger.Account{Pubkey: testKey(n), Lamports: 5, Owner: testKey(13), Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(data)}
	}
	write(ledger.BlockRecord, 31, 0, account(14, []byte("abc")))
	write(ledger.BlockRecord, 32, 0, account(14, bytes.Repeat([]byte("x"), 200<<10)))
	write(ledger.RollbackRecord, 31, 32, account(14, []byte("abc")))
	write(ledger.BlockRecord, 41, 0, account(12, []byte("abcd")))
	write(ledger.BlockRecord, 42, 0, ledger.Account{Pubkey: testKey(14)}) // it is closed
	for i, s := range subjects {
		for seen := range len(told) + 1 {
			ledgertest.Equal(t, comes.ask(s.method, fmt.Sprintf(s.params, fmt.Sprint(`,"resumeFrom":`, seen))), subscribed(i+1), "resuming from %d", seen)
			for seq := seen; seq < len(told); seq++ {
				if want := told[seq][i]; want != "" {
					ledgertest.Equal(t, comes.next(), want, "what %s is told that resumes from %d", s.params, seen)
				}
			}
		}
	}
	write(ledger.BlockRecord, 43, 0, account(14, []byte("abc")))
	for i := range subjects {
		ledgertest.Equal(t, comes.next(), told[5][i], "what is told once after all was")
	}
}

// A subscription that cannot be resumed is an error that says from where it can, at its level, and is none then.
func TestWhatCannotBeResumedIsRefused(t *testing.T) {
	f, r := serveHubWith(t, stream.Config{RecentBytes: 1}) // there is no log, and of what was published the last alone is kept
	for slot := range ledger.Slot(3) {
		f.publish(ledger.BlockRecord, 31+slot, 0, f.ledger.accounts[testKey(14)])
		if slot == 1 {
			f.finalize()
		}
	}
	refused := func(oldest, newest int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","error":{"code":-32050,"message":"resync required","data":{"oldestSeq":%d,"newestSeq":%d}},"id":1}`, oldest, newest)
	}
	const wrong = `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params: resumeFrom must be an integer from 0 to 2^64-1"},"id":1}`
	c := r.dial()
	for _, one := range []struct{ level, from, want string }{
		{"processed", "4", refused(3, 3)},
		{"processed", "1", refused(3, 3)},
		{"finalized", "3", refused(2, 2)},
		{"finalized", "18446744073709551615", refused(2, 2)},
		{"finalized", "18446744073709551616", wrong},
		{"finalized", "-1", wrong},
		{"finalized", "1.5", wrong},
		{"finalized", `"1"`, wrong},
		{"finalized", "false", wrong},
		{"finalized", "2", subscribed(1)},
		{"processed", "3", subscribed(2)},
		{"processed", "null", subscribed(2)},
		{"processed", "2", refused(3, 3)},
	} {
		params := fmt.Sprintf(`["<14>",{"encoding":"base64","commitment":%q,"resumeFrom":%s}]`, one.level, one.from)
		ledgertest.Equal(t, c.ask("accountSubscribe", params), one.want, params)
		params = strings.Replace(params, "<14>", "<13>", 1)
		if one.want != subscribed(1) && one.want != subscribed(2) {
			ledgertest.Equal(t, c.ask("programSubscribe", params), one.want, params)
		}
	}
	ledgertest.Equal(t, c.ask("accountUnsubscribe", "[2]"), `{"jsonrpc":"2.0","result":true,"id":1}`, "what was there while another resume was refused")
}
