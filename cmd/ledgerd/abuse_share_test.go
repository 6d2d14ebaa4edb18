package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

const (
	shareConns = 32 // on which one client attacks at the same time
	// mostShare is a twentieth of one processor, beside what the node takes by itself.
	mostShare = 0.05

	shareSource = "sim:accounts=20000,tps=200,slot_time=100ms"
)

// shareKeys makes the file of API keys, of which there are none.
func shareKeys(t *testing.T) (path string) {
	path = filepath.Join(t.TempDir(), "keys.yaml")
	must(t, os.WriteFile(path, []byte("tiers: {gold: {requests_per_minute: 50}}\n"), 0o600))
	return path
}

// F30, F31, F33, F35, F40: one client does as fast as it can what a node should not be asked for, and connects again whenever it is closed, plain and
// over TLS: some nodes are attacked at the same time, and what each takes is counted by itself.
// Whatever it does takes less than a twentieth of a processor over a minute, in which it has its requests and its connections once: one whose
// requests are refused is closed, after many too many its client is not let in, and what a socket asks for costs the client as much as the node.
func TestAbuseOfOneClientTakesLittleOfTheProcessors(t *testing.T) {
	alone(t)
	type target struct {
		*victim
		kinds map[string]func(c *attacker)
		idle  float64
	}
	var pairs [2]map[string]*target // by what clients speak over: each kind is tried on one of these
	for i := range pairs {
		pairs[i] = map[string]*target{}
		for over, args := range map[string][]string{"TCP": nil, "TLS": encrypted(t)} {
			v := attack(t, nil, 1000, append(args, "--source", shareSource, "--api-keys", shareKeys(t))...)
			pairs[i][over] = &target{v, v.abuses(), v.load(2 * time.Second)}
		}
	}
	client := 1
	for kinds := range slices.Chunk(slices.Sorted(maps.Keys(pairs[0]["TCP"].kinds)), len(pairs)) {
		client++
		t.Run("some", func(t *testing.T) {
			for i, kind := range kinds {
				for over, v := range pairs[i] {
					if over == "TCP" && slices.Contains([]string{"handshakes", "long handshakes"}, kind) {
						continue // there are none
					}
					t.Run(kind+" over "+over, func(t *testing.T) {
						t.Parallel()
						const closedByPolicy = `ledgerd_ws_closed_total{reason="policy"}`
						before := v.metric(closedByPolicy)
						v.share(t, client, v.idle, v.kinds[kind])
						if kind == "connections" && v.metric("ledgerd_http_floods_total") == 0 {
							t.Error("a client that connects again and again was let in each time")
						}
						if slices.Contains([]string{"pings", "messages", "subscriptions"}, kind) && v.metric(closedByPolicy) == before {
							t.Error("no socket was closed with 1008")
						}
					})
				}
			}
		})
	}
}

// F40, F47: within 512 MiB a node under every abuse at once, each kind from another client, stays alive and answers.
func TestAbuseOfEveryKindAtOnce(t *testing.T) { plainAndTLS(t, attackInEveryWay) }

func attackInEveryWay(t *testing.T, args []string) {
	v := launchUnder(t, memoryCgroup(t, 512<<20), append(args, "--data-dir", t.TempDir(), "--source", shareSource, "--api-keys", shareKeys(t),
		"--rate-limit-minute", "100", "--rate-limit-hour", "1000", "--rate-limit-exempt", "127.0.0.1")...).ready()
	var conns atomic.Int64
	client := 1
	for _, abuse := range v.abuses() {
		client++
		defer v.attackFrom(client, shareConns, abuse, &conns)()
	}
	for range 3 {
		v.visit("under every abuse")
	}
	if most := int64(client-1) * shareConns; conns.Load() < most {
		t.Errorf("%d connections were made, want %d and more", conns.Load(), most)
	}
	t.Logf("%d clients made %d connections; resident memory: %d MiB", client-1, conns.Load(), v.usage().RSSBytes>>20)
}

// abuses returns what one client does on one connection until that ends, by its kind. The node has an API key file.
func (v *victim) abuses() map[string]func(c *attacker) {
	const status = "GET /api/status HTTP/1.1\r\nHost: ledgerd\r\n"
	const list = "GET /api/accounts/program/" + systemProgram + "?limit=10000 HTTP/1.1\r\nHost: ledgerd\r\nAccept-Encoding: gzip\r\n\r\n"
	const tokens = "GET /api/accounts/program/" + tokenProgram + "?limit=10000&include=token HTTP/1.1\r\nHost: ledgerd\r\n\r\n"
	ping := wsText(`{"type":"ping","id":1}`)
	snapshot := wsText(`{"type":"subscribe","id":1,"programs":["` + systemProgram + `"],"snapshot":true,"extended":true}`)
	hello := "\x16\x03\x01\x3e\x90\x01\x00\xff\xdc\x03\x03" + strings.Repeat("x", 16_000)
	return map[string]func(c *attacker){
		"connections": func(*attacker) {},
		"handshakes": func(c *attacker) {
			if secure, ok := c.Conn.(*tls.Conn); ok {
				_ = secure.Handshake()
			}
		},
		"long handshakes": func(c *attacker) {
			_, _ = io.WriteString(c.socket, hello)
			_, _ = io.Copy(io.Discard, c.socket)
		},
		"garbage":    func(c *attacker) { c.flood(strings.Repeat("\x00\xff", 32<<10), 0) },
		"requests":   func(c *attacker) { c.flood(strings.Repeat(status+"\r\n", 200), 0) },
		"wrong keys": func(c *attacker) { c.flood(strings.Repeat(status+"X-API-Key: wrong\r\n\r\n", 200), 0) },
		"wrong handshakes": func(c *attacker) {
			c.flood(strings.Repeat(status+"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 200), 0)
		},
		"bytes of a head": func(c *attacker) { c.dribble(status + "X-Slow: " + strings.Repeat("x", 8000)) },
		"bytes of a body": func(c *attacker) { c.dribble(status + "Content-Length: 60000\r\n\r\n" + strings.Repeat("x", 60_000)) },
		"lists":           func(c *attacker) { c.flood(list, 0) },
		"lists of tokens": func(c *attacker) { c.flood(tokens, 0) },
		"unread lists":    func(c *attacker) { c.repeat([]byte(list), 0).Wait() },
		"sockets":         v.socketed("", func(*attacker) {}),
		"slow sockets":    v.socketed("extended=true", func(c *attacker) { c.slow = make(chan struct{}); c.drain() }),
		"pings":           v.socketed("mode=none", func(c *attacker) { c.flood(strings.Repeat("\x89\x80\x00\x00\x00\x00", 100), 0) }),
		"messages":        v.socketed("mode=none", func(c *attacker) { c.flood(strings.Repeat(string(ping), 100), 0) }),
		"bytes of a message": v.socketed("mode=none", func(c *attacker) {
			go c.drain()
			c.dribble(string(wsText(strings.Repeat("x", 60_000))))
		}),
		"subscriptions": v.socketed("mode=none", func(c *attacker) {
			c.flood(string(wsText(`{"type":"subscribe","id":1,"pubkeys":[`+unknownKeys(0)+`]}`)), 0)
		}),
		"names taken back": v.socketed("mode=none", func(c *attacker) { // of ten thousand that it holds
			for i := range 10 {
				if c.ws.WriteText(fmt.Appendf(nil, `{"type":"subscribe","id":1,"pubkeys":[%s]}`, unknownKeys(i))) != nil {
					return
				}
			}
			c.flood(string(wsText(`{"type":"unsubscribe","id":1,"pubkeys":[`+unknownKeys(0)+`]}`))+
				string(wsText(`{"type":"subscribe","id":1,"pubkeys":[`+unknownKeys(0)+`]}`)), 0)
		}),
		"conflated programs": v.socketed("extended=true&overflow=conflate&programs="+systemProgram+","+tokenProgram, func(c *attacker) {
			c.slow = make(chan struct{})
			c.drain()
		}),
		"snapshots":             v.socketed("mode=none", func(c *attacker) { c.flood(string(snapshot), 0) }),
		"snapshots at its rate": v.socketed("mode=none", func(c *attacker) { c.flood(string(snapshot), time.Second/19) }),
		"resumes": v.socketed("resume_from=0&extended=true", func(c *attacker) {
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			c.drain()
		}),
		"many fields":   func(c *attacker) { c.flood(status+strings.Repeat("X-A: b\r\n", 1000)+"\r\n", 0) },
		"broken frames": v.socketed("mode=none", func(c *attacker) { c.flood("\x83\x80\x00\x00\x00\x00", 0) }),
		"fragments": v.socketed("mode=none", func(c *attacker) {
			_, _ = io.WriteString(c.Conn, "\x01\x80\x00\x00\x00\x00")
			c.flood(strings.Repeat("\x00\x80\x00\x00\x00\x00", 100), 0)
		}),
	}
}

// unknownKeys returns a thousand of ten thousand keys that no account has, as a list in JSON has them.
func unknownKeys(of int) string {
	var keys []string
	for i := range 1000 {
		keys = append(keys, strconv.Quote(ledger.Pubkey{9, byte(of), byte(i >> 8), byte(i)}.String()))
	}
	return strings.Join(keys, ",")
}

// share has one client attack, who may take no more of a processor than that beside what the node takes when it is idle. What
// else a machine does makes each step of the node dearer, so another client tries again where it was more, at most twice.
func (v *victim) share(t *testing.T, client int, idle float64, attack func(c *attacker)) {
	share := v.shareOf(t, client, idle, attack)
	for again := 1; share >= mostShare && again <= 2; again++ {
		share = v.shareOf(t, client+again*100, idle, attack)
	}
	if share >= mostShare {
		t.Errorf("one client takes %.1f %% of a processor, want less than %.1f", 100*share, 100*mostShare)
	}
}

// shareOf returns how much of a processor one client takes over a minute. The client first uses up its requests and its connections of a minute;
// the measurement ends when the node takes less than half as much as it may, and counts that for the rest of the minute.
func (v *victim) shareOf(t *testing.T, client int, idle float64, attack func(c *attacker)) float64 {
	t.Helper()
	var conns atomic.Int64
	defer v.attackFrom(client, shareConns, attack, &conns)()
	const each, least, longest = 1, 2, 20 // seconds
	used, now, seconds := 0.0, mostShare, 0
	for seconds < least || now >= mostShare/2 && seconds < longest {
		now = v.load(each*time.Second) - idle
		used += each * now
		seconds += each
	}
	share := (used + float64(60-seconds)*now) / 60
	t.Logf("%.1f %% of a processor over a minute: %.2f s within %d s, with %d connections, and %.1f %% after that",
		100*share, used, seconds, conns.Load(), 100*now)
	if conns.Load() < shareConns {
		t.Errorf("%d connections were made, want %d and more", conns.Load(), shareConns)
	}
	return share
}

// attackFrom has a client attack on so many connections, and connect again whenever one has ended, until it is stopped. It may not be let in, and the
// node may be killed meanwhile.
func (v *victim) attackFrom(client, each int, attack func(c *attacker), conns *atomic.Int64) (stop func()) {
	ctx, cancel := context.WithCancel(v.Context())
	var attacking sync.WaitGroup
	for range each {
		attacking.Go(func() {
			for ctx.Err() == nil {
				c, err := v.dialWithin(ctx, client, nil)
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				conns.Add(1)
				_ = c.socket.SetLinger(0) // so that the kernel does not run out of ports
				ended := context.AfterFunc(ctx, func() { c.Close() })
				attack(c)
				ended()
				c.Close()
			}
		})
	}
	return func() {
		cancel()
		attacking.Wait()
	}
}

// load returns how much of a processor the node takes in a time.
func (v *victim) load(during time.Duration) float64 {
	before, began := v.usage().CPU, time.Now()
	time.Sleep(during)
	return (v.usage().CPU - before).Seconds() / time.Since(began).Seconds()
}

// socketed has the connection made a WebSocket before an attack.
func (v *victim) socketed(query string, attack func(c *attacker)) func(c *attacker) {
	return func(c *attacker) {
		if _, err := c.shake(v.base, query); err == nil {
			attack(c)
		}
	}
}

// drain reads until the connection ends.
func (c *attacker) drain() { _, _ = io.Copy(io.Discard, c) }

// flood writes the same again and again, and reads, until the connection ends.
func (c *attacker) flood(message string, pause time.Duration) {
	writing := c.repeat([]byte(message), pause)
	c.drain()
	c.Close()
	writing.Wait()
}

// dribble writes a byte at a time, as fast as it can, and then reads until the connection ends.
func (c *attacker) dribble(message string) {
	for i := range message {
		if _, err := io.WriteString(c.Conn, message[i:i+1]); err != nil {
			return
		}
	}
	c.drain()
}

// wsText returns a text frame as a client sends it.
func wsText(payload string) []byte {
	head := []byte{0x81, 0x80 | byte(len(payload))}
	if len(payload) > 125 {
		head = binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(len(payload)))
	}
	return append(append(head, 0, 0, 0, 0), payload...) // the mask of zeros changes nothing
}
