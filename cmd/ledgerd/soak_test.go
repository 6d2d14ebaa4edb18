package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientlib "ledgerd/httpd/client"
)

// sprayer is the client that says to be others: the node takes its address for a proxy.
const sprayer = 99

// weather has all that the internet does to a node at once come over it until it is stopped. Each client comes again when its connection has ended.
func (v *victim) weather(conns *atomic.Int64) (stop func()) {
	var stops []func()
	client := 2
	for _, kind := range []struct {
		clients, each int
		does          func(c *attacker)
	}{
		{25, 20, v.churn},
		{8, 1, v.asks},
		{4, 10, v.socketed("extended=true", func(c *attacker) { c.slow = make(chan struct{}); c.drain() })},
		{4, 2, v.sendsGarbage},
		{2, 100, (*attacker).drain}, // silent
	} {
		for range kind.clients {
			stops = append(stops, v.attackFrom(client, kind.each, kind.does, conns))
			client++
		}
	}
	stops = append(stops, v.attackFrom(sprayer, 4, (*attacker).sprays, conns))
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

const upgradeLines = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

func request(c net.Conn, path, lines string) error {
	_, err := fmt.Fprintf(c, "GET /api%s HTTP/1.1\r\nHost: ledgerd\r\n%s\r\n", path, lines)
	return err
}

// answered sends a request and reads the answer, and its body to the end.
func answered(c net.Conn, in *bufio.Reader, path, lines string) (*http.Response, error) {
	if err := request(c, path, lines); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(in, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
	}
	return answer, err
}

// churn follows everything, or the accounts of a program, for up to twenty seconds, and leaves without a word or with a reset.
func (v *victim) churn(c *attacker) {
	query := []string{"mode=none", "extended=true", "programs=" + simPrograms[0] + "&overflow=conflate"}[mathrand.IntN(3)]
	v.socketed(query, func(c *attacker) {
		_ = c.SetReadDeadline(time.Now().Add(time.Duration(mathrand.IntN(20_000)) * time.Millisecond))
		c.drain()
		_ = c.socket.SetLinger(mathrand.IntN(2) - 1)
	})(c)
}

// asks mixes requests, and looks at the status of each.
func (v *victim) asks(c *attacker) {
	paths := []string{"/status", "/blocks/latest", "/transactions/recent?limit=1000", "/accounts/program/" + simPrograms[0] + "?limit=10000",
		"/account/" + simPrograms[0], "/blocks/1", "/account/x", "/metrics", "/health"}
	for range 50 {
		answer, err := c.get(paths[mathrand.IntN(len(paths))])
		if err != nil {
			return // the node was killed
		}
		if !slices.Contains([]int{200, 400, 404, 429, 503}, answer.StatusCode) {
			v.Errorf("a request was answered with %s", answer.Status)
		}
		time.Sleep(time.Duration(mathrand.IntN(200)) * time.Millisecond)
	}
}

// sprays asks once in the name of each of many addresses.
func (c *attacker) sprays() {
	for range 100 {
		var b [16]byte
		_, _ = rand.Read(b[:])
		if _, err := answered(c.Conn, c.in, "/health", "X-Forwarded-For: "+netip.AddrFrom16(b).String()+"\r\n"); err != nil {
			return
		}
		time.Sleep(time.Duration(mathrand.IntN(10)) * time.Millisecond)
	}
}

// sendsGarbage sends what is no request, or no frame.
func (v *victim) sendsGarbage(c *attacker) {
	send := func(c *attacker) {
		garbage := make([]byte, 1+mathrand.IntN(4096))
		_, _ = rand.Read(garbage)
		_, _ = c.Conn.Write(garbage)
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		c.drain()
	}
	if mathrand.IntN(2) == 0 {
		send = v.socketed("mode=none", send)
	}
	send(c)
}

// soak is a node under all weathers, and what it is measured by.
type soak struct {
	*testing.T
	random *mathrand.Rand
	disk   string
	within []string // by what it is held to 512 MiB
	args   []string
	node   *victim
	host   atomic.Pointer[string]
	memory [][2]float64 // hours, resident bytes
	conns  atomic.Int64 // that the weather made
}

func (s *soak) start() {
	s.node = launchUnder(s.T, s.within, s.args...).ready()
	host := hostOf(s.node.base)
	s.host.Store(&host)
}

// fill takes all of the disk for a moment: ingest pauses, and goes on by itself.
func (s *soak) fill() {
	s.Helper()
	name := filepath.Join(s.disk, "ballast")
	f, err := os.Create(name)
	must(s.T, err)
	for part := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(part)
	}
	time.Sleep(3 * time.Second)
	must(s.T, f.Close())
	must(s.T, os.Remove(name))
}

// slope returns by how many percent an hour the resident memory grows: a line through the means of a minute each, but for the first third.
func (s *soak) slope() (percent float64) {
	const minute = 30 // measurements
	var means [][2]float64
	var text []string
	for part := range slices.Chunk(s.memory, minute) {
		var mean [2]float64
		for _, m := range part {
			mean[0] += m[0] / float64(len(part))
			mean[1] += m[1] / float64(len(part))
		}
		means, text = append(means, mean), append(text, strconv.Itoa(int(mean[1])>>20))
	}
	means = means[len(means)/3:]
	var x, y, xx, xy float64
	for _, m := range means {
		x, y = x+m[0]/float64(len(means)), y+m[1]/float64(len(means))
	}
	for _, m := range means {
		xx, xy = xx+(m[0]-x)*(m[0]-x), xy+(m[0]-x)*(m[1]-y)
	}
	percent = 100 * xy / xx / y
	s.Logf("resident memory: slope %.2f %%/h; by the minute, MiB: %s", percent, strings.Join(text, " "))
	return percent
}

// TestSoak holds a node in a cgroup of 512 MiB under all weathers at once for LEDGERD_SOAK: churning sockets, askers, slow readers, a spray of addresses, garbage, silence, a
// full disk; in the first third it is killed and stopped as well. Then the books are balanced: streams of the client library are what REST answers,
// memory does not grow, no goroutine, file or connection is left, the log and the snapshots are whole, and a restart has the same state hash.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("LEDGERD_SOAK"))
	if err != nil {
		t.Skip("the soak takes as long as it is told to: make soak")
	}
	needsRoot(t, "mkfs.ext4")
	s := &soak{T: t, disk: filepath.Join(t.TempDir(), "disk")}
	image := filepath.Join(t.TempDir(), "image") // not in memory, which the cgroup would count
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 1<<30))
	must(t, command("mkfs.ext4", "-q", "-F", image))
	_, err = mount(t, s.disk, "-o", "loop", image)
	must(t, err)
	var seed uint64
	s.random, seed = seededRand(t)
	const slotTime = 200 * time.Millisecond
	source := fmt.Sprintf("sim:seed=%d,accounts=4000,tps=500,slot_time=%s,finality=32,fork_rate=0.1,skip_rate=0.05,slots=%d", seed, slotTime, length/slotTime)
	data := filepath.Join(s.disk, "data")
	s.args = []string{"--data-dir", data, "--source", source, "--retain-slots", "1000", "--snapshot-interval", "1m", "--min-free-bytes", "8MiB",
		"--rate-limit-minute", "600", "--rate-limit-exempt", "127.0.0.1", "--trusted-proxies", fmt.Sprint("127.0.0.", sprayer), "--max-conns", "900", "--log-level", "info"}
	s.within = memoryCgroup(t, 512<<20)
	s.start()

	c := newCutter(t, s.random, 0, 0, func() string { return *s.host.Load() })
	folds := append(foldsOf(), newFold("wallets", clientlib.Subscription{Programs: simPrograms[:1], Commitment: clientlib.Finalized}))
	state := followGo(t, c.address(), folds)

	begun := time.Now()
	for length := length / 3; time.Since(begun) < length; {
		calm := s.node.weather(&s.conns)
		time.Sleep(length / 20)
		switch s.random.IntN(3) {
		case 0:
			s.node.Kill()
		case 1:
			s.node.stop()
		default:
			s.fill()
		}
		calm()
		if s.node.IsGone() {
			s.start()
		}
	}

	s.node.stop()
	s.start()
	s.quiet()
	before, goroutines := s.node.usage(), s.node.metric("go_goroutines")
	calm := s.node.weather(&s.conns)
	for filled := time.Now(); time.Since(begun) < length; time.Sleep(2 * time.Second) {
		s.memory = append(s.memory, [2]float64{time.Since(begun).Hours(), s.node.metric("process_resident_memory_bytes")})
		if time.Since(filled) > length/10 {
			s.fill()
			filled = time.Now()
		}
	}
	calm()
	s.node.untilWithin(length+2*patience, "the input ends", func() bool { return endOfInput.MatchString(s.node.errs.String()) })
	s.quiet()
	const spare = 10                                                                                                // what takes a snapshot, answers a scrape, …
	s.node.until("no goroutine is left", func() bool { return s.node.metric("go_goroutines") <= goroutines+spare }) // idle workers stay for seconds
	after := s.node.usage()
	growth := s.slope()
	t.Logf("%v, %d connections: resident memory %d MiB, then %d MiB; files %d, %d; goroutines %.0f, %.0f", length, s.conns.Load(), before.RSSBytes>>20, after.RSSBytes>>20,
		before.FDs, after.FDs, goroutines, s.node.metric("go_goroutines"))
	if after.FDs > before.FDs+spare {
		t.Error("files are left")
	}
	if length >= time.Hour && growth > 1 {
		t.Error("memory grows by more than 1 % an hour")
	}
	s.node.agrees(state)
	hash := stateHashField.FindString(endOfInput.FindString(s.node.errs.String()))
	s.node.stop()
	verified(t, data)
	s.args[3] = "none"
	s.start()
	if m := recovered.FindStringSubmatch(s.node.errs.String()); hash == "" || m == nil || stateHashField.FindString(m[1]) != hash {
		t.Errorf("a restart has %q, want %s", m, hash)
	}
}

// quiet waits until nobody is left but the streams of the test.
func (s *soak) quiet() {
	s.Helper()
	s.node.until("the weather is over", func() bool { return s.node.metric("ledgerd_http_connections") <= 10 })
}
