package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/bench/listen"
)

// bridge is a process of node that speaks through npm's ws.
type bridge struct {
	mu     sync.Mutex
	orders io.WriteCloser
	conns  map[int]*npmTalker
	newest int
}

// newBridge starts one. Where node or ws is missing it says so instead.
func newBridge(t *testing.T) (b *bridge, why string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, "node is not installed here"
	}
	cmd := exec.Command(node, filepath.Join("testdata", "ws_client.js"))
	// Debian's packages lie where only Debian's own node looks by itself.
	cmd.Env = append(os.Environ(), "NODE_PATH="+os.Getenv("NODE_PATH")+":/usr/share/nodejs")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	news, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b = &bridge{orders: orders, conns: map[int]*npmTalker{}}
	lines := bufio.NewReaderSize(news, 1<<20)
	first, err := lines.ReadString('\n')
	if err != nil {
		orders.Close()
		_ = cmd.Wait()
		if strings.Contains(errs.String(), "Cannot find module 'ws'") {
			return nil, "node has no package ws here: install node-ws, or name its folder in NODE_PATH"
		}
		t.Fatalf("the client of npm's ws does not start: %v\n%s", err, errs.String())
	}
	t.Logf("npm's ws says %s", strings.TrimSpace(first))
	var listening sync.WaitGroup
	listening.Go(func() { b.listen(lines) })
	t.Cleanup(func() {
		orders.Close()
		listening.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the client of npm's ws ended with %v\n%s", err, errs.String())
		}
	})
	return b, ""
}

// listen hands what is told to the connections, until the process ends.
func (b *bridge) listen(lines *bufio.Reader) {
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, c := range b.conns {
				c.events <- npmEvent{"gone", []byte("1006 node ended")}
			}
			return
		}
		id, rest, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		kind, text, _ := bytes.Cut(rest, []byte(" "))
		n, _ := strconv.Atoi(string(id))
		b.mu.Lock()
		c := b.conns[n]
		b.mu.Unlock()
		if c != nil {
			c.events <- npmEvent{string(kind), text}
		}
	}
}

// order tells the process what to do.
func (b *bridge) order(id int, fields map[string]any) error {
	fields["id"] = id
	line, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err = b.orders.Write(append(line, '\n'))
	return err
}

// takenAtOnce is how many messages are reported as taken together: a part of ws_client.js's window.
const takenAtOnce = 1000

// npmTalker is a connection of npm's ws. The process reads its socket only so far ahead of the
// test, and by itself for each connection: who stalls has not heard all of it already, and nobody
// waits for another one.
type npmTalker struct {
	bridge *bridge
	id     int
	local  int
	taken  int // messages that were read and not reported
	events chan npmEvent
}

// mostEvents is well above ws_client.js's window.
const mostEvents = 8_000

type npmEvent struct {
	kind string
	text []byte
}

// next waits for the next event.
func (c *npmTalker) next() (npmEvent, error) {
	select {
	case e := <-c.events:
		return e, nil
	case <-time.After(patience):
		return npmEvent{}, fmt.Errorf("npm's ws tells nothing: %w", os.ErrDeadlineExceeded)
	}
}

func (b *bridge) dial(address string, _ bool) (talker, error) {
	b.mu.Lock()
	b.newest++
	c := &npmTalker{bridge: b, id: b.newest, events: make(chan npmEvent, mostEvents)}
	b.conns[c.id] = c
	b.mu.Unlock()
	if err := b.order(c.id, map[string]any{"do": "open", "url": address}); err != nil {
		return nil, err
	}
	e, err := c.next()
	if err != nil {
		return nil, err
	}
	if e.kind != "open" {
		return nil, fmt.Errorf("npm's ws cannot connect: %s %s", e.kind, e.text)
	}
	c.local, err = strconv.Atoi(string(e.text))
	return c, err
}

func (c *npmTalker) read() ([]byte, error) {
	e, err := c.next()
	switch {
	case err != nil:
		return nil, err
	case e.kind == "text":
		if c.taken++; c.taken == takenAtOnce {
			c.taken = 0
			_ = c.bridge.order(c.id, map[string]any{"do": "taken", "count": takenAtOnce})
		}
		return e.text, nil
	case e.kind != "gone":
		return nil, fmt.Errorf("npm's ws tells %s", e.kind)
	}
	code, reason, _ := strings.Cut(string(e.text), " ")
	n, err := strconv.ParseUint(code, 10, 16)
	if err != nil || n == 1006 { // no close frame came
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return nil, &listen.CloseError{Code: uint16(n), Reason: reason}
}

func (c *npmTalker) do(what string) { _ = c.bridge.order(c.id, map[string]any{"do": what}) }

func (c *npmTalker) WriteText(text []byte) error {
	return c.bridge.order(c.id, map[string]any{"do": "say", "text": string(text)})
}

func (c *npmTalker) stall(on bool) {
	if on {
		c.do("stall")
	} else {
		c.do("goon")
	}
}

func (c *npmTalker) port() int { return c.local }

func (c *npmTalker) Close() error {
	c.do("leave")
	return nil
}

func (c *npmTalker) Reset() {
	c.do("cut")
	c.bridge.mu.Lock()
	delete(c.bridge.conns, c.id)
	c.bridge.mu.Unlock()
	c.events <- npmEvent{"gone", []byte("1006 cut")} // what the process says of it comes to nobody
}
