package httpd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/budget"
	"ledgerd/httpd/ratelimit"
)

// add makes up n accounts of a program.
func (l *fakeLedger) add(program ledger.Pubkey, n int) {
	random := rand.New(rand.NewPCG(1, uint64(program[0])))
	all := make([]ledger.Account, n)
	for i := range all {
		all[i] = ledger.Account{Owner: program, Lamports: ledger.Lamports(random.Uint64()>>random.IntN(64) | 1), RentEpoch: 1<<64 - 1, Known: ledger.FieldsShown}
		for k := range all[i].Pubkey {
			all[i].Pubkey[k] = byte(random.Uint32())
		}
	}
	l.pages[program] = all
}

// list returns the list of the accounts of a program as it is answered to who asks alone.
func (h *harness) list(program ledger.Pubkey) string {
	h.Helper()
	body := h.ask("", "GET", "/api/accounts/program/"+program.String()).body
	for h.server.answers.Used() > 0 { // what it takes comes back a moment after the answer
		time.Sleep(time.Millisecond)
	}
	return body
}

// G7: TestLongListsAreWhole asks for lists of all lengths on many connections at once, some behind
// one another without waiting, with and without a body, plain and compressed. Buffers are used
// again all the time, and no answer may have a byte of another's.
func TestLongListsAreWhole(t *testing.T) {
	const clients, requests = 4, 5
	l := newFakeLedger()
	h := servePipes(t, func(c *Config) { c.Ledger = l })
	var programs []ledger.Pubkey
	var want []string
	for i, n := range []int{0, 1, 10, 400, 1000, 5200} {
		programs = append(programs, testKey(byte(60+i)))
		l.add(programs[i], n)
		want = append(want, h.list(programs[i]))
	}
	var asking sync.WaitGroup
	for client := range clients {
		c := h.dial("")
		asking.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(client)))
			from := bufio.NewReader(c)
			for range requests {
				var asked []int
				var methods []string
				var text string
				for range 1 + random.IntN(3) {
					i, method := random.IntN(len(programs)), [...]string{"GET", "GET", "HEAD"}[random.IntN(3)]
					asked, methods = append(asked, i), append(methods, method)
					text += fmt.Sprintf("%s /api/accounts/program/%v HTTP/1.1\r\nHost: ledger\r\nAccept-Encoding: %s\r\n\r\n", method, programs[i],
						[...]string{"identity", "identity", "gzip", "zstd"}[random.IntN(4)])
				}
				go func() { _, _ = io.WriteString(c, text) }() // which waits until it is read
				for n, i := range asked {
					r, err := tryReply(from, methods[n])
					if err != nil {
						t.Errorf("client %d: %v", client, err)
						return
					}
					length := r.header.Get("Content-Length")
					plain := r.header.Get("Content-Encoding") == ""
					if r.status != 200 || methods[n] == "GET" && decompress(t, r) != want[i] || plain && length != strconv.Itoa(len(want[i])) {
						t.Errorf("client %d, list of %d accounts: %d, %s bytes that begin %.300q; want %d that begin %.300q", client, len(l.pages[programs[i]]),
							r.status, length, r.body, len(want[i]), want[i])
					}
				}
			}
		})
	}
	asking.Wait()
	h.expectNoAnswerBytes()
}

// TestLongBodiesAreUsedAgain holds a list to what the second one costs.
func TestLongBodiesAreUsedAgain(t *testing.T) {
	if bubbletest.RaceEnabled {
		t.Skip("the race detector allocates, and its pools forget")
	}
	program := testKey(60)
	l := newFakeLedger()
	l.add(program, 1000)
	for _, accept := range []string{"identity", "gzip", "zstd"} {
		ctx, ask := handled(t, l, "/api/accounts/program/"+program.String(), accept)
		ask()
		const times = 50
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			ask()
		}
		runtime.ReadMemStats(&after)
		if status, bytes := ctx.Response.StatusCode(), (after.TotalAlloc-before.TotalAlloc)/times; status != 200 || bytes > 32<<10 {
			t.Errorf("%s: status %d, %d bytes a list, want 200 and a small part of its text", accept, status, bytes)
		}
	}
}

// expectNoAnswerBytes ends the server and holds the budget for answers to it.
func (h *harness) expectNoAnswerBytes() {
	h.Helper()
	for _, c := range h.conns {
		_ = c.Close()
	}
	must(h, h.server.Shutdown(context.Background()))
	ledgertest.Equal(h, h.server.answers.Used(), 0, "bytes that are reserved for answers when all is over")
}

// TestShortAnswersTakeNoMemory, whatever buffer they begin in.
func TestShortAnswersTakeNoMemory(t *testing.T) {
	s := New(Config{Ledger: newFakeLedger(), Memory: budget.New(1)})
	for begun := 0; begun <= maxKeptBytes; begun += 256 {
		x := &Exchange{server: s}
		if _, err := x.Extend(make([]byte, begun), maxKeptBytes-begun); err != nil {
			t.Errorf("an answer of %d bytes cannot grow to %d: %v", begun, maxKeptBytes, err)
		}
		if _, err := x.Extend(make([]byte, begun), maxKeptBytes+1-begun); err == nil {
			t.Errorf("an answer of %d bytes grows beyond %d", begun, maxKeptBytes)
		}
	}
}

// G7, F35: TestAnswersThatNobodyReadsAreBounded has clients ask for lists that they do not read, until
// their memory is used up: single records are still answered, and the lists are whole in the end.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	programs := []ledger.Pubkey{testKey(60), testKey(61)} // by turns
	l := newFakeLedger()
	list := "/api/accounts/program/" + programs[0].String()
	h := servePipes(t, func(c *Config) {
		c.Ledger, c.Memory = l, budget.New(1_600_000)
		c.Identity = ratelimit.NewIdentity([]netip.Prefix{ratelimit.UnixPeers}, nil)
	})
	var want []string
	for _, program := range programs {
		l.add(program, 1000)
		want = append(want, h.list(program))
	}
	var conns []net.Conn
	var waiting []*bufio.Reader
	for {
		c := h.dial("")
		h.request(c, "GET", "/api/accounts/program/"+programs[len(waiting)%2].String(), fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", len(waiting)))
		from := bufio.NewReaderSize(c, 16)
		status, err := from.Peek(len("HTTP/1.1 200"))
		if err != nil || len(waiting) > 10 {
			t.Fatalf("%q behind %d lists: %v", status, len(waiting), err)
		}
		if string(status) != "HTTP/1.1 200" {
			break
		}
		conns, waiting = append(conns, c), append(waiting, from)
	}
	l.Put(ledger.Account{Pubkey: testKey(70), Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(make([]byte, 500<<10))})
	for _, target := range []string{"/api/account/" + testKey(70).String() + "?include=data", list, list + "?include=token", "/api/account/" + wallet.String() + "/tokens", "/api/transactions/recent?limit=1000", "/api/account/" + wallet.String() + "/transactions?limit=1000",
		"/api/blocks/28?include=transactions", "/api/blocks/28?include=signatures"} {
		if r := h.get(target); r.status != 503 || r.body != errorBody(503, "overloaded") || r.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s, Retry-After %q, want 503", target, r.status, r.body, r.header.Get("Retry-After"))
		}
	}
	for _, target := range []string{"/api/account/" + whole.String(), "/api/account/" + whole.String() + "/balance", "/api/blocks/28", "/api/blocks/latest",
		"/api/transaction/" + testSignature(1).String(), "/api/accounts?keys=" + whole.String(), "/api/account/" + wallet.String() + "/tokens?limit=1"} {
		ledgertest.Equal(t, h.get(target).status, 200, "%s beside the lists", target)
	}
	gauge := func(bytes int64) {
		var text strings.Builder
		h.server.config.WriteMetrics(&text) // not asked for: that would be a long answer itself
		if want := fmt.Sprintf("\nledgerd_http_answer_bytes %d\n", bytes); !strings.Contains(text.String(), want) || !strings.Contains(text.String(), "\nledgerd_http_overloaded_total 9\n") {
			t.Errorf("the metrics lack %q or 9 refusals:\n%s", want, text.String())
		}
	}
	used := h.server.answers.Used()
	if used < int64(len(waiting)*len(want[0])) || used > 1_000_000 || len(waiting) < 2 {
		t.Errorf("%d bytes are reserved for %d answers", used, len(waiting))
	}
	gauge(used)
	for i, from := range waiting {
		ledgertest.Equal(t, readReply(t, from, "GET").body, want[i%2], "list %d, which came late", i)
		h.request(conns[i], "GET", "/api/health") // whose answer comes when the list is done with
		readReply(t, from, "GET")
	}
	gauge(0)
	ledgertest.Equal(t, h.get(list).status, 200, "a list afterwards")
	h.expectNoAnswerBytes()
}

// G7: TestLongListsOfDataAreAnswered asks for as many accounts as a list may have, with their data: what is taken for the records is room for that, too.
func TestLongListsOfDataAreAnswered(t *testing.T) {
	program := testKey(60)
	for _, row := range []struct {
		accounts, bytes int
		include         string
		budget          int64 // of which a client has an eighth
	}{
		{10_000, 1_000, "token,data", 0},
		{1, 10 << 20, "token,data", 0},
		{10_000, 1_000, "token,data", 8 * 20 << 20},
		{1, 10 << 20, "data", 8 * 15 << 20},
	} {
		l := newFakeLedger()
		h := serve(t, func(c *Config) { c.Ledger, c.Memory = l, budget.New(row.budget) })
		l.add(program, row.accounts)
		for i := range l.pages[program] {
			a := &l.pages[program][i]
			a.Known |= ledger.FieldData
			a.Data = ledger.NewData(make([]byte, row.bytes))
		}
		r := h.ask("", "GET", "/api/accounts/program/"+program.String()+"?limit=10000&include="+row.include) // the document's patterns take long for megabytes
		if least := min(row.accounts*row.bytes, 3<<20); r.status != 200 || len(r.body) < least {
			t.Errorf("%d accounts of %d bytes, %s, a budget of %d: %d, %d bytes that begin %.200q, want 200 and %d", row.accounts, row.bytes, row.include,
				row.budget, r.status, len(r.body), r.body, least)
		}
	}
}

// G7: who names more data than one answer may ever have is not told to try again.
func TestMoreDataThanAnAnswerMayHaveIsABadRequest(t *testing.T) {
	l := newFakeLedger()
	h := serve(t, func(c *Config) { c.Ledger, c.Memory = l, budget.New(1<<20) }) // of which answers may begin with five eighths
	var keys []string
	for _, n := range []byte{70, 71} {
		a := ledger.Account{Pubkey: testKey(n), Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(make([]byte, 300<<10))}
		l.Put(a)
		keys = append(keys, a.Pubkey.String())
	}
	both := "/api/accounts?include=data&keys=" + strings.Join(keys, ",")
	const details = "the data of these accounts is more than one answer may have here: ask for fewer of them, or for a part of the data with data_slice"
	if r := h.get(both); r.body != errorBody(400, details) || r.header.Get("Retry-After") != "" {
		t.Errorf("both accounts: %d, %.200q, Retry-After %q", r.status, r.body, r.header.Get("Retry-After"))
	}
	for _, target := range []string{both + "&data_slice=0,1000", "/api/account/" + keys[0] + "?include=data"} {
		ledgertest.Equal(t, h.get(target).status, 200, "%s", target)
	}
	h.expectNoAnswerBytes()
}

// G7, F47: a client that reads nothing may hold an eighth of the budget, on however many connections, and that with an answer that waits for
// its slot holds nothing. So others get their lists.
func TestNoClientHoldsTheAnswersOfAll(t *testing.T) {
	const limit = 16 << 20
	program := testKey(60)
	l := newFakeLedger()
	l.add(program, 1000)
	list := "/api/accounts/program/" + program.String()
	h := servePipes(t, func(c *Config) {
		c.Ledger, c.Memory = l, budget.New(limit)
		c.Identity = ratelimit.NewIdentity([]netip.Prefix{ratelimit.UnixPeers}, []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32")})
	})
	status := func(client, target string) string {
		c := h.dial("")
		h.request(c, "GET", target, "X-Forwarded-For: "+client)
		line, err := bufio.NewReaderSize(c, 16).Peek(len("HTTP/1.1 200"))
		must(t, err)
		return string(line[len("HTTP/1.1 "):])
	}
	held := 0
	for ; status("192.0.2.1", list) == "200"; held++ {
		if held > 100 {
			t.Fatal("one client holds as many answers as it likes")
		}
	}
	if used := h.server.answers.Used(); held < 4 || used > limit/8 {
		t.Errorf("one client holds %d answers, %d bytes, want several and at most %d bytes", held, used, limit/8)
	}
	for range 2 * held {
		ledgertest.Equal(t, status("192.0.2.9", list), "200", "a list for an exempt client")
	}
	ledgertest.Equal(t, status("192.0.2.2", list+"?limit=10000"), "200", "a list for another client")
	ledgertest.Equal(t, status("192.0.2.1", "/api/account/"+whole.String()), "200", "an account for the client that holds its share")
	ledgertest.Equal(t, l.query.Client, netip.MustParseAddr("192.0.2.1"), "whom the ledger was told of, which has it share the disk")
	h.expectNoAnswerBytes()
}

// A long answer that waits for its slot holds nothing meanwhile.
func TestWaitingAnswersHoldNothing(t *testing.T) {
	l := newFakeLedger()
	h := serve(t, func(c *Config) { c.Ledger = l })
	for _, target := range strings.Fields(`/api/accounts/program/{owner}? /api/account/{wallet}/tokens? /api/transactions/recent?
		/api/account/{whole}/transactions? /api/blocks/28?include=transactions&`) {
		target = expand(t, target)
		var held []int64
		l.hold = func() { held = append(held, h.server.answers.Used()) }
		r := h.get(target + "min_slot=30&wait_ms=2000")
		if r.status != 200 || len(held) < 2 || held[0] != 0 || slices.Contains(held[1:], 0) {
			t.Errorf("%s: %d; %d bytes are reserved while it waits and while it is answered, want none and some", target, r.status, held)
		}
		held = nil
		if r := h.get(target + "min_slot=31&wait_ms=2000"); r.status != 503 || !slices.Equal(held, []int64{0}) {
			t.Errorf("%s behind the newest slot: %d, %d bytes", target, r.status, held)
		}
	}
}

// G6, F45: TestAnswerBytesComeBack covers the ways an answer may end, beside those of TestLongListsAreWhole. A panic in a handler is a
// 500, is counted, and the next request is answered.
func TestAnswerBytesComeBack(t *testing.T) {
	program := testKey(60)
	l := newFakeLedger()
	l.add(program, 1000)
	list := "/api/accounts/program/" + program.String()
	h := servePipes(t, func(c *Config) { c.Ledger = l })
	for name, tt := range map[string]struct {
		target, line string
		err          error
		panics       bool
		status       int
	}{
		"not modified":    {"/api/blocks/28?include=transactions", "If-None-Match: *", nil, false, 304},
		"refused by it":   {list, "X: y", ledger.ErrUnavailable, false, 503},
		"unknown program": {list, "X: y", absent(ledger.OwnerNotFound), false, 404},
		"panic":           {list, "X: y", nil, true, 500},
	} {
		l.err, l.panics = tt.err, tt.panics
		c := h.dial("")
		from := bufio.NewReader(c)
		h.request(c, "GET", tt.target, tt.line)
		if r := readReply(t, from, "GET"); r.status != tt.status || tt.panics && r.body != errorBody(500, "an unexpected error occurred") {
			t.Errorf("%s: %d %s, want %d", name, r.status, r.body, tt.status)
		}
		h.request(c, "GET", "/api/health")
		readReply(t, from, "GET")
		ledgertest.Equal(t, h.server.answers.Used(), 0, "%s: bytes that are still reserved", name)
	}
	ledgertest.Equal(t, h.server.meters.panics.Load(), 1, "panics counted")
	l.err, l.panics = nil, false
	for _, read := range []int{0, 1, 2000, 100_000} { // of an answer whose client then goes away
		c := h.dial("")
		h.request(c, "GET", list)
		_, err := io.CopyN(io.Discard, c, int64(read))
		must(t, err)
	}
	h.expectNoAnswerBytes()
}

// G6, F45: a panic behind the handler, where the reply is finished and noted, is a 500 too.
func TestAPanicBehindTheHandlerIsAnswered(t *testing.T) {
	panics := false
	h := serve(t, func(c *Config) {
		calls := 0
		c.Now = func() time.Time {
			if calls++; panics && calls%2 == 0 { // of each request the first call is where it begins
				panic("a clock that goes wrong")
			}
			return now
		}
	})
	ledgertest.Equal(t, h.get("/api/health").status, 200, "the status before")
	panics = true
	if r := h.get("/api/account/" + whole.String()); r.status != 500 || r.body != errorBody(500, "an unexpected error occurred") || r.header.Get("ETag") != "" {
		t.Errorf("%d %s with %v", r.status, r.body, r.header)
	}
	ledgertest.Equal(t, h.server.meters.panics.Load(), 1, "panics counted")
}
