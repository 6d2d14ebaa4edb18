package httpd

import (
	"bufio"
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

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
