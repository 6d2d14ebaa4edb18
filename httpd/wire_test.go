package httpd

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

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
		c := w.dial("")
		send(t, c, raw)
		if got := w.replies(line, c); len(got) != 1 || got[0].status != status {
			t.Errorf("%q: the answers are %v, want one with %d", line, got, status)
		}
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
