package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ledgerd/bench/listen"
)

// follower is a client that folds what it is told, and comes back whenever its connection ends,
// behind the last number it saw. It never waits for anything but its socket while it has one: a
// client that does not read is a slow one.
type follower struct {
	testing.TB
	*course
	name     string
	open     dialer
	level    string
	programs []string // whose accounts it wants
	pubkeys  []string // which it wants; without programs either, all
	literal  bool
	snapshot bool // it begins with a snapshot instead of a REST list
	start    bool // it begins behind number 0 instead of now
	conflate bool
	small    bool // its kernel holds little for it
	sips     bool // when it is slow it reads sip by sip instead of nothing
	mayMiss  bool // it may be away for so long that it begins anew
	random   *rand.Rand

	// trouble is called after each message, with how many came on this connection. It may end that.
	trouble func(f *follower, conn talker, n int)
	// mayEnd are the close codes with which the server may end a connection; 0: without one.
	mayEnd []uint16

	joined chan struct{} // closed when the node has answered it
	join   func()
	done   chan struct{} // closed when it is through, or has failed

	mu   sync.Mutex
	conn talker // the present one
	folded

	// While it follows these are its own.

	behind  bool   // a resume is not answered yet
	sent    uint64 // the newest number of this connection that the server counts as sent
	conns   int
	kicks   int // 4008
	resets  int // connections that broke
	skipped int // frames that came before the answer to a resume
}

// begin lets it follow until the node has told all there is, or it is ended.
func (f *follower) begin() {
	if f.runs == nil {
		f.anew()
		f.known = f.start
	}
	f.joined, f.done = make(chan struct{}), make(chan struct{})
	f.join = sync.OnceFunc(func() { close(f.joined) })
	go f.follow()
}

// end keeps it from coming back. cut ends its connection too: without that, it hears what a node that is gone had sent.
func (f *follower) end(cut bool) {
	f.giveUp()
	f.mu.Lock()
	conn := f.conn
	f.mu.Unlock()
	if cut && conn != nil {
		conn.Reset()
	}
	<-f.done
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
		conn.Reset()
		if !f.mayGoOn(err) || f.isOver() {
			return
		}
	}
}

// address returns where it connects to. It goes on behind the last number it saw either
// there or with a message.
func (f *follower) address(base string, resumeThere bool) string {
	q := url.Values{"commitment": {f.level}}
	if !f.literal {
		q.Set("extended", "true")
	}
	if f.conflate {
		q.Set("overflow", "conflate")
	}
	if f.snapshot && !f.known {
		q.Set("mode", "none")
	} else {
		for name, keys := range map[string][]string{"programs": f.programs, "pubkeys": f.pubkeys} {
			if len(keys) > 0 {
				q.Set(name, strings.Join(keys, ","))
			}
		}
	}
	if resumeThere {
		q.Set("resume_from", fmt.Sprint(f.seq))
	}
	return streamURL(base) + "?" + q.Encode()
}

func streamURL(base string) string { return "ws" + strings.TrimPrefix(base, "http") + "/ws/accounts" }

// connect opens a connection, as soon as there is a node, and says how it begins. It returns nil
// after a failure, or when all is over.
func (f *follower) connect() (conn talker) {
	f.mu.Lock()
	f.sent, f.listing, f.behind = 0, false, f.known
	if !f.known { // what it was told before is of no use
		f.anew()
	}
	f.mu.Unlock()
	for {
		base, moved := f.where(f.random)
		if f.isOver() {
			return nil
		}
		if base == "" { // on purpose: it is to miss something
			<-moved
			continue
		}
		resumeThere := f.known && (f.conns == 0 || f.random.IntN(2) == 0)
		conn, err := f.open(f.address(base, resumeThere), f.small)
		var refused *listen.RefusedError
		switch {
		case err == nil:
			f.mu.Lock()
			f.conns++
			f.conn = conn
			f.mu.Unlock()
			if f.isOver() { // who cuts connections then may not have seen this one
				conn.Reset()
				return nil
			}
			switch {
			case f.snapshot && !f.known:
				_ = conn.WriteText([]byte(f.subscribeText())) // whoever reads sees that the socket is broken
			case f.known && !resumeThere:
				_ = conn.WriteText(fmt.Appendf(nil, `{"type":"resume","id":3,"from_seq":%d}`, f.seq))
			}
			_ = conn.WriteText([]byte(pingText))
			return conn
		case errors.As(err, &refused) && (f.choose == nil || refused.Status != http.StatusServiceUnavailable):
			f.Errorf("%s: connection %d: %v", f.name, f.conns+1, err)
			return nil
		}
		// The node was killed. There will be another one.
		select {
		case <-moved:
		case <-time.After(patience):
			f.Errorf("%s: cannot connect, and no other node comes: %v", f.name, err)
			return nil
		}
	}
}

// subscribeText asks for a snapshot of the programs, and for what follows it.
func (f *follower) subscribeText() string {
	return `{"type":"subscribe","id":2,"snapshot":true,"programs":["` + strings.Join(f.programs, `","`) + `"]}`
}

const pingText = `{"type":"ping","id":1}`

// errThrough says that nothing follows.
var errThrough = errors.New("the ledger has ended")

// listen folds what comes until the connection ends or all has come, and returns why.
func (f *follower) listen(conn talker) error {
	for n := 0; ; {
		text, err := conn.read()
		if err != nil {
			return err
		}
		counts, err := f.take(text)
		if err != nil {
			return err
		}
		if !counts {
			continue
		}
		if n++; f.trouble != nil {
			f.trouble(f, conn, n)
		}
	}
}

// take folds a message. It counts unless it is an answer, or comes again.
func (f *follower) take(text []byte) (counts bool, err error) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return false, fmt.Errorf("%.300q: %w", text, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case m.Type == "resync_required" && f.lags && m.NewestSeq < f.seq:
		return false, io.EOF // another node has it
	case m.Type == "resync_required" && f.mayMiss:
		f.known = false
		return false, io.EOF
	case m.Type == "resync_required" || m.Type == "error" || m.Type == "gap" && !f.conflate:
		return false, fmt.Errorf("behind %d: %s", f.seq, text)
	case f.behind && m.Type != "resumed": // all of it is told again after the answer
		f.skipped++
		return false, nil
	case m.Type == "pong":
		return false, f.ponged(&m)
	}
	whole := f.isFull() && f.level == "processed"
	switch m.Type {
	case "subscribed":
		if !f.known { // what came before is of no use, or of a snapshot that was cut short
			f.anew()
		}
		f.listing = true
	case "snapshot_end":
		f.listing = false
		if !f.known {
			f.seq, f.from, f.known = m.Seq, m.Seq, true
		}
	case "resumed":
		f.behind = false
		f.restoring = true
		f.seq = max(f.seq, m.FromSeq)
	case "gap":
		f.gaps++
		f.seq = max(f.seq, m.FromSeq)
	case "heartbeat":
		f.reach(m.Seq, whole)
	case "rollback":
		f.rollbacks++
		f.restoring = true
		f.reach(m.Seq, whole)
		f.keep(&m, text)
	case "slot_end":
		f.reach(m.Seq, whole)
		f.sent = f.seq
		f.keep(&m, text)
	case "account_update":
		f.update(&m, whole)
		f.sent = f.seq
		f.keep(&m, text)
	}
	return true, nil
}

func (f *follower) keep(m *message, text []byte) {
	if f.known && !f.listing && f.isFull() {
		f.hear(m, text)
	}
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// ponged takes in where the node stands, all frames up to which have come.
func (f *follower) ponged(m *message) error {
	if !f.known && !f.snapshot {
		f.seq, f.known = max(f.seq, m.Seq), true
		f.from = f.seq
	}
	switch {
	case !f.known:
		return nil
	case m.Seq < f.seq && !f.lags && !f.conflate: // the newest states may overtake an answer that waited for a slow client
		return fmt.Errorf("the node stands at number %d after %d was told", m.Seq, f.seq)
	case f.isEnd(f.level, place{m.Slot, m.Seq}):
		f.join()
		return errThrough
	}
	f.join()
	return nil
}

var lastSeq = regexp.MustCompile(`last_seq=(\d+)$`)

// mayGoOn counts how a connection ended, and takes in what the server says of it.
func (f *follower) mayGoOn(err error) bool {
	var end *listen.CloseError
	code := uint16(0)
	if errors.As(err, &end) {
		code = end.Code
	}
	switch {
	case errors.Is(err, errThrough):
		return false
	case !slices.Contains(f.mayEnd, code) || code == 0 && !isBroken(err):
		f.Errorf("%s: connection %d ended after number %d: %v", f.name, f.conns, f.seq, err)
		return false
	case code == 0 || code == 1013: // given up without a word of where
		f.resets++
	case code == 4008:
		f.kicks++
		last := uint64(0)
		if m := lastSeq.FindStringSubmatch(end.Reason); m == nil {
			err = errors.New("there is no last_seq")
		} else {
			last, err = strconv.ParseUint(m[1], 10, 64)
		}
		if err != nil || f.sent != 0 && last != f.sent && !f.conflate {
			f.Errorf("%s: closed with 4008 %q after number %d: %v", f.name, end.Reason, f.sent, err)
			return false
		}
		if last > 0 { // a heartbeat may have told more
			f.mu.Lock()
			f.seq = last
			f.mu.Unlock()
		}
	}
	return true
}

// isBroken reports whether the socket came to its end, rather than that something was wrong
// with what it brought.
func isBroken(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// awaitEnd makes the node say where it stands, again and again, until the follower hears that this is the end.
func (f *follower) awaitEnd(late <-chan time.Time) {
	f.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		f.mu.Lock()
		conn := f.conn
		f.mu.Unlock()
		if conn != nil {
			_ = conn.WriteText([]byte(pingText)) // a connection that has just ended is followed by another one
		}
		select {
		case <-f.done:
			return
		case <-again.C:
		case <-late:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.Fatalf("%s: it does not hear of the end: at number %d on connection %d, known %v, listing %v, behind %v",
				f.name, f.seq, f.conns, f.known, f.listing, f.behind)
		}
	}
}
