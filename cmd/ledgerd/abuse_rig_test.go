package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/bench/listen"
)

// The tests in abuse_*_test.go attack a node from a few addresses within the default limits. They
// assert sizes and counts.

// alone skips an attack that is not asked for: it takes all of the machine, and beside other tests it
// would measure them.
func alone(t *testing.T) {
	t.Helper()
	if os.Getenv("LEDGERD_ABUSE") == "" {
		t.Skip("attacks run by themselves: make abuse")
	}
}

// plainAndTLS attacks a node that speaks plainly, and one over TLS, with the flags for that.
func plainAndTLS(t *testing.T, attack func(t *testing.T, args []string)) {
	t.Helper()
	alone(t)
	for over, args := range map[string][]string{"TCP": nil, "TLS": encrypted(t)} {
		t.Run(over, func(t *testing.T) { attack(t, args) })
	}
}

// memoryCgroup makes a cgroup and returns the words that start a program within it.
func memoryCgroup(t *testing.T, bytes int) (within []string) {
	t.Helper()
	group := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprint("ledgerd-test-", os.Getpid()))
	if err := os.Mkdir(group, 0o750); err != nil {
		t.Skipf("this machine does not let a test make a cgroup: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	if err := os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), []byte(strconv.Itoa(bytes)), 0o600); err != nil {
		t.Skipf("this machine does not let a test limit a cgroup: %v", err)
	}
	return []string{"/bin/sh", "-c", `echo $$ > ` + group + `/cgroup.procs; exec "$@"`, "sh"}
}

// attack starts a node for so many connections, within a cgroup where there are words for that. 127.0.0.1 is the address of a client that does no
// harm, the attackers have those after it.
func attack(t *testing.T, within []string, connections int, args ...string) *victim {
	t.Helper()
	var files syscall.Rlimit // Go has raised the soft limit to the hard one
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < uint64(connections+1024) {
		t.Fatalf("%d connections need %d file descriptors, the hard limit is %d, %v", connections, connections+1024, files.Max, err)
	}
	defaults := []string{"--data-dir", t.TempDir(), "--wal-sync", "off", "--rate-limit-minute", "100", "--rate-limit-hour", "1000"}
	return launchUnder(t, within, append(defaults, args...)...).ready()
}

// attacker is one connection to the node.
type attacker struct {
	net.Conn // the socket, or TLS over it
	socket   *net.TCPConn
	in       *bufio.Reader // of answers
	ws       *listen.Conn  // of frames
	slow     chan struct{} // nil: it reads as fast as it can; else 1 KB a second until this is closed
}

// dial connects from 127.0.0.client. The kernel holds little for a slow reader, on both ends: what the
// node's end may hold grows with the segments, which are 64 KiB on loopback.
func (v *victim) dial(client int, slow chan struct{}) (*attacker, error) {
	c, err := v.dialWithin(v.Context(), client, slow)
	if err == nil {
		v.Cleanup(func() { _ = c.socket.Close() })
	}
	return c, err
}

func (v *victim) dialWithin(ctx context.Context, client int, slow chan struct{}) (*attacker, error) {
	d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(client))}}
	if slow != nil {
		d.Control = func(_, _ string, raw syscall.RawConn) (err error) {
			controlErr := raw.Control(func(fd uintptr) {
				err = errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10),
					syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 1400))
			})
			return errors.Join(controlErr, err)
		}
	}
	conn, err := d.DialContext(ctx, "tcp", hostOf(v.base))
	if err != nil {
		return nil, err
	}
	c := &attacker{Conn: conn, socket: conn.(*net.TCPConn), slow: slow}
	if strings.HasPrefix(v.base, "https:") {
		c.Conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	c.in = bufio.NewReaderSize(c, 1<<10)
	return c, nil
}

func (v *victim) mustDial(address int, slow chan struct{}) *attacker {
	v.Helper()
	c, err := v.dial(address, slow)
	must(v, err)
	return c
}

// Read reads slowly where that is wanted.
func (c *attacker) Read(p []byte) (int, error) {
	if c.slow != nil {
		select {
		case <-c.slow:
		case <-time.After(time.Second / 4):
			p = p[:min(len(p), 256)]
		}
	}
	return c.Conn.Read(p)
}

// ask sends a request.
func (c *attacker) ask(path string) error { return request(c.Conn, path, "") }

// get asks and reads the whole answer.
func (c *attacker) get(path string) (*http.Response, error) {
	_ = c.SetDeadline(time.Now().Add(patience))
	return answered(c.Conn, c.in, path, "")
}

// visit has a client within its limit ask one question after the other for 2 s. All must be answered.
func (v *victim) visit(during string) {
	v.Helper()
	c := v.mustDial(1, nil)
	defer c.Close()
	var latencies []time.Duration
	late := 0
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
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

// shake makes the connection a WebSocket and returns the answer to the handshake, which is there after a refusal too.
func (c *attacker) shake(base, query string) (*http.Response, error) {
	dial := func(context.Context, string, string) (net.Conn, error) { return c, nil }
	dialer := websocket.Dialer{NetDialContext: dial, NetDialTLSContext: dial, ReadBufferSize: 1 << 10}
	ws, response, err := dialer.Dial(streamURL(base)+"?"+query, nil)
	if err == nil {
		c.ws = listen.New(ws)
	}
	return response, err
}

// end names what ended a socket: the frame waited for, a close code, the deadline, or the network.
func end(err error) string {
	var closed *websocket.CloseError
	switch {
	case err == nil:
		return "served"
	case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		return strconv.Itoa(closed.Code)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "open"
	}
	return "cut"
}
