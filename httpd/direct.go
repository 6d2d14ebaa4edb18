package httpd

import (
	"bytes"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// # Direct answers
//
// Nearly all that is asked is one account, by a request in which nothing but its path says
// what the answer is. Parsing it again, and putting the answer together from fields, takes
// fasthttp as much as everything else that an answer takes of us. So the conn has such a
// request answered right where it was checked, and fasthttp goes on waiting for one.
//
// That is for requests that came alone. What is not answered with 200 goes to fasthttp after
// all, and the handler goes on with what is in begun.

// begun is an exchange that was begun directly and that fasthttp is to end: who asked was
// counted and, if they may ask, so was looked up what they ask for.
type begun struct {
	is        bool
	now       time.Time
	allowance allowance
	err       error // what it is to be answered with
}

// directOutcome says what became of a request that might have been answered directly.
type directOutcome uint8

const (
	notDirect      directOutcome = iota // fasthttp is to answer it
	answeredDirect                      // the next one may come
	endedDirect                         // the connection is over
)

const (
	directStart = "GET /api/account/"
	directEnd   = " HTTP/1.1\r\n"
)

// directKey returns the key that a checked head asks for, if its request line is for an account
// and nothing else.
func directKey(head []byte) (key []byte, ok bool) {
	rest, ok := bytes.CutPrefix(head, []byte(directStart))
	if !ok {
		return nil, false
	}
	key = rest[:min(len(rest), base58Bytes+1)]
	if n := bytes.IndexByte(key, ' '); n >= 0 && bytes.HasPrefix(rest[n:], []byte(directEnd)) {
		return rest[:n], true
	}
	return nil, false
}

// direct answers the request of a head, or begins the exchange at least, or leaves it alone. The
// head is a plain one and all that has come.
func (s *Server) direct(c *conn, head []byte) directOutcome {
	text, ok := directKey(head)
	if !ok {
		return notDirect
	}
	key, err := ledger.ParsePubkey(text)
	if err != nil {
		return notDirect
	}
	r := s.requests.Get().(*request)
	outcome := r.answerDirect(s, c, text, &key)
	r.end()
	s.requests.Put(r)
	return outcome
}

func (r *request) answerDirect(s *Server, c *conn, text []byte, key *ledger.Pubkey) directOutcome {
	r.reset(s, c, s.now())
	r.client, r.route, r.variable = c.peer.client, routeAccount, text
	err := r.admit()
	if err == nil {
		err = r.lookDirect(key)
	}
	if err != nil {
		c.begun = begun{is: true, now: r.now, allowance: r.allowance, err: err}
		return notDirect
	}
	closing := c.stopped.Load()
	r.packed = r.appendDirect(r.packed[:0], closing)
	s.meters.observe(routeAccount, fasthttp.StatusOK, s.since(r.now))
	if _, err := c.Write(r.packed); err != nil || closing {
		return endedDirect
	}
	return answeredDirect
}

// goOn takes an exchange up where it was begun directly.
func (r *request) goOn() error {
	b := r.conn.begun
	r.conn.begun = begun{}
	r.now, r.allowance, r.client = b.now, b.allowance, r.conn.peer.client
	if r.allowance.allowed {
		r.route = routeAccount
	}
	return b.err
}

// lookDirect makes the body.
func (r *request) lookDirect(key *ledger.Pubkey) (err error) {
	defer func() {
		if v := recover(); v != nil {
			r.server.panicked(r.route, v)
			err = errPanic
		}
	}()
	return r.showAccount(key)
}

// appendDirect appends the whole answer, as fasthttp would write it.
func (r *request) appendDirect(dst []byte, closing bool) []byte {
	dst = append(dst, "HTTP/1.1 200 OK\r\nDate: "...)
	dst = r.server.date.append(dst, r.now)
	dst = append(dst, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(r.body)), 10)
	dst = append(dst, "\r\n"...)
	r.tagText = appendTag(r.tagText[:0], r.tag)
	dst = r.appendCommon(dst)
	dst = append(dst, ": no-cache\r\n"...)
	if closing {
		dst = append(dst, "Connection: close\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	return append(dst, r.body...)
}

// dateText keeps the text of the second that is now, for the head of an answer.
type dateText struct{ newest atomic.Pointer[datedText] }

type datedText struct {
	second int64
	text   []byte
}

func (d *dateText) append(dst []byte, now time.Time) []byte {
	second := now.Unix()
	newest := d.newest.Load()
	if newest == nil || newest.second != second {
		newest = &datedText{second, fasthttp.AppendHTTPDate(nil, now)}
		d.newest.Store(newest)
	}
	return append(dst, newest.text...)
}

// mayAnswer reports whether fasthttp is not needed for every request. What a trusted proxy sends
// may be for somebody else. The first head goes to fasthttp, which else would not take the
// connection for an idle one later.
func (c *conn) mayAnswer() bool { return c.direct != nil && c.heads > 1 && !c.peer.trusted }

// answer has a head that came alone answered without fasthttp, if it can be. It has err only
// when the connection is over.
//
// While that goes on, fasthttp takes the connection for an idle one, and Shutdown has those
// closed. So it is not closed then, and ends by itself: stopped is set before that.
func (c *conn) answer(head []byte) (answered bool, err error) {
	c.answering.Store(true)
	outcome := c.direct(c, head)
	c.answering.Store(false)
	switch {
	case outcome == notDirect:
		return false, nil
	case outcome == endedDirect || c.stopped.Load():
		return true, io.EOF
	}
	return true, nil
}
