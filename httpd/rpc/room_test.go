package rpc

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/httpd"
	"ledgerd/httpd/budget"
)

// large is a program whose accounts have a megabyte of data each.
var large = testKey(50)

func (l *fakeLedger) addLarge(accounts int) {
	data := ledger.NewData(make([]byte, 1<<20))
	for n := range accounts {
		l.put(ledger.Account{Pubkey: testKey(byte(51 + n)), Owner: large, Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: data})
	}
}

// TestABatchTakesTheMemoryOfItsAnswers: a hundred calls of one kind are answered, whatever each might have taken at most.
func TestABatchTakesTheMemoryOfItsAnswers(t *testing.T) {
	l := newFakeLedger()
	l.addLarge(1)
	r := serve(t, l, nil)
	for _, call := range []string{
		`"getSignaturesForAddress","params":["<4>"]`,
		`"getTokenAccountsByOwner","params":["<4>",{"programId":"<token>"},{"encoding":"jsonParsed"}]`,
		`"getBlock","params":[14,{"transactionDetails":"signatures"}]`,
		`"getBlocks","params":[10,500000]`,
		`"getAccountInfo","params":["<51>",{"encoding":"base64","dataSlice":{"offset":7,"length":32}}]`,
		`"getMultipleAccounts","params":[["<51>","<51>"],{"encoding":"base64+zstd","dataSlice":{"offset":1048575,"length":32}}]`,
		`"getProgramAccounts","params":["<50>",{"encoding":"base64","dataSlice":{"offset":0,"length":3}}]`,
		`"getProgramAccounts","params":["<13>",{"encoding":"base64"}]`,
		`"getAccountInfo","params":["<51>"]`, // an error, which takes nothing
	} {
		one := names().Replace(`{"jsonrpc":"2.0","id":1,"method":` + call + `}`)
		want := r.post(one)
		if refused := strings.Contains(want, "-32600"); !refused && strings.Contains(want, `"error"`) {
			t.Fatalf("%s: %s", call, want)
		}
		var got []json.RawMessage
		must(t, json.Unmarshal([]byte(r.post("["+strings.Repeat(one+",", maxBatch-1)+one+"]")), &got))
		for i := range got {
			if string(got[i]) != want {
				t.Errorf("%s: answer %d of %d is %.300s, want %.300s", call, i, len(got), got[i], want)
				break
			}
		}
	}
}

// TestProgramAccountsAreWholeOrRefused: memory is asked for before an account is encoded, however many a page has, and what a refused call took
// is there for the next one.
func TestProgramAccountsAreWholeOrRefused(t *testing.T) {
	l := newFakeLedger()
	l.page = programPage
	r := serve(t, l, func(_ *Config, c *httpd.Config) { c.Memory = budget.New(64 << 20) }) // of which a client has 8 MiB
	params := names().Replace(`["<50>",{"encoding":"base64"}]`)
	for _, accounts := range []int{1, 4, 40, 4} {
		clear(l.accounts)
		l.addLarge(accounts)
		answer := r.call("getProgramAccounts", params)
		if whole := strings.Count(answer, `"pubkey"`) == accounts; whole != (accounts <= 4) || !whole && !strings.Contains(answer, `"error":{"code":-32012,`) {
			t.Errorf("%d accounts: %d bytes: %.300s", accounts, len(answer), answer)
		}
	}
}

// TestAScanEndsInTime: all pages of a call share one deadline.
func TestAScanEndsInTime(t *testing.T) {
	for _, accounts := range []int{3, 20} {
		bubble.Test(t, func(t *testing.T) {
			t.Cleanup(func() { time.Sleep(time.Minute) }) // until the cleaner of the server's workers has slept out
			l := newFakeLedger()
			l.addLarge(accounts)
			l.page, l.takes = 1, scanTime/10
			answer := serve(t, l, nil).call("getProgramAccounts", names().Replace(`["<50>",{"encoding":"base64","dataSlice":{"offset":0,"length":0}}]`))
			want := fmt.Sprintf(`"pubkey":"%s"`, testKey(byte(50+accounts)))
			if accounts > 10 {
				want = `"error":{"code":-32012,`
			}
			if !strings.Contains(answer, want) {
				t.Errorf("%d accounts: %.300s", accounts, answer)
			}
		})
	}
}
