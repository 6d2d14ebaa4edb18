package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ledgerd/bench/listen"
)

// follower is a client of the stream that shares no code with the client libraries, and is a witness beside them. It folds all that one node
// after the other tells it, from number 0 on, and comes back behind the last number that it saw whenever its connection ends.
type follower struct {
	testing.TB
	name    string
	level   string
	literal bool          // its updates have no numbers
	mayMiss bool          // it may be away for so long that it begins anew
	mayEnd  []uint16      // the close codes with which a node may end a connection; 0: without one
	news    chan struct{} // where it is there, gets a token whenever the follower is told something
	done    chan struct{} // closed when it is through, or has failed

	mu   sync.Mutex
	base string // of the present node
	over bool   // it does not come back any more
	end  *place // where the ledger ends, if that is known
	conn *listen.Conn
	folded

	behind bool // a resume is not answered yet; the follower's own
}

// begin lets it follow a node until that has told all there is, or the follower is ended.
func (f *follower) begin(base string) {
	if f.runs == nil {
		f.anew()
		f.known = true
	}
	f.base, f.over, f.done = base, false, make(chan struct{})
	go f.follow()
}

// goTo has it come back to another node.
func (f *follower) goTo(base string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.base = base
}

// leave keeps it from coming back. cut ends its connection too: without that, it hears what a node that is gone had sent.
func (f *follower) leave(cut bool) {
	f.mu.Lock()
	f.over = true
	if cut && f.conn != nil {
		resetConn(f.conn)
	}
	f.mu.Unlock()
	<-f.done
}

// resetConn drops a connection without a close frame, as a host does that lost it.
func resetConn(conn *listen.Conn) {
	_ = conn.NetConn().(*net.TCPConn).SetLinger(0)
	_ = conn.NetConn().Close()
}

// told returns the newest number that was heard.
func (f *follower) told() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

func (f *follower) follow() {
	defer close(f.done)
	for {
		conn := f.connect()
		if conn == nil {
			return
		}
		err := f.listen(conn)
		resetConn(conn)
		if !f.mayGoOn(err) {
			return
		}
	}
}

func streamURL(base string) string { return "ws" + strings.TrimPrefix(base, "http") + "/ws/accounts" }

const pingText = `{"type":"ping","id":1}`

// connect opens a connection as soon as there is a node, and asks it where it stands. It returns nil after a failure, or when all is over.
func (f *follower) connect() *listen.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behind = f.known
	if !f.known { // what it was told before is of no use
		f.anew()
	}
	for late := time.Now().Add(patience); !f.over; {
		q := url.Values{"commitment": {f.level}}
		if !f.literal {
			q.Set("extended", "true")
		}
		if f.known {
			q.Set("resume_from", fmt.Sprint(f.seq))
		}
		address := streamURL(f.base) + "?" + q.Encode()
		f.mu.Unlock()
		conn, err := listen.Dial(context.Background(), address, listen.Options{Timeout: patience})
		if err != nil {
			time.Sleep(5 * time.Millisecond) // the node was killed, or is not ready
		}
		f.mu.Lock()
		var refused *listen.RefusedError
		switch {
		case err == nil && f.over: // who cuts connections may not have seen this one
			resetConn(conn)
		case err == nil:
			_ = conn.WriteText([]byte(pingText)) // whoever reads sees that the socket is broken
			f.conn = conn
			return conn
		case errors.As(err, &refused) && refused.Status != http.StatusServiceUnavailable || time.Now().After(late):
			f.Errorf("%s: it cannot connect: %v", f.name, err)
			return nil
		}
	}
	return nil
}

// errThrough says that nothing follows.
var errThrough = errors.New("the ledger has ended")

// listen folds what comes until the connection ends or all has come, and returns why.
func (f *follower) listen(conn *listen.Conn) error {
	for {
		if err := conn.NetConn().SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		p, err := conn.Next()
		if err == nil {
			err = f.take(p.Payload)
		}
		if err != nil {
			return err
		}
	}
}

// take folds a message, unless it is an answer or comes again.
func (f *follower) take(text []byte) error {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%.300q: %w", text, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case m.Type == "resync_required" && f.mayMiss:
		f.known = false
		return io.EOF
	case m.Type == "resync_required" || m.Type == "error" || m.Type == "gap":
		return fmt.Errorf("behind %d: %s", f.seq, text)
	case f.behind && m.Type != "resumed": // all of it is told again after the answer
		return nil
	}
	whole := f.level == "processed" && !f.literal
	switch m.Type {
	case "pong":
		return f.ponged(&m)
	case "resumed":
		f.behind, f.restoring = false, true
		f.seq = max(f.seq, m.FromSeq)
	case "heartbeat":
		f.reach(m.Seq, whole)
	case "rollback":
		f.rollbacks++
		f.restoring = true
		f.reach(m.Seq, whole)
		f.keep(&m)
	case "slot_end":
		f.reach(m.Seq, whole)
		f.keep(&m)
	case "account_update":
		f.update(&m, whole)
		f.keep(&m)
	}
	return nil
}

func (f *follower) keep(m *message) {
	if f.known && !f.literal {
		f.hear(m)
	}
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// ponged takes in where the node stands, all frames up to which have come.
func (f *follower) ponged(m *message) error {
	if !f.known {
		f.seq, f.known = max(f.seq, m.Seq), true
		f.from = f.seq
	}
	switch {
	case m.Seq < f.seq:
		return fmt.Errorf("the node stands at number %d after %d was told", m.Seq, f.seq)
	case f.end != nil && *f.end == place{m.Slot, m.Seq}:
		return errThrough
	}
	return nil
}

// mayGoOn reports whether the follower connects again after a connection that ended.
func (f *follower) mayGoOn(err error) bool {
	var end *listen.CloseError
	code := uint16(0)
	if errors.As(err, &end) {
		code = end.Code
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, errThrough):
		return false
	case !slices.Contains(f.mayEnd, code) || code == 0 && !isBroken(err):
		f.Errorf("%s: a connection ended after number %d: %v", f.name, f.seq, err)
		return false
	}
	return !f.over
}

// isBroken reports whether the socket came to its end, rather than that something was wrong
// with what it brought.
func isBroken(err error) bool {
	ends := []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE}
	return slices.ContainsFunc(ends, func(end error) bool { return errors.Is(err, end) })
}

// awaitEnd makes the node say where it stands, again and again, until the follower hears that this is the end of the ledger.
func (f *follower) awaitEnd(end place) {
	f.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for late := time.After(patience); ; {
		f.mu.Lock()
		f.end = &end
		if f.conn != nil {
			_ = f.conn.WriteText([]byte(pingText)) // a connection that has just ended is followed by another one
		}
		f.mu.Unlock()
		select {
		case <-f.done:
			return
		case <-again.C:
		case <-late:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.Fatalf("%s: it does not hear of the end: at number %d, known %v, behind %v", f.name, f.seq, f.known, f.behind)
		}
	}
}

// check compares what the frames added up to, over what was listed before, with what REST lists at the end.
func (f *follower) check(base, all map[string]accountState) {
	f.Helper()
	var wrong []string
	for key, want := range all {
		is, ok := f.accounts[key]
		if !ok {
			is, ok = base[key]
		}
		same := is.Lamports == want.Lamports && (f.literal || is.Owner == want.Owner && is.Executable == want.Executable)
		if !ok && !f.mayMiss || ok && !same {
			wrong = append(wrong, fmt.Sprintf("%s: folded %+v (there: %v), REST has %+v", key, is, ok, want))
		}
	}
	for key, is := range f.accounts {
		if _, there := all[key]; !there && is.Lamports != 0 {
			wrong = append(wrong, fmt.Sprintf("%s: folded %+v, REST has none", key, is))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		f.Errorf("%s: %d accounts differ, such as\n%s", f.name, len(wrong), strings.Join(wrong[:min(len(wrong), 5)], "\n"))
	}
	if f.missing > 0 || f.repeated > 0 {
		f.Errorf("%s: %d numbers are missing, %d came twice", f.name, f.missing, f.repeated)
	}
	f.Logf("%s: %d updates and %d rollbacks of %d accounts up to number %d", f.name, f.updates, f.rollbacks, len(f.accounts), f.seq)
}

// standsAt returns where a node is at a level.
func standsAt(t testing.TB, base, level string) place {
	t.Helper()
	conn, err := listen.Dial(context.Background(), streamURL(base)+"?mode=none&commitment="+level, listen.Options{Timeout: patience})
	must(t, err)
	defer resetConn(conn)
	err = errors.Join(conn.WriteText([]byte(pingText)), conn.NetConn().SetReadDeadline(time.Now().Add(patience)))
	p, err2 := conn.Next()
	must(t, errors.Join(err, err2))
	var m message
	if err := json.Unmarshal(p.Payload, &m); err != nil || m.Type != "pong" {
		t.Fatalf("a ping is answered with %q", p.Payload)
	}
	return place{m.Slot, m.Seq}
}
