package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
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
	rig      *foldRig
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
	random   *rand.Rand

	// trouble is called after each message, with how many came on this connection. It may end that.
	trouble func(f *follower, conn talker, n int)
	// mayEnd are the close codes with which the server may end a connection; 0: without one.
	mayEnd []uint16

	mu   sync.Mutex
	conn talker // the present one

	joined chan struct{} // closed when the node has answered it
	done   chan struct{} // closed when it is through, or has failed

	// While it follows these are its own.

	state   foldState
	from    uint64        // the number it began at
	updates []heardUpdate // all since then, if it is told everything and no gaps
	known   bool          // there is a number to go on behind
	told    uint64        // the newest number of this connection that the server counts as sent
	conns   int
	kicks   int  // 4008
	resets  int  // connections that broke
	skipped int  // frames that came before the answer to a resume
	listing bool // between subscribed and snapshot_end
}

// heardUpdate is what a follower keeps of one: its number, and a hash of its text.
type heardUpdate struct{ seq, text uint64 }

var updateSeed = maphash.MakeSeed()

// follow runs until the node has told all there is.
func (f *follower) follow() {
	defer close(f.done)
	for {
		conn, behind := f.connect()
		if conn == nil {
			return
		}
		err := f.listen(conn, behind)
		conn.cut()
		if err == nil || f.rig.isOver() || !f.mayGoOn(err) {
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
	switch {
	case f.snapshot && !f.known:
		q.Set("mode", "none")
	default:
		if len(f.programs) > 0 {
			q.Set("programs", strings.Join(f.programs, ","))
		}
		if len(f.pubkeys) > 0 {
			q.Set("pubkeys", strings.Join(f.pubkeys, ","))
		}
	}
	if resumeThere {
		q.Set("resume_from", fmt.Sprint(f.state.Seq))
	}
	return "ws" + strings.TrimPrefix(base, "http") + "/ws/accounts?" + q.Encode()
}

// connect opens a connection, as soon as there is a node, and says how it begins. It returns nil
// after a failure, or when all is over.
func (f *follower) connect() (conn talker, behind bool) {
	f.told, f.listing = 0, false
	if !f.known { // it begins anew, and what it was told before is of no use
		f.state, f.updates = foldState{Whole: f.state.Whole}, nil
	}
	for {
		base, moved := f.rig.where()
		if f.rig.isOver() {
			return nil, false
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
			f.conns++
			f.mu.Lock()
			f.conn = conn
			f.mu.Unlock()
			if f.rig.isOver() { // who cuts connections then may not have seen this one
				conn.cut()
				return nil, false
			}
			for _, text := range f.opening(resumeThere) {
				_ = conn.say(text) // whoever reads sees that the socket is broken
			}
			return conn, f.known
		case errors.As(err, &refused) && (f.rig.choose == nil || refused.Status != http.StatusServiceUnavailable):
			f.Errorf("%s: connection %d: %v", f.name, f.conns+1, err)
			return nil, false
		}
		// The node was killed. There will be another one.
		select {
		case <-moved:
		case <-time.After(patience):
			f.Errorf("%s: cannot connect, and no other node comes: %v", f.name, err)
			return nil, false
		}
	}
}

// opening returns what is said on a new connection.
func (f *follower) opening(resumeThere bool) (texts []string) {
	switch {
	case f.snapshot && !f.known:
		texts = append(texts, f.subscribeText())
	case f.known && !resumeThere:
		texts = append(texts, fmt.Sprintf(`{"type":"resume","id":3,"from_seq":%d}`, f.state.Seq))
	}
	return append(texts, pingText)
}

// subscribeText asks for a snapshot of the programs, and for what follows it.
func (f *follower) subscribeText() string {
	return `{"type":"subscribe","id":2,"snapshot":true,"programs":["` + strings.Join(f.programs, `","`) + `"]}`
}

const pingText = `{"type":"ping","id":1}`

// listen folds what comes until all has come, or returns why the connection ended.
func (f *follower) listen(conn talker, behind bool) error {
	for n := 0; ; {
		text, err := conn.read()
		if err != nil {
			return err
		}
		kind := kindOf(text)
		switch {
		case behind && kind == "resumed":
			behind = false
		case kind == "resync_required" && f.rig.choose != nil && f.isAheadOf(text):
			return io.EOF // of a node that is behind for long: another one has it
		case kind == "resync_required" || kind == "error":
			f.Errorf("%s: connection %d, behind %d: %s", f.name, f.conns, f.state.Seq, text)
			return nil
		case behind: // all of it is told again after the answer
			f.skipped++
			continue
		case kind == "pong":
			if f.ponged(text) {
				return nil
			}
			continue
		}
		if kind == "subscribed" && !f.known { // what came before is of no use, or of a snapshot that was cut short
			f.state = foldState{Whole: f.state.Whole}
		}
		if err := f.state.Apply(text); err != nil {
			f.Errorf("%s: %v", f.name, err)
			return nil
		}
		switch kind {
		case "account_update":
			if f.told = f.state.Seq; f.known && !f.listing && f.isFull() {
				f.updates = append(f.updates, heardUpdate{f.state.Seq, maphash.Bytes(updateSeed, text)})
			}
		case "slot_end":
			f.told = f.state.Seq
		case "subscribed":
			f.listing = true
		case "snapshot_end":
			f.listing = false
			var end spoken
			if err := json.Unmarshal(text, &end); err != nil {
				f.Errorf("%s: %q: %v", f.name, text, err)
			}
			if !f.known {
				f.state.Seq, f.from, f.known = end.Seq, end.Seq, true
			}
		}
		if n++; f.trouble != nil {
			f.trouble(f, conn, n)
		}
	}
}

// isAheadOf reports whether a node that cannot resume is one that has yet to get where the follower is.
func (f *follower) isAheadOf(text []byte) bool {
	var r struct {
		Newest uint64 `json:"newest_seq"`
	}
	return json.Unmarshal(text, &r) == nil && r.Newest < f.state.Seq
}

// ponged takes in where the node stands, all frames up to which have come, and reports
// whether nothing follows.
func (f *follower) ponged(text []byte) (over bool) {
	var p spoken
	if err := json.Unmarshal(text, &p); err != nil {
		f.Errorf("%s: %q: %v", f.name, text, err)
		return true
	}
	if !f.known && !f.snapshot {
		f.state.Seq, f.known = max(f.state.Seq, p.Seq), true
		f.from = f.state.Seq
	}
	select {
	case <-f.joined:
	default:
		if f.known {
			close(f.joined)
		}
	}
	return f.known && f.rig.isEnd(f.level, place{p.Slot, p.Seq})
}

var lastSeq = regexp.MustCompile(`last_seq=(\d+)$`)

// mayGoOn counts how a connection ended, and takes in what the server says of it.
func (f *follower) mayGoOn(err error) bool {
	var end *listen.CloseError
	code := uint16(0)
	if errors.As(err, &end) {
		code = end.Code
	}
	if !slices.Contains(f.mayEnd, code) || code == 0 && !isBroken(err) {
		f.Errorf("%s: connection %d ended after number %d: %v", f.name, f.conns, f.state.Seq, err)
		return false
	}
	switch code {
	case 0, 1013: // given up without a word of where
		f.resets++
	case 4008:
		f.kicks++
		m := lastSeq.FindStringSubmatch(end.Reason)
		if m == nil {
			f.Errorf("%s: closed with 4008 %q, want a last_seq", f.name, end.Reason)
			return false
		}
		last, err := strconv.ParseUint(m[1], 10, 64)
		switch {
		case err != nil || f.told != 0 && last != f.told && !f.conflate:
			f.Errorf("%s: closed with 4008 %q after number %d", f.name, end.Reason, f.told)
			return false
		case last > 0: // a heartbeat may have told more
			f.state.Seq = last
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

// ask makes the node say where it stands.
func (f *follower) ask() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.conn.say(pingText) // a connection that has just ended is followed by another one
}

// kindOf returns the type of a message.
func kindOf(text []byte) string {
	rest, _ := bytes.CutPrefix(text, []byte(`{"type":"`))
	kind, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(kind)
}

// check compares what the frames added up to, over what REST listed once the follower had joined,
// with what REST lists at the end.
func (f *follower) check(base, end map[string]accountRecord) {
	f.Helper()
	got := map[string]accountRecord{}
	for key, a := range base {
		if !f.snapshot && f.wants(key, a) {
			got[key] = a
		}
	}
	for key, u := range f.state.Accounts {
		got[key] = accountRecord{Pubkey: key, Lamports: json.Number(fmt.Sprint(u.Lamports)), Owner: u.Owner}
	}
	seen, wrong := 0, []string{}
	for key, want := range end {
		if !f.wants(key, want) {
			continue
		}
		if _, told := f.state.Accounts[key]; told {
			seen++
		}
		is, ok := got[key]
		if !ok || is.Lamports != want.Lamports || !f.literal && is.Owner != want.Owner {
			wrong = append(wrong, fmt.Sprintf("%s: folded %+v (there: %v), REST has %+v", key, is, ok, want))
		}
	}
	for key, is := range got {
		if _, there := end[key]; !there && is.Lamports != "0" {
			wrong = append(wrong, fmt.Sprintf("%s: folded %+v, REST has none", key, is))
		}
	}
	s := &f.state
	if len(wrong) > 0 {
		slices.Sort(wrong)
		f.Errorf("%s: %d accounts differ, such as\n%s", f.name, len(wrong), strings.Join(wrong[:min(len(wrong), 5)], "\n"))
	}
	if s.Missing > 0 || s.Repeated > 0 {
		f.Errorf("%s: %d numbers are missing, %d came twice", f.name, s.Missing, s.Repeated)
	}
	switch {
	case f.isLate(): // for all of this
	case seen == 0:
		f.Errorf("%s: it was told of no account that is there", f.name)
	case f.level == "processed" && !f.literal && !f.conflate && s.Rollbacks == 0:
		f.Errorf("%s: nothing was undone while it listened", f.name)
	}
	f.Logf("%s: %d updates and %d rollbacks of %d accounts up to number %d; %d connections, %d kicks, %d resets, %d gaps, %d skipped",
		f.name, s.Updates, s.Rollbacks, len(s.Accounts), s.Seq, f.conns, f.kicks, f.resets, s.Gaps, f.skipped)
}

// isFull reports whether the follower is told of every update of its level.
func (f *follower) isFull() bool {
	everything := len(f.programs)+len(f.pubkeys) == 0 || len(f.programs) == len(simPrograms)
	return everything && !f.literal && !f.conflate
}

// isLate reports whether most of the ledger was there when the follower began: the machine is
// slow, and it shows less than it should.
func (f *follower) isLate() bool { return 2*f.from > f.rig.endSeq() }

// wants reports whether the follower asked for an account.
func (f *follower) wants(key string, a accountRecord) bool {
	if len(f.programs)+len(f.pubkeys) == 0 {
		return true
	}
	return slices.Contains(f.pubkeys, key) || slices.Contains(f.programs, a.Owner)
}
