package httpd

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

// listText returns a list as the interface describes it, written the plain way.
func listText(program ledger.Pubkey, accounts []ledger.Account) string {
	var text strings.Builder
	fmt.Fprintf(&text, `{"program_id":%q,"accounts":[`, program)
	for i, a := range accounts {
		if i > 0 {
			text.WriteByte(',')
		}
		if a.Known&ledger.FieldRentEpoch == 0 {
			a.RentEpoch = 0
		}
		fmt.Fprintf(&text, `{"pubkey":%q,"lamports":%d,"owner":%q,"executable":%t,"rent_epoch":%d}`, a.Pubkey, a.Lamports, a.Owner,
			a.Executable && a.Known&ledger.FieldExecutable != 0, a.RentEpoch)
	}
	text.WriteString(`],"next_cursor":null}`)
	return text.String()
}

// TestLongListsAreWhole asks for lists of all lengths on many connections at once, some behind
// one another without waiting, with and without a body, plain and compressed. Buffers are used
// again all the time, and no answer may have a byte of another's.
func TestLongListsAreWhole(t *testing.T) {
	const clients, requests = 4, 5
	l := &pageLedger{newFakeLedger(), make(map[ledger.Pubkey][]ledger.Account)}
	h := serve(t, func(c *Config) { c.Ledger, c.PerMinute, c.PerHour = l, maxCount, maxCount })
	var programs []ledger.Pubkey
	var want []string
	for i, n := range []int{0, 1, 10, 400, 1000, 5200} {
		programs = append(programs, testKey(byte(60+i)))
		l.add(rand.New(rand.NewPCG(1, uint64(i))), programs[i], n)
		want = append(want, listText(programs[i], l.pages[programs[i]]))
	}
	var asking sync.WaitGroup
	for client := range clients {
		c := h.dial("")
		asking.Go(func() {
			defer c.Close()
			random := rand.New(rand.NewPCG(2, uint64(client)))
			in := bufio.NewReader(c)
			for range requests {
				var asked []int
				var text string
				for range 1 + random.IntN(3) {
					i := random.IntN(len(programs))
					method := [...]string{"GET", "GET", "HEAD"}[random.IntN(3)]
					accept := [...]string{"identity", "identity", "gzip"}[random.IntN(3)]
					asked = append(asked, i)
					text += fmt.Sprintf("%s /api/accounts/program/%v HTTP/1.1\r\nHost: ledger\r\nAccept-Encoding: %s\r\n\r\n", method, programs[i], accept)
				}
				go io.WriteString(c, text) // which waits until it is read
				for n, i := range asked {
					method, _, _ := strings.Cut(strings.Split(text, "\r\n\r\n")[n], " ")
					if err := checkList(in, method, want[i]); err != nil {
						t.Errorf("client %d, list of %d accounts: %v", client, len(l.pages[programs[i]]), err)
						return
					}
				}
			}
		})
	}
	asking.Wait()
}

// checkList reads an answer and compares it.
func checkList(in *bufio.Reader, method, want string) error {
	r, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return err
	}
	body := io.Reader(r.Body)
	switch {
	case r.Header.Get("Content-Encoding") == "gzip" && method == "GET":
		if body, err = gzip.NewReader(body); err != nil {
			return err
		}
	case method == "HEAD":
		want = ""
	case r.Header.Get("Content-Length") != strconv.Itoa(len(want)):
		return fmt.Errorf("a length of %s is told, want %d", r.Header.Get("Content-Length"), len(want))
	}
	got, err := io.ReadAll(body)
	if err != nil || r.StatusCode != http.StatusOK || string(got) != want {
		return fmt.Errorf("%s: status %d, %d bytes that begin %.300q, %v; want %d that begin %.300q", method, r.StatusCode, len(got), got, err, len(want), want)
	}
	return r.Body.Close()
}

// TestLongBodiesAreUsedAgain holds a list to what the second one costs.
func TestLongBodiesAreUsedAgain(t *testing.T) {
	if bubble.RaceEnabled {
		t.Skip("the race detector allocates, and its pools forget")
	}
	program := testKey(60)
	l := &pageLedger{newFakeLedger(), make(map[ledger.Pubkey][]ledger.Account)}
	l.add(rand.New(rand.NewPCG(1, 1)), program, 1000)
	s, ctx := handled(t, "/api/accounts/program/"+program.String())
	s.ledger = l
	for _, accept := range []string{"identity", "gzip", "zstd"} {
		ctx.Request.Header.Set("Accept-Encoding", accept)
		ask := func() {
			ctx.Response.Reset()
			s.handle(ctx)
		}
		ask()
		const times = 50
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			ask()
		}
		runtime.ReadMemStats(&after)
		if status, bytes := ctx.Response.StatusCode(), (after.TotalAlloc-before.TotalAlloc)/times; status != 200 || bytes > 100<<10 {
			t.Errorf("%s: status %d, %d bytes a list, want 200 and less than half of its text", accept, status, bytes)
		}
	}
}
