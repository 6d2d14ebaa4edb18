package httpd

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// second is what is sent behind a request: it must be executed never, or exactly once.
const second = "GET /api/blocks/latest HTTP/1.1\r\nHost: ledger\r\n\r\n"

// G9, G10, G11, G12, F36, F38: TestMalformedRequestsEndTheConnection sends each form with a second request behind it
// in one write, and others in front: those are answered, then it is with its error, and the second
// is never executed.
func TestMalformedRequestsEndTheConnection(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil))) // which is what the standard logger writes to, too
	w := serveTCP(t, func(c *Config) { c.Log = slog.Default() })
	for name, tt := range requestsOf(t, "malformed") {
		for _, front := range []int{0, 1, 40} { // 40 are more than one read takes
			asked := w.ledger.asked.Load()
			want := append(slices.Repeat([]int{200}, front), tt.status)
			if strings.Contains(strings.ReplaceAll(tt.raw, "\r\n", ""), "\n") {
				front, want = 0, want[front:] // those in front of a bare line feed share its fate
			}
			ledgertest.Equal(t, statuses(w.exchange(name, strings.Repeat(second, front)+tt.raw+second)), want, "%s behind %d: statuses", name, front)
			ledgertest.Equal(t, w.ledger.asked.Load()-asked, int64(front), "%s behind %d: requests executed", name, front)
		}
	}
	must(t, w.server.Shutdown(t.Context()))
	if counted := w.server.Counts.Errors.Load(); log.Len() > 0 || counted == 0 {
		t.Errorf("%d errors are counted and %d bytes logged that begin %.200q, want some and none", counted, log.Len(), log.String())
	}
}

// TestRequestsBehindOneAnotherAreAnsweredInOrder sends many at once, also cut into pieces.
func TestRequestsBehindOneAnotherAreAnsweredInOrder(t *testing.T) {
	w := serveTCP(t, nil)
	first := "\r\n\r\nPOST /api/blocks/28 HTTP/1.1\r\nHost: x\r\nContent-Length: " // its body looks like a request
	raw := first + "49\r\n\r\n" + second[:49] +
		"GET /api/blocks/28 HTTP/1.1\r\nHost: x\r\n\r\n" +
		"GET /api/blocks/29 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" +
		"OPTIONS /api/health HTTP/1.1\r\nHost: x\r\n\r\n" +
		"HEAD /api/blocks/28 HTTP/1.1\r\nHost: x\r\n\r\n" +
		"GET /api/health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" +
		"GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n" + second
	want := []int{405, 200, 404, 204, 200, 200, 200}
	methods := []string{"POST", "GET", "GET", "OPTIONS", "HEAD", "GET", "GET"}
	for _, piece := range []int{len(raw), 1, 7, 50} {
		asked := w.ledger.asked.Load()
		c := w.dial("")
		for rest := raw; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			if _, err := io.WriteString(c, rest[:min(piece, len(rest))]); err != nil {
				break // the server may close at the last request while we still write
			}
		}
		var got []int
		from := bufio.NewReader(c)
		for _, method := range methods {
			r := readReply(t, from, method)
			checkEvery(t, "pipelined", r)
			got = append(got, r.status)
		}
		ledgertest.Equal(t, got, want, "in pieces of %d: statuses", piece)
		ledgertest.Equal(t, w.ledger.asked.Load()-asked, 3, "in pieces of %d: questions asked", piece)
	}
}

// G12, F38: TestABodyEndsWhereItsLengthSays sends a body together with a malformed request: reading
// the body must not let the other slip past the check.
func TestABodyEndsWhereItsLengthSays(t *testing.T) {
	w := serveTCP(t, nil)
	c := w.dial("")
	send(t, c, "GET /api/health HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
	from := bufio.NewReader(c)
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	if line, err := from.Peek(len(goOn)); err != nil || string(line) != goOn {
		t.Fatalf("got %q, %v, want %q", line, err, goOn)
	}
	_, _ = from.Discard(len(goOn))
	send(t, c, "hello"+"GET /api/blocks/latest HTTP/1.1\r\nHost: x\r\nX: a\r\n folded\r\n\r\n")
	for _, want := range []int{200, 400} {
		ledgertest.Equal(t, readReply(t, from, "GET").status, want, "the status")
	}
	ledgertest.Equal(t, w.ledger.asked.Load(), 0, "malformed requests executed")
}

// F38: a request that cannot be parsed is answered by its own method, whatever came before it in the same packet: with the body that its answer
// announces, and to a HEAD without.
func TestMalformedRequestsBehindOthersAreAnsweredByTheirMethod(t *testing.T) {
	const get, head = "GET /api/health HTTP/1.1\r\nHost: x\r\n", "HEAD /api/health HTTP/1.1\r\nHost: x\r\n"
	const bad, body, version = "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "Content-Length: 5\r\n\r\nHEAD ", " /api/health HTTP/9.9\r\nHost: x\r\n\r\n"
	h := serveTCP(t, nil)
	for _, tt := range []struct {
		front   string
		methods []string // of the answers
		last    string
	}{
		{head + "\r\n", []string{"HEAD", "GET"}, get + bad},
		{get + "\r\n", []string{"GET", "HEAD"}, head + bad},
		{head + body + "\r\n\r\n" + head + body + "\r\n", []string{"HEAD", "HEAD", "GET"}, get + bad},
		{get + body + get + "\r\n", []string{"GET", "GET", "HEAD"}, head + bad},
		{head + "\r\n", []string{"HEAD", "GET"}, "GET" + version},
		{get + "\r\n", []string{"GET", "HEAD"}, "HEAD" + version},
		{head + "\r\n", []string{"HEAD", "GET"}, "GET /" + strings.Repeat("a", 20_000)},
		{get + "\r\n", []string{"GET", "HEAD"}, "HEAD /" + strings.Repeat("a", 20_000)},
		{"", []string{"HEAD"}, head + bad},
		{"", []string{"HEAD"}, head + "Transfer-Encoding: chunked\r\n\r\n"},
		{"\r\n", []string{"GET"}, get + bad},
	} {
		for _, cut := range []int{0, len(tt.front), len(tt.front) + 3, len(tt.front) + 20} { // into two packets
			c := h.dial("")
			raw := tt.front + tt.last
			send(t, c, raw[:cut])
			if cut > 0 {
				time.Sleep(5 * time.Millisecond) // more likely two packets; one is right too
			}
			send(t, c, raw[cut:])
			from := bufio.NewReader(c)
			for i, method := range tt.methods {
				r, err := tryReply(from, method)
				if want := i == len(tt.methods)-1; err != nil || r.status >= 400 != want || (r.body == "") != (method == "HEAD") {
					t.Errorf("%.80q cut after %d: answer %d to %s: %d %q, %v", raw, cut, i, method, r.status, r.body, err)
				}
			}
			if rest, _ := io.ReadAll(from); len(rest) > 0 {
				t.Errorf("%.80q cut after %d: %.80q behind the answers", raw, cut, rest)
			}
		}
	}
}

func TestLongestAllowedRequestsAreAnswered(t *testing.T) {
	w := serveTCP(t, nil)
	line := "GET /api/health?" + strings.Repeat("a", 8192-len("GET /api/health? HTTP/1.1")) + " HTTP/1.1\r\n"
	fields := "Host: x\r\nX: " + strings.Repeat("a", 8192-len("Host: x\r\nX: \r\nContent-Length: 65536\r\n")) + "\r\nContent-Length: 65536\r\n"
	raw := "\r\n" + line + fields + "\r\n" + strings.Repeat("b", 65536)
	ledgertest.Equal(t, statuses(w.exchange("longest", raw+raw+last)), []int{200, 200, 200}, "statuses")
}

// G8, G9, F35: TestUnfinishedRequestsTimeOut covers heads and bodies that never end, with the times that a server has by
// default: 408 comes five seconds after the request has begun, and a connection that says nothing ends without an answer.
func TestUnfinishedRequestsTimeOut(t *testing.T) {
	const whole = "GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, tt := range map[string]struct {
		raw   string
		want  []int
		after time.Duration
	}{
		"head":           {"GET /api/health HTTP/1.1\r\nHos", []int{408}, 5 * time.Second},
		"second head":    {whole + "GET /api/he", []int{200, 408}, 5 * time.Second},
		"body":           {"POST /api/health HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc", []int{408}, 5 * time.Second},
		"nothing":        {"", nil, 5 * time.Second},
		"nothing behind": {whole, []int{200}, 75 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			t.Cleanup(func() { time.Sleep(time.Minute) }) // until the cleaner of the server's workers has slept out
			began := time.Now()
			got := statuses(servePipes(t, nil).exchange(name, tt.raw))
			if took := time.Since(began); !slices.Equal(got, tt.want) || took < tt.after || took > tt.after+time.Second {
				t.Errorf("%s: statuses %v after %v, want %v after %v", name, got, took, tt.want, tt.after)
			}
		})
	}
}

// TestAHalfSentRequestIsAnsweredWhenItsSenderIsDone sends a cut head and closes its side.
func TestAHalfSentRequestIsAnsweredWhenItsSenderIsDone(t *testing.T) {
	w := serveTCP(t, nil)
	for name, raw := range map[string]string{
		"head": "GET /api/health HT",
		"body": "POST /api/health HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
	} {
		c := w.dial("")
		send(t, c, raw)
		must(t, c.(*net.TCPConn).CloseWrite())
		ledgertest.Equal(t, readReply(t, bufio.NewReader(c), "GET").status, http.StatusBadRequest, "%s: status", name)
	}
}

// TestTheAnswerOutlivesAnUpload sends more than any buffer holds behind refused heads.
func TestTheAnswerOutlivesAnUpload(t *testing.T) {
	w := serveTCP(t, nil)
	for status, line := range map[int]string{413: "Content-Length: 900000", 400: "X: a\r\n b"} {
		raw := "GET /api/health HTTP/1.1\r\nHost: x\r\n" + line + "\r\n\r\n" + strings.Repeat("x", 900_000)
		ledgertest.Equal(t, statuses(w.exchange(line, raw)), []int{status}, "%q: statuses", line)
	}
}

// TestAnswersOfABatchLeaveInOneWrite sends sixteen requests for an account at once.
func TestAnswersOfABatchLeaveInOneWrite(t *testing.T) {
	h := servePipes(t, nil)
	c := h.dial("")
	answers := make([]byte, 64<<10)
	for range 3 {
		send(t, c, strings.Repeat("GET /api/account/"+whole.String()+" HTTP/1.1\r\nHost: x\r\n\r\n", 16))
		n, err := c.Read(answers) // of a pipe reads one write
		if got := strings.Count(string(answers[:n]), "HTTP/1.1 200 OK"); got != 16 || err != nil {
			t.Errorf("%d answers are in the first write: %v", got, err)
		}
	}
}
