package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd"
	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/budget"
)

// large is a program whose accounts have much data each.
var large = testKey(50)

func (l *fakeLedger) addLarge(accounts, bytes int) {
	data := ledger.NewData(make([]byte, bytes))
	for n := range accounts {
		l.Put(ledger.Account{Pubkey: testKey(byte(51 + n)), Owner: large, Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: data})
	}
}

// TestProgramAccountsAreWholeRefusedOrBroken: memory is asked for before an account is encoded, however many a page has. Where it does not suffice,
// the rest is read while it is sent, if the response can have chunks, and an error ends the connection. What a call took is there for the next one.
func TestProgramAccountsAreWholeRefusedOrBroken(t *testing.T) {
	path := t.TempDir() + "/access.log"
	access, err := accesslog.Open(path, slog.New(slog.DiscardHandler))
	must(t, err)
	var want []string  // of the lines of the log
	t.Cleanup(func() { // when the server has ended
		ended, end := context.WithCancel(context.Background())
		end()
		access.Run(ended)
		lines := strings.Split(strings.TrimSpace(string(readFile(t, path))), "\n")
		for i, line := range lines {
			if len(lines) != len(want) || !strings.Contains(line, want[i]) {
				t.Errorf("%d lines in the log, of which %d is %s, want %d and %s", len(lines), i+1, line, len(want), want[min(i, len(want)-1)])
			}
		}
	})
	l := newFakeLedger()
	numbers := metrics.NewSet()
	r := serve(t, &settings{fakeLedger: l, public: httpd.Config{Memory: budget.New(8 << 20), AccessLog: access, Metrics: numbers}}) // a client has 1 MiB
	call := names().Replace(`{"jsonrpc":"2.0","id":"x","method":"getProgramAccounts","params":["<50>",{"encoding":"base64","withContext":true}]}`)
	busy := func() error { return ledger.ErrUnavailable }
	const whole, refused, broken = `]},"id":"x"}`, `"error":{"code":-32012,`, ""
	for i, tt := range []struct {
		protocol, body string
		accounts       int
		fails          int // the page that does
		how            func() error
		want           string
	}{
		{"1.1", call, 1, 0, nil, whole},
		{"1.1", call, 4, 0, nil, whole},
		{"1.1", call, 40, 0, nil, whole},
		{"1.1", call, 40, 9, busy, broken},
		{"1.1", call, 40, 9, func() error { panic("a page") }, broken},
		{"1.1", call, 40, 1, busy, `"error":{"code":-32603,`},
		{"1.1", "[" + call + "]", 40, 0, nil, refused},
		{"1.0", call, 40, 0, nil, refused},
		{"1.1", call, 40, 0, nil, whole},
		{"1.1", call, 4, 0, nil, whole},
	} {
		clear(l.Held)
		l.addLarge(tt.accounts, 100<<10)
		pages := 0
		l.Page, l.read = 4, func() error {
			if pages++; pages == tt.fails {
				return tt.how()
			}
			return nil
		}
		c, err := r.connect()
		must(t, err)
		_, err = fmt.Fprintf(c, "POST / HTTP/%s\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", tt.protocol, len(tt.body), tt.body)
		must(t, err)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		must(t, err)
		body, err := io.ReadAll(response.Body)
		_, _ = io.Copy(io.Discard, c) // until the server has ended the connection, and so the exchange
		c.Close()
		shown := strings.Count(string(body), `"pubkey"`)
		switch {
		case tt.want == broken:
			if err == nil || shown == 0 || shown >= tt.accounts {
				t.Errorf("%d: %v behind %d accounts", i, err, shown)
			}
		case err != nil || !json.Valid(body) || !strings.Contains(string(body), tt.want) || tt.want == whole && shown != tt.accounts:
			t.Errorf("%d: %v, %d accounts in %d bytes: %.300s", i, err, shown, len(body), body)
		}
		want = append(want, fmt.Sprintf(`"status":200,"bytes":%d,`, len(body)))
	}
	ledgertest.Equal(t, refusals(numbers), "2", "refusals counted") // not those that go on in pieces
}

// refusals returns the count of requests that were refused for want of memory.
func refusals(numbers *metrics.Set) string {
	var text strings.Builder
	numbers.WritePrometheus(&text)
	const name = "\nledgerd_http_overloaded_total "
	_, after, _ := strings.Cut(text.String(), name)
	count, _, _ := strings.Cut(after, "\n")
	return count
}

// TestAClientThatTakesItsTimeHoldsLittle: behind the first piece an answer holds small pages, of which the budget is told, and looks each mint up once.
// Each page has its own deadline, however long the client takes, and what came before the first byte. So has a list of the token accounts of a wallet.
func TestAClientThatTakesItsTimeHoldsLittle(t *testing.T) {
	bubbletest.Test(t, clientTakesItsTime)
}

func clientTakesItsTime(t *testing.T) {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // until the cleaners of idle connections have slept out
	const program, tokens = `getProgramAccounts","params":["<token>"`, `getTokenAccountsByOwner","params":["<4>",{"programId":"<token>"}`
	for _, tt := range []struct {
		list, encoding  string
		memory          int64
		accounts, bytes int
		pages           int // at least
		least, most     int64
	}{
		{program, "jsonParsed", 256 << 10, 1000, tokenAccountBytes, 10, slowPage * (heldBytes + tokenAccountBytes), 200 << 10},
		{program, "base64", 8 << 20, 40, 100 << 10, 4, slowPageBytes * 9 / 10, slowPageBytes + 1<<20},
		{tokens, "base64", 16 << 20, 40, 100 << 10, 4, slowPageBytes * 9 / 10, slowPageBytes + 2<<20},
	} {
		l := newFakeLedger()
		l.Page = programPage
		clear(l.Held)
		for n := range tt.accounts {
			key := ledger.Pubkey{1, byte(n >> 8), byte(n)}
			l.Put(ledger.Account{Pubkey: key, Owner: ledger.TokenProgram, Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(make([]byte, tt.bytes)),
				Token: &ledger.TokenAccount{Mint: key, Owner: wallet, Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})}})
			l.Facts[key] = &ledger.Mint{Decimals: 6}
		}
		memory := budget.New(tt.memory)
		var held []int64 // whenever a page is read
		l.slow = 900 * time.Millisecond
		l.read = func() error {
			if held = append(held, memory.Answers.Used()); len(held) == 1 { // most of the time that the call has before its first byte
				time.Sleep(httpd.ListTime - 2*time.Second)
			}
			return nil
		}
		r := serve(t, &settings{fakeLedger: l, public: httpd.Config{Memory: memory}})
		answer := r.postSlowly(httpd.ListTime+time.Second, names().Replace(`{"jsonrpc":"2.0","id":1,"method":"`+tt.list+`,{"encoding":"`+tt.encoding+`"}]}`))
		if shown := strings.Count(answer, `"account":{`); !json.Valid([]byte(answer)) || shown != tt.accounts {
			t.Errorf("%d of %d accounts are shown: %.300s", shown, tt.accounts, answer)
		}
		if len(held) < tt.pages {
			t.Errorf("%d pages are read, want %d at least", len(held), tt.pages)
		}
		for n, bytes := range held[1:] {
			if last := n == len(held)-2; bytes > tt.most || bytes < tt.least && !last {
				t.Errorf("%d bytes are held when page %d of %d is read, want from %d to %d", bytes, n+2, len(held), tt.least, tt.most)
			}
		}
		if looked := int(l.Looked.Load()); looked > 2*tt.accounts {
			t.Errorf("%d mints of %d accounts are looked up", looked, tt.accounts)
		}
	}
}

// postSlowly is post by a client that waits before each part that it takes of the answer.
func (r *rig) postSlowly(wait time.Duration, body string) string {
	r.Helper()
	c, err := r.connect()
	must(r, err)
	defer c.Close()
	_, err = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	must(r, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(r, err)
	var answer strings.Builder
	for err == nil {
		time.Sleep(wait)
		_, err = io.CopyN(&answer, response.Body, 1<<20)
	}
	if err != io.EOF {
		r.Errorf("the answer ends after %d bytes: %v", answer.Len(), err)
	}
	return answer.String()
}
