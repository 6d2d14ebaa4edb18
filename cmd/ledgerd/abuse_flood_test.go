package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

// flood is one address that asks on when its limit is reached.
type flood struct {
	*target
	stopped atomic.Bool
	running sync.WaitGroup

	mu                   sync.Mutex
	conns, refused, most int // connections ended, their 429s, the most 429s of one
}

// start has 50 connections pipeline 200 requests a write, and connect anew when they are closed.
func (f *flood) start() {
	f.Cleanup(f.stop)
	for range 50 {
		f.running.Go(func() {
			for !f.stopped.Load() {
				f.pipeline()
			}
		})
	}
}

func (f *flood) stop() {
	f.stopped.Store(true)
	f.running.Wait()
}

var batch = strings.Repeat("GET /api/status HTTP/1.1\r\nHost: ledgerd\r\n\r\n", 200)

// pipeline is one connection. It waits a moment before, so that the kernel does not run out of ports.
func (f *flood) pipeline() {
	time.Sleep(10 * time.Millisecond)
	c, err := f.dial(2, nil)
	if err != nil {
		return // the node may accept as few as it likes
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(attackTimeout))
	writing.Go(func() {
		for err := error(nil); err == nil; {
			_, err = io.WriteString(c.Conn, batch)
		}
	})
	refused := 0
	for err == nil && !f.stopped.Load() {
		var line []byte // which may begin with the end of a body
		if line, err = c.in.ReadSlice('\n'); bytes.Contains(line, []byte("HTTP/1.1 429")) {
			refused++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns, f.refused, f.most = f.conns+1, f.refused+refused, max(f.most, refused)
}

// get asks and reads the whole answer.
func (c *attacker) get(path string) (*http.Response, error) {
	_ = c.SetDeadline(time.Now().Add(attackTimeout))
	if err := c.ask(path, ""); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
	}
	return response, err
}

// visit has a client within its limit ask one question after the other for 3 s. All must be answered.
func (a *target) visit(during string) {
	a.Helper()
	c := a.mustDial(1, nil)
	defer c.Close()
	var latencies []time.Duration
	late := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		asked := time.Now()
		response, err := c.get("/status")
		if err != nil || response.StatusCode != http.StatusOK {
			a.Fatalf("request %d of a client within its limit: %v, %v", len(latencies), response, err)
		}
		latencies = append(latencies, time.Since(asked))
		ms, _ := strconv.Atoi(response.Header.Get("X-Ledger-Lag-Ms"))
		late = max(late, ms)
	}
	slices.Sort(latencies)
	a.Logf("%s: %d answers, median %v, newest block at most %d ms old", during, len(latencies), latencies[len(latencies)/2], late)
}

// One address past its limit floods the node on 50 connections.
func TestAbuseRefusedFloodIsClosed(t *testing.T) {
	alone(t)
	a := attack(t, 100, "--rate-limit-minute", "2000", "--rate-limit-hour", "10000", "--source", "sim:slot_time=100ms")
	f := flood{target: a}
	f.start()
	a.visit("flooded")
	f.stop()
	t.Logf("%d connections got %d requests refused", f.conns, f.refused)
	if f.most > 64 {
		t.Errorf("a connection got %d requests refused, want at most 64 before it is closed", f.most)
	}
}

// Three thousand connections that say nothing come before a newcomer, which must not wait for each of
// them. How long it waits is counted in answers to a client that is there already.
func TestAbuseSilentConnectionsDoNotHoldUpNewcomers(t *testing.T) {
	alone(t)
	const addresses, each, maxAnswers = 30, 100, 2000
	a := attack(t, addresses*each, "--rate-limit-minute", "0", "--rate-limit-hour", "0", "--source", "sim:slots=5,slot_time=0")
	settled := a.mustDial(1, nil)
	if _, err := settled.get("/health"); err != nil {
		t.Fatal(err)
	}
	for i := range addresses * each {
		a.mustDial(2+i/each, nil)
	}
	began := time.Now()
	newcomer := a.mustDial(200, nil)
	answered := make(chan error, 1)
	go func() {
		_, err := newcomer.get("/health")
		answered <- err
	}()
	for answers := 0; ; answers++ {
		select {
		case err := <-answered:
			t.Logf("the newcomer waited %v, for %d answers to another client", time.Since(began).Round(100*time.Microsecond), answers)
			if err != nil || answers > maxAnswers {
				t.Errorf("the newcomer waited for %d answers to another client, want at most %d; %v", answers, maxAnswers, err)
			}
			return
		default:
		}
		if _, err := settled.get("/health"); err != nil {
			t.Fatal(err)
		}
	}
}

// nag connects a socket and repeats a message 19 times a second, one less than a socket may. It returns
// how many were answered until a time or the end of the socket, and what that was.
func (a *target) nag(message []byte, until time.Time) (answered int, ended string) {
	a.Helper()
	c := a.socket(2, nil, "mode=none")
	_ = c.SetReadDeadline(until)
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(time.Second / 19)
		defer tick.Stop()
		for time.Now().Before(until) && c.ws.WriteText(message) == nil {
			<-tick.C
		}
	})
	for {
		frame, err := c.ws.Next()
		if err != nil {
			c.Close()
			sending.Wait()
			return answered, end(err)
		}
		if bytes.Contains(frame.Payload, []byte(`"subscribed"`)) || bytes.Contains(frame.Payload, []byte(`"error"`)) {
			answered++
		}
	}
}

// F40: a socket has the node look up what is not there, or refuse what is too much, as often as its
// messages allow. The work must cost the client as much as the node.
func TestAbuseSocketWorkIsCharged(t *testing.T) {
	alone(t)
	const watched, maxAnswered = 5 * time.Second, 50
	unknown := make([]string, 1350)
	for i := range unknown {
		unknown[i] = strconv.Quote(ledger.Pubkey{9, byte(i >> 8), byte(i)}.String())
	}
	for name, programs := range map[string]string{"unknown programs": strings.Join(unknown, ","), "too many members": strconv.Quote(systemProgram)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := attack(t, 100, "--source", "sim:accounts=40000,slots=5,slot_time=0")
			message := fmt.Appendf(nil, `{"type":"subscribe","id":1,"snapshot":true,"programs":[%s]}`, programs)
			before := a.usage().CPU()
			answered, ended := a.nag(message, time.Now().Add(watched))
			t.Logf("%d messages answered within %v with %v of CPU, then the socket was %s", answered, watched, a.usage().CPU()-before, ended)
			if ended != "1008" && (ended != "open" || answered > maxAnswered) {
				t.Errorf("%d messages were answered, then the socket was %s; want 1008, or at most %d answered", answered, ended, maxAnswered)
			}
		})
	}
}
