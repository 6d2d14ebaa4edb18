package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/listen"
)

// startNPM starts a process of node and returns what connects clients of npm's ws. Where node or ws is missing it says so instead.
func startNPM(t *testing.T) (open dialer, why string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		return nil, "node is not installed here"
	}
	socket := filepath.Join(keptDir(t), "ws") // whose path is shorter than what the kernel takes
	// Debian's packages lie where only Debian's own node looks by itself.
	path := "NODE_PATH=" + os.Getenv("NODE_PATH") + ":/usr/share/nodejs"
	v := launchWords(t, "/usr/bin/env", path, "node", filepath.Join("testdata", "ws_client.js"), socket)
	m, err := v.Await(t.Context(), regexp.MustCompile(`ready (\S+)`))
	switch {
	case err != nil && strings.Contains(v.errs.String(), "Cannot find module 'ws'"):
		return nil, "node has no package ws here: install node-ws, or name its folder in NODE_PATH"
	case err != nil:
		t.Fatalf("the client of npm's ws does not start: %v", err)
	}
	t.Logf("npm's ws is version %s", m[1])
	t.Cleanup(func() {
		if v.IsGone() {
			t.Errorf("the client of npm's ws ended: %v\n%s", v.State(), v.errs)
		}
	})
	return func(address string, _ bool) (talker, error) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, err
		}
		c := &npmTalker{Conn: conn, lines: bufio.NewReaderSize(conn, 256<<10)}
		kind, text := []byte(nil), []byte(nil)
		if err = c.WriteText([]byte(address)); err == nil {
			kind, text, err = c.next()
		}
		if err == nil && string(kind) != "open" {
			err = fmt.Errorf("npm's ws cannot connect: %s %s", kind, text)
		}
		if err == nil {
			c.local, err = strconv.Atoi(string(text))
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
		return c, nil
	}, ""
}

// npmTalker is a connection of npm's ws, behind a connection to the process of node. The process reads its socket only as far ahead of
// the test as the kernel holds.
type npmTalker struct {
	net.Conn
	lines *bufio.Reader
	local int
}

// next waits for the next line.
func (c *npmTalker) next() (kind, text []byte, err error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, nil, err
	}
	line, err := c.lines.ReadSlice('\n')
	kind, text, _ = bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	return kind, text, err
}

func (c *npmTalker) read() ([]byte, error) {
	kind, text, err := c.next()
	switch {
	case err != nil || string(kind) == "text":
		return text, err
	case string(kind) != "gone":
		return nil, fmt.Errorf("npm's ws tells %s", kind)
	}
	code, reason, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseUint(code, 10, 16)
	if err != nil || n == 1006 { // no close frame came
		return nil, io.ErrUnexpectedEOF
	}
	return nil, &listen.CloseError{Code: uint16(n), Reason: reason}
}

func (c *npmTalker) WriteText(text []byte) error {
	_, err := c.Write(append(text, '\n'))
	return err
}

func (c *npmTalker) Close() error { return c.WriteText([]byte("leave")) }
func (c *npmTalker) Reset()       { _ = c.Conn.Close() }
func (c *npmTalker) port() int    { return c.local }
