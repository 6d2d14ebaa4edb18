package main

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// What a client is told adds up to what REST answers, whatever happened meanwhile. In each of these
// tests blocks are undone all the time, and clients of two kinds fold every frame
// over what REST listed at the beginning, over a snapshot, or over nothing at all from number 0
// on: the repository's own and npm's ws; at every level; all accounts, those of
// programs and some by name. When the ledger has ended every account is compared.

// shapes lets each kind of client follow at each level, and each level be followed whole, by programs
// and by keys.
func (r *foldRig) shapes(with func(f *follower)) {
	r.Helper()
	var keys []string
	base, _ := r.node.accounts("processed", false)
	for key := range base {
		if keys = append(keys, key); len(keys) == 80 {
			break
		}
	}
	for l, level := range levels {
		for i, f := range []*follower{
			{},
			{programs: simPrograms[:3]},
			{pubkeys: keys},
			{snapshot: true, programs: simPrograms},
		} {
			f.level = level
			with(f)
			r.follow(clientKinds[(l+i)%2], f)
		}
	}
}

// gentle is a ledger that takes five seconds: on a slow machine, too, much of it comes after all followers have joined.
const gentle = "fork_rate=0.2,accounts=300,tps=400,slot_time=16ms,slots=300"

func TestFoldedFramesAreTheStateOfREST(t *testing.T) {
	t.Parallel()
	r := newFoldRig(t, gentle)
	r.launch()
	r.shapes(func(f *follower) {
		if f.snapshot {
			f.trouble = listAgain()
		}
	})
	for l, level := range levels {
		r.follow(clientKinds[l%2], &follower{level: level, literal: true})
	}
	r.readBase()
	r.finish()
}

// listAgain returns a trouble that asks for another snapshot now and then. Nothing may be lost or
// doubled around it.
func listAgain() func(f *follower, conn talker, n int) {
	heard := 0
	return func(f *follower, conn talker, _ int) {
		if f.listing || !f.known {
			return
		}
		if heard++; heard%200 == 0 {
			_ = conn.WriteText([]byte(f.subscribeText()))
		}
	}
}

// Every client loses its connection again and again, or leaves, between any two frames.
func TestFoldedFramesAreTheStateOfRESTAfterDisconnects(t *testing.T) {
	if testing.Short() {
		t.Skip("clients lose their connections where nodes are killed, too")
	}
	t.Parallel()
	r := newFoldRig(t, gentle)
	r.launch()
	r.shapes(func(f *follower) {
		f.mayEnd = []uint16{0, 1000}
		last := 0 // how many frames this connection is to bring
		f.trouble = func(f *follower, conn talker, n int) {
			if n == 1 {
				last = 1 + f.random.IntN(400)
			}
			switch {
			case n != last || !r.goesOn():
			case f.random.IntN(2) == 0:
				_ = conn.Close()
			default:
				conn.Reset()
			}
		}
	})
	r.readBase()
	r.finish()
	for _, f := range r.followers {
		if f.conns < 2 && !f.isLate() {
			t.Errorf("%s: it never came back", f.name)
		}
	}
}

// F1: the node is killed, or stopped, again and again; its clients go on with the next one. Half of them leave
// before and miss what only the log knows. They are told all of it on coming back, in the words that the others heard.
func TestFoldedFramesAreTheStateOfRESTAfterKills(t *testing.T) {
	t.Parallel()
	kills := repetitions(t, "LEDGERD_CRASH_CYCLES", 3)
	r := newFoldRig(t, fmt.Sprintf("fork_rate=0.2,accounts=300,tps=400,slot_time=16ms,slots=%d", 100*max(kills, 3)))
	r.launch()
	leaves := false
	r.shapes(func(f *follower) {
		f.mayEnd = []uint16{0, 1001}
		if leaves = !leaves; leaves {
			f.trouble = func(f *follower, conn talker, _ int) {
				if base, _ := f.where(f.random); base == "" {
					conn.Reset()
				}
			}
		}
	})
	r.readBase()
	r.passRoot()
	for kill := range kills {
		time.Sleep(between(r.random, 20*time.Millisecond, 200*time.Millisecond)) // any moment is good
		r.goTo("")
		time.Sleep(between(r.random, 20*time.Millisecond, 100*time.Millisecond)) // they miss this
		if kill%3 == 1 {
			r.node.stop()
		} else {
			r.node.Kill()
		}
		time.Sleep(between(r.random, 0, 20*time.Millisecond))
		r.launch()
	}
	r.finish()
	for _, f := range r.followers {
		if f.conns < 2 {
			t.Errorf("%s: it never came back", f.name)
		}
	}
}

const (
	// enoughFrames is more than fits into the kernel's buffers (4 MiB for the sender), what the
	// server has taken for them, and the 32,768 pieces that may wait for one client.
	enoughFrames = 65_000
	// inFlight is more than the kernel and the server's writer hold alone.
	inFlight = 30_000
	// sip is what a slow client reads at once. With sipPause it is too little to keep up, and enough
	// that its socket takes something all the time.
	sip, sipPause = 250, 100 * time.Millisecond
)

// F30, F31: clients read too slowly, or not at all, until the server has given them up: with 4008 where too
// much waits for them beside the ring, with a reset where their socket takes no byte for 5 s. They
// read what is left of the connection and come back. Some ask for conflation instead, and are told
// the newest state of what they missed.
func TestFoldedFramesAreTheStateOfRESTAfterKicks(t *testing.T) {
	if os.Getenv("LEDGERD_CRASH_ALL") == "" {
		t.Skip("so many frames take both processors for ten seconds, and minutes under the race detector: make crash; httpd/stream gives slow clients up in its own tests")
	}
	t.Parallel()
	r := newFoldRig(t, "fork_rate=0.05,accounts=600,tps=100000,slot_time=4ms,slots=300")
	r.launch()
	follow := func(kind, level string, programs []string, conflate bool) {
		f := &follower{
			level: level, programs: programs, conflate: conflate, start: true, small: true,
			sips:   conflate || kind == "own" && level == "processed",
			mayEnd: []uint16{0, 1013, 4008}, trouble: stallUntilReset, // 1013: others leave too little memory
		}
		if programs != nil || conflate {
			f.trouble = r.readSlowly()
		}
		r.follow(kind, f)
	}
	follow("own", "processed", nil, false)
	follow("own", "confirmed", simPrograms, false)
	follow("own", "processed", simPrograms, true)
	follow("own", "processed", simPrograms, false)
	follow("own", "finalized", nil, false)
	follow("own", "processed", nil, true)
	follow("ws", "confirmed", nil, false)
	follow("ws", "finalized", simPrograms, false)
	r.readBase()
	r.finish()
	for _, f := range r.followers {
		if f.kicks+f.resets == 0 && !f.conflate {
			t.Errorf("%s: it was never given up", f.name)
		}
	}
}

// stallUntilReset reads nothing on the first connection until that is gone.
func stallUntilReset(f *follower, conn talker, n int) {
	if f.conns == 1 && n == 20 {
		stall(f, conn, func() bool { return false })
	}
}

// stall reads nothing until the connection is gone or something has come true.
func stall(f *follower, conn talker, enough func() bool) {
	for late := time.Now().Add(2 * patience); isConnected(f, conn.port()) && !enough(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			f.Errorf("%s: it is not given up though it reads nothing", f.name)
			return
		}
	}
}

// readSlowly returns a trouble that reads little on the first connection until too much waits for
// the client, or the ledger ends: sip by sip, or nothing at all. Who is not kicked for that then stalls.
func (r *foldRig) readSlowly() func(f *follower, conn talker, n int) {
	var from uint64 // the number of the node at the beginning
	hurries := 0    // since so many messages
	return func(f *follower, conn talker, n int) {
		enough := func() bool { return !f.conflate && r.nodeSeq() > from+enoughFrames || !f.goesOn() }
		if from == 0 {
			from = r.nodeSeq()
		}
		switch {
		case f.conns > 1:
		case hurries > 0:
			if n == hurries+inFlight && !f.conflate {
				stall(f, conn, func() bool { return false })
			}
		case n%sip == 0 && !f.sips:
			stall(f, conn, enough)
			hurries = n
		case n%sip == 0:
			time.Sleep(sipPause)
			if enough() {
				hurries = n
			}
		}
	}
}
