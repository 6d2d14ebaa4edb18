package stream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

func resumed(id string, from ledger.Seq) string {
	return fmt.Sprintf(`{"type":"resumed","id":%s,"from_seq":%d}`, id, from)
}

func resync(id string, oldest, newest ledger.Seq) string {
	return fmt.Sprintf(`{"type":"resync_required","id":%s,"oldest_seq":%d,"newest_seq":%d}`, id, oldest, newest)
}

// resumes subscribes in both ways there are: on connect, and by a message.
func (n *node) resumes(query string, from ledger.Seq) map[string]*client {
	onConnect := n.dial(query + fmt.Sprintf("&resume_from=%d", from))
	byMessage := n.dial(query)
	byMessage.send(`{"type":"resume","id":3,"from_seq":%d}`, from)
	return map[string]*client{"null": onConnect, "3": byMessage}
}

func TestResumeFromTheNewest(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1, account(1, 1, programA), account(2, 1, programA))
	clients := n.resumes("?extended=true", 2)
	for id, c := range clients {
		c.expect(resumed(id, 2), slotEnd(1, 2)) // which it may have missed
		c.quiet()
	}
	for id, c := range n.resumes("?mode=none", 2) {
		c.expect(resumed(id, 2))
		c.quiet()
	}
	a := account(1, 2, programA)
	n.script.block(2, a)
	for _, c := range clients {
		c.expect(extendedFrame(a, 2, 3, "processed"), slotEnd(2, 3))
	}
}

func TestResumeFromOlderNeedsAResync(t *testing.T) {
	n := serve(t, func(c *Config) { c.RecentBytes = 1 }) // the newest block is kept all the same
	n.script.block(1, account(1, 1, programA), account(2, 1, programA), account(3, 1, programA))
	n.script.block(2, account(1, 2, programA), account(2, 2, programA))
	for _, from := range []ledger.Seq{0, 1, 2, 3} { // 3: its slot_end is gone
		for id, c := range n.resumes("?extended=true", from) {
			c.expect(resync(id, 4, 5))
			c.quiet()
		}
	}
	clients := n.resumes("?extended=true", 3)
	for id, c := range clients {
		c.expect(resync(id, 4, 5))
	}
	for id, c := range n.resumes("?extended=true", 4) {
		c.expect(resumed(id, 4), extendedFrame(account(2, 2, programA), 2, 5, "processed"), slotEnd(2, 5))
	}
	a := account(1, 3, programA)
	n.script.block(3, a) // the live stream goes on
	for _, c := range clients {
		c.expect(extendedFrame(a, 3, 6, "processed"), slotEnd(3, 6))
	}
}

func TestResumeFromNewerLeavesOutWhatWasSeen(t *testing.T) {
	for _, query := range []string{"?extended=true", "?extended=true&programs=" + programA.String()} {
		n := serve(t, nil)
		n.script.block(1, account(1, 1, programA))
		clients := n.resumes(query, 5)
		for id, c := range clients {
			c.expect(resumed(id, 5))
		}
		n.script.block(2, account(1, 2, programA), account(2, 2, programA)) // 2, 3: seen, and their slot_end
		for _, c := range clients {
			c.quiet()
		}
		n.script.rollBack(1) // 4, 5: seen, and that it was a rollback
		n.script.publish()
		for _, c := range clients {
			c.quiet()
		}
		a, b := account(3, 3, programA), account(4, 3, programA)
		n.script.block(3, a, b)
		for _, c := range clients {
			c.expect(extendedFrame(a, 3, 6, "processed"), extendedFrame(b, 3, 7, "processed"), slotEnd(3, 7))
		}
		n.script.rollBack(1) // a rollback after it is told
		n.script.publish()
		for _, c := range clients {
			c.expect(rolledBack(3, 1, 7), extendedFrame(account(3, 0, programA), 1, 8, "processed"), extendedFrame(account(4, 0, programA), 1, 9, "processed"))
			c.quiet()
		}
	}
}

func TestResumeInTheMiddleOfABlock(t *testing.T) {
	for _, query := range []string{"?extended=true", "?extended=true&programs=" + programA.String()} {
		n := serve(t, nil)
		n.script.block(1, account(1, 1, programA))
		clients := n.resumes(query, 3)
		for id, c := range clients {
			c.expect(resumed(id, 3))
		}
		b := account(3, 2, programA)
		n.script.block(2, account(1, 2, programA), account(2, 2, programA), b)
		for _, c := range clients {
			c.expect(extendedFrame(b, 2, 4, "processed"), slotEnd(2, 4))
			c.quiet()
		}
	}
}

func TestResumeBeforeTheFirstBlock(t *testing.T) {
	n := serve(t, nil)
	zero, ahead := n.dial("?resume_from=0"), n.dial("?resume_from=1")
	zero.expect(resumed("null", 0))
	ahead.expect(resumed("null", 1))
	a, b := account(1, 1, programA), account(2, 1, programA)
	n.script.block(1, a, b)
	zero.expect(literalFrame(a, 1), literalFrame(b, 1))
	ahead.expect(literalFrame(b, 1))
}

func TestTheLargestSeqCanBeWaitedFor(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	c := n.dial("?resume_from=18446744073709551615")
	c.expect(resumed("null", 18446744073709551615))
	n.script.block(2, account(1, 1, programA))
	c.quiet()
}

func TestANewResumeReplacesTheOld(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1, account(1, 1, programA))
	c := n.dial("?resume_from=9")
	c.expect(resumed("null", 9))
	c.send(`{"type":"resume","id":1,"from_seq":1}`)
	c.expect(resumed("1", 1))
	n.script.block(2, account(1, 2, programA))
	c.expect(literalFrame(account(1, 2, programA), 2))
	c.send(`{"type":"resume","id":2,"from_seq":9}`)
	c.expect(resumed("2", 9))
	c.send(`{"type":"resume","id":3,"from_seq":0}`)
	c.expect(resumed("3", 0), literalFrame(account(1, 1, programA), 1), literalFrame(account(1, 2, programA), 2))
	n.script.block(3, account(1, 3, programA))
	c.expect(literalFrame(account(1, 3, programA), 3))
}

// A snapshot starts over, also for who has seen more elsewhere.
func TestASnapshotEndsAResume(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1, account(1, 1, programA))
	c := n.dial("?pubkeys=" + key(9).String() + "&extended=true&resume_from=4")
	c.expect(resumed("null", 4))
	n.ledger.asked = func() error {
		n.script.block(n.script.nextSlot(), account(1, 2, programA)) // 2
		return nil
	}
	c.send(`{"type":"subscribe","id":1,"snapshot":true,"pubkeys":%s}`, list(key(1)))
	c.expect(subscribed("1", 2, 0, 1, 1), extendedFrame(account(1, 1, programA), 1, 1, "processed"), snapshotEnd("1", 1, 1),
		extendedFrame(account(1, 2, programA), 2, 2, "processed"), slotEnd(2, 2))
	n.script.block(3, account(1, 3, programA))
	c.expect(extendedFrame(account(1, 3, programA), 3, 3, "processed"), slotEnd(3, 3))
}

// A snapshot that fails changes nothing, a resume that waits included.
func TestAResumeOutlivesAFailedSnapshot(t *testing.T) {
	n := serve(t, nil)
	members := make([]ledger.Account, maxSnapshot+1)
	for i := range members {
		members[i] = account(i, 1, programA)
	}
	n.script.block(1, members...)
	newest := n.script.seq
	c := n.dial("?pubkeys=" + key(1).String() + "&extended=true&resume_from=" + fmt.Sprint(newest+2))
	c.expect(resumed("null", newest+2))
	asked := 0
	n.ledger.asked = func() error {
		if asked++; asked == 1 {
			n.script.block(2, account(1, 2, programA))                          // seen
			n.script.block(3, account(0, 2, programA), account(1, 3, programA)) // the second is new
		}
		return nil
	}
	c.send(`{"type":"subscribe","id":1,"snapshot":true,"programs":%s}`, list(programA))
	got := slices.DeleteFunc(c.settle(), func(f string) bool { return strings.HasPrefix(f, `{"type":"error","id":1,`) })
	want := []string{extendedFrame(account(1, 3, programA), 3, newest+3, "processed"), slotEnd(3, newest+3)}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q and an error", got, want)
	}
}

// The answer comes before every frame that follows it, and none is missing or doubled.
func TestResumeIsExactWhileBlocksCome(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1, account(1, 1, programA))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for slot := ledger.Slot(2); ; slot++ {
			select {
			case <-stop:
				return
			default:
				n.script.block(slot, account(1, ledger.Lamports(slot), programA), account(2, ledger.Lamports(slot), programA))
			}
		}
	}()
	answers := map[string]int{}
	for i := range 40 {
		n.hub.mu.Lock()
		from := n.hub.told[ledger.Processed] + ledger.Seq(i%8*20)
		from -= min(from, 80)
		n.hub.mu.Unlock()
		c := n.dial(fmt.Sprintf("?extended=true&resume_from=%d", from))
		var answer struct {
			Type   string
			Newest ledger.Seq `json:"newest_seq"`
		}
		if err := json.Unmarshal([]byte(c.next()), &answer); err != nil {
			t.Fatal(err)
		}
		answers[answer.Type]++
		next := from + 1
		if answer.Type == "resync_required" {
			next = answer.Newest + 1
		}
		for range 20 {
			u := readUpdates(t, []string{c.next()})
			if len(u) == 0 {
				continue
			}
			if u[0].Seq != next {
				t.Fatalf("resumed from %d (%s, newest %d): seq %d came, want %d", from, answer.Type, answer.Newest, u[0].Seq, next)
			}
			next++
		}
		_ = c.conn.Close()
	}
	close(stop)
	<-done
	t.Logf("answers: %v", answers)
}
