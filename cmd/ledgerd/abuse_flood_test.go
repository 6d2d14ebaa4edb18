package main

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/bench/listen"
	"ledgerd/engine/ledger"
)

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
func (v *victim) visit(during string) {
	v.Helper()
	c := v.mustDial(1, nil)
	defer c.Close()
	var latencies []time.Duration
	late := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		asked := time.Now()
		response, err := c.get("/status")
		if err != nil || response.StatusCode != http.StatusOK {
			v.Fatalf("request %d of a client within its limit: %v, %v", len(latencies), response, err)
		}
		latencies = append(latencies, time.Since(asked))
		ms, _ := strconv.Atoi(response.Header.Get("X-Ledger-Lag-Ms"))
		late = max(late, ms)
	}
	slices.Sort(latencies)
	v.Logf("%s: %d answers, median %v, newest block at most %d ms old", during, len(latencies), latencies[len(latencies)/2], late)
}

// F40: one address past its limit floods the node on 50 connections: each pipelines 200 requests a write, and another one comes when it is closed.
func TestAbuseRefusedFloodIsClosed(t *testing.T) {
	alone(t)
	v := attack(t, 100, "--rate-limit-minute", "2000", "--rate-limit-hour", "10000", "--source", "sim:slot_time=100ms")
	batch := strings.Repeat("GET /api/status HTTP/1.1\r\nHost: ledgerd\r\n\r\n", 200)
	var stopped atomic.Bool
	var flooding sync.WaitGroup
	var mu sync.Mutex
	conns, refused, most := 0, 0, 0 // connections ended, their 429s, the most 429s of one
	for range 50 {
		flooding.Go(func() {
			for !stopped.Load() {
				time.Sleep(10 * time.Millisecond) // so that the kernel does not run out of ports
				c, err := v.dial(2, nil)
				if err != nil {
					continue // the node may accept as few as it likes
				}
				n := c.pipeline(batch, &stopped)
				mu.Lock()
				conns, refused, most = conns+1, refused+n, max(most, n)
				mu.Unlock()
			}
		})
	}
	t.Cleanup(func() { stopped.Store(true) })
	v.visit("flooded")
	stopped.Store(true)
	flooding.Wait()
	t.Logf("%d connections got %d requests refused", conns, refused)
	if most > 64 {
		t.Errorf("a connection got %d requests refused, want at most 64 before it is closed", most)
	}
}

// pipeline writes requests until the connection ends, or it is stopped, and returns how many were refused.
func (c *attacker) pipeline(batch string, stopped *atomic.Bool) (refused int) {
	_ = c.SetDeadline(time.Now().Add(attackTimeout))
	writing := c.repeat([]byte(batch), 0)
	for err := error(nil); err == nil && !stopped.Load(); {
		var line []byte // which may begin with the end of a body
		if line, err = c.in.ReadSlice('\n'); bytes.Contains(line, []byte("HTTP/1.1 429")) {
			refused++
		}
	}
	c.Close()
	writing.Wait()
	return refused
}

// repeat writes the same bytes, with a pause in between, until the connection has ended.
func (c *attacker) repeat(message []byte, pause time.Duration) (writing *sync.WaitGroup) {
	writing = new(sync.WaitGroup)
	writing.Go(func() {
		for err := error(nil); err == nil; time.Sleep(pause) {
			_, err = c.Conn.Write(message)
		}
	})
	return writing
}

// F33: three thousand connections that say nothing come before a newcomer, which must not wait for each of
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
			c := a.socket(2, nil, "mode=none")
			_ = c.SetReadDeadline(time.Now().Add(watched))
			before := a.usage().CPU()
			// One message a second less than a socket may send.
			sending := c.repeat(wsText(`{"type":"subscribe","id":1,"snapshot":true,"programs":[`+programs+`]}`), time.Second/19)
			answered, err := 0, error(nil)
			for err == nil {
				var frame listen.Piece
				frame, err = c.ws.Next()
				if bytes.Contains(frame.Payload, []byte(`"subscribed"`)) || bytes.Contains(frame.Payload, []byte(`"error"`)) {
					answered++
				}
			}
			c.Close()
			sending.Wait()
			ended := end(err)
			t.Logf("%d messages answered within %v with %v of CPU, then the socket was %s", answered, watched, a.usage().CPU()-before, ended)
			if ended != "1008" && (ended != "open" || answered > maxAnswered) {
				t.Errorf("%d messages were answered, then the socket was %s; want 1008, or at most %d answered", answered, ended, maxAnswered)
			}
		})
	}
}
