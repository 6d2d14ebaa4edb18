package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// G8, F35: two thousand clients of each kind send a head or a body, or read an answer, a byte at a time. Others are served meanwhile, and
// each of the slow ones is closed in the end; nothing of them stays.
func TestAbuseSlowClientsAreClosed(t *testing.T) { plainAndTLS(t, attackSlowly) }

func attackSlowly(t *testing.T, args []string) {
	t.Parallel() // beside the other that takes long: these clients wait nearly all the time
	const clients, each = 2000, 100
	a := attack(t, nil, clients, append(args, "--rate-limit-minute", "0", "--rate-limit-hour", "0", "--max-conns-per-client", fmt.Sprint(each),
		"--source", "sim:accounts=20000,slots=5,slot_time=0")...)
	before := a.usage().FDs
	for kind, begin := range map[string]string{
		"head":   "GET /api/status HTTP/1.1\r\nHost: ledgerd\r\nX-Slow: ",
		"body":   "GET /api/status HTTP/1.1\r\nHost: ledgerd\r\nContent-Length: 60000\r\n\r\n",
		"answer": strings.Repeat("GET /api/accounts/program/"+systemProgram+"?limit=10000 HTTP/1.1\r\nHost: ledgerd\r\n\r\n", 4),
	} {
		t.Run(kind, func(t *testing.T) {
			var slow sync.WaitGroup
			var conns []*attacker
			for i := range clients {
				c := a.mustDial(2+i/each, make(chan struct{}))
				conns = append(conns, c)
				slow.Go(func() { c.trickle(begin, kind == "answer") })
			}
			a.visit("slow " + kind)
			a.until("every slow client is closed and all they took is given back", func() bool { return a.usage().FDs <= before+20 })
			for _, c := range conns { // who reads slowly has yet to see it
				close(c.slow)
				c.Close()
			}
			slow.Wait()
		})
	}
}

// trickle sends the beginning of something, and then a byte a second, or reads as slowly, until the connection has ended.
func (c *attacker) trickle(begin string, reads bool) {
	does := c.Conn.Write
	if reads {
		does = c.Conn.Read
	}
	_, err := io.WriteString(c.Conn, begin)
	for one := []byte("x"); err == nil; {
		_, err = does(one)
		select {
		case <-c.slow: // TLS goes on to read what it has of a record
			return
		case <-time.After(time.Second):
		}
	}
}

// G4, F33: fifty thousand attempts to connect a WebSocket come as fast as they can, from many addresses, or five thousand over TLS, each of which costs
// who makes it as much as ten. As many as there is room for get one, the others an answer; others are served meanwhile, and afterwards nothing is
// left of them.
func TestAbuseBurstOfConnects(t *testing.T) { plainAndTLS(t, attackInABurst) }

func attackInABurst(t *testing.T, args []string) {
	const addresses, room, dialers = 240, 1500, 64
	attempts := int64(50_000)
	if args != nil {
		attempts /= 10
	}
	a := attack(t, nil, room+dialers, append(args, "--rate-limit-minute", "0", "--rate-limit-hour", "0", "--max-sockets", fmt.Sprint(room), "--source", "sim:slot_time=100ms")...)
	before := a.usage().FDs
	var mu sync.Mutex
	answers := map[string]int{}
	var sockets []*attacker
	var next atomic.Int64
	var connecting sync.WaitGroup
	for range dialers {
		connecting.Go(func() {
			for i := next.Add(1); i <= attempts; i = next.Add(1) {
				how := "cut"
				c, err := a.dial(2+int(i)%addresses, nil)
				if err == nil {
					if response, _ := c.shake(a.base, "mode=none"); response != nil {
						how = fmt.Sprint(response.StatusCode)
					}
				}
				mu.Lock()
				if answers[how]++; how == "101" {
					sockets = append(sockets, c)
				} else if c != nil {
					c.Close()
				}
				mu.Unlock()
			}
		})
	}
	a.visit("a burst of connects")
	if answer, err := a.ask(a.ops + "/readyz"); err != nil || answer.status != http.StatusOK {
		t.Errorf("/readyz in a burst of connects: %d %s, %v", answer.status, answer.body, err)
	}
	connecting.Wait()
	t.Logf("attempts were answered so: %v", answers)
	if n := a.metric("ledgerd_ws_connections"); n > room || answers["101"] < room {
		t.Errorf("%d sockets were connected and %v are, want the %d that there is room for", answers["101"], n, room)
	}
	if n := answers["101"] + answers["503"] + answers["429"]; n < int(attempts)*99/100 {
		t.Errorf("%d of %d attempts were answered: %v", n, attempts, answers)
	}
	for _, c := range sockets {
		c.Close()
	}
	a.until("all they took is given back", func() bool { return a.metric("ledgerd_ws_connections") == 0 && a.usage().FDs <= before+20 })
}
