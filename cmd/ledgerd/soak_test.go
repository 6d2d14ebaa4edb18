package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/bench/proc"
	clientlib "ledgerd/httpd/client"
)

// weather is all that the internet does to a node at once, until its context ends.
type weather struct {
	testing.TB
	host    func() string // of the node, which may be another one a moment later
	clients sync.WaitGroup
	conns   atomic.Int64 // made
}

// spell is one kind of client: how many there are at once, on how many addresses, and what each does with a connection.
type spell struct {
	clients, addresses int
	does               func(w *weather, c net.Conn, r *mathrand.Rand) error
}

var spells = []spell{
	{500, 25, (*weather).churn},
	{8, 8, (*weather).asks},
	{40, 4, (*weather).readsSlowly},
	{4, 1, (*weather).sprays},
	{8, 4, (*weather).sendsGarbage},
	{200, 2, (*weather).isSilent},
}

// sprayer is the address of those who say to be others: the node takes it for a proxy.
const sprayer = "127.0.4.1"

// begin lets all spells loose. Each client comes again when its connection has ended.
func (w *weather) begin(ctx context.Context) {
	for kind, s := range spells {
		for i := range s.clients {
			from := netip.AddrFrom4([4]byte{127, 0, byte(kind + 1), byte(1 + i%s.addresses)})
			w.clients.Go(func() {
				random := mathrand.New(mathrand.NewPCG(uint64(kind), uint64(i)))
				dialer := net.Dialer{Timeout: time.Second, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
				for ctx.Err() == nil {
					c, err := dialer.DialContext(ctx, "tcp", w.host())
					if err != nil {
						time.Sleep(100 * time.Millisecond) // the node is dead, or full
						continue
					}
					w.conns.Add(1)
					stop := context.AfterFunc(ctx, func() { _ = c.Close() })
					_ = s.does(w, c, random) // whatever it ends with
					_ = c.Close()
					stop()
				}
			})
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
func (*weather) churn(c net.Conn, r *mathrand.Rand) error {
	query := []string{"mode=none", "extended=true", "programs=" + simPrograms[0] + "&overflow=conflate"}[r.IntN(3)]
	if err := request(c, "/ws/accounts?"+query, upgradeLines); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(20_000)) * time.Millisecond)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c)
	if r.IntN(2) == 0 {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	return err
}

// asks mixes requests, and looks at the status of each.
func (w *weather) asks(c net.Conn, r *mathrand.Rand) error {
	paths := []string{"/status", "/blocks/latest", "/transactions/recent?limit=1000", "/accounts/program/" + simPrograms[0] + "?limit=10000",
		"/account/" + simPrograms[0], "/blocks/1", "/account/x", "/metrics", "/health"}
	in := bufio.NewReader(c)
	for range 50 {
		answer, err := answered(c, in, paths[r.IntN(len(paths))], "")
		if err != nil {
			return err // the node was killed
		}
		if !slices.Contains([]int{200, 400, 404, 429, 503}, answer.StatusCode) {
			w.Errorf("a request was answered with %s", answer.Status)
		}
		time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
	}
	return nil
}

// readsSlowly follows everything and takes a KiB a second.
func (*weather) readsSlowly(c net.Conn, _ *mathrand.Rand) error {
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	err := request(c, "/ws/accounts?extended=true", upgradeLines)
	for part := make([]byte, 256); err == nil; time.Sleep(time.Second / 4) {
		_, err = c.Read(part)
	}
	return err
}

// sprays asks once in the name of each of many addresses.
func (*weather) sprays(c net.Conn, r *mathrand.Rand) error {
	in := bufio.NewReader(c)
	for range 100 {
		var b [16]byte
		_, _ = rand.Read(b[:])
		if _, err := answered(c, in, "/health", "X-Forwarded-For: "+netip.AddrFrom16(b).String()+"\r\n"); err != nil {
			return err
		}
		time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
	}
	return nil
}

// sendsGarbage sends what is no request, or no frame.
func (*weather) sendsGarbage(c net.Conn, r *mathrand.Rand) error {
	garbage := make([]byte, 1+r.IntN(4096))
	_, _ = rand.Read(garbage)
	if r.IntN(2) == 0 {
		if err := request(c, "/ws/accounts?mode=none", upgradeLines); err != nil {
			return err
		}
	}
	if _, err := c.Write(garbage); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, err := io.Copy(io.Discard, c)
	return err
}

func (*weather) isSilent(c net.Conn, _ *mathrand.Rand) error {
	_, err := io.Copy(io.Discard, c)
	return err
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
	memory [len(memories)][][2]float64 // hours, bytes
}

// memories are what is measured of the node's memory: the first is what counts, the others tell where it comes from.
var memories = [...]struct {
	name string
	of   func(metrics map[string]float64) float64
}{
	{"resident memory", func(m map[string]float64) float64 { return m["process_resident_memory_bytes"] }},
	{"the heap's part", func(m map[string]float64) float64 {
		return m["go_memstats_heap_sys_bytes"] - m["go_memstats_heap_released_bytes"]
	}},
	{"the heap when it is collected", func(m map[string]float64) float64 { return m["go_memstats_next_gc_bytes"] }},
}

func (s *soak) measure(hours float64) {
	s.Helper()
	metrics, err := proc.Scrape(s.node.client, s.node.ops)
	must(s.T, err)
	for i, m := range memories {
		s.memory[i] = append(s.memory[i], [2]float64{hours, m.of(metrics)})
	}
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

// slope returns by how many percent an hour a memory grows: a line through the means of a minute each, but for the first third. It logs the means,
// and the standard error.
func (s *soak) slope(of int) (percent float64) {
	const minute = 30 // measurements
	var means [][2]float64
	var text []string
	for part := range slices.Chunk(s.memory[of], minute) {
		var mean [2]float64
		for _, m := range part {
			mean[0] += m[0] / float64(len(part))
			mean[1] += m[1] / float64(len(part))
		}
		means, text = append(means, mean), append(text, strconv.Itoa(int(mean[1])>>20))
	}
	means = means[len(means)/3:]
	var x, y float64
	for _, m := range means {
		x, y = x+m[0]/float64(len(means)), y+m[1]/float64(len(means))
	}
	var xx, xy, rest float64
	for _, m := range means {
		xx, xy = xx+(m[0]-x)*(m[0]-x), xy+(m[0]-x)*(m[1]-y)
	}
	for _, m := range means {
		off := m[1] - y - xy/xx*(m[0]-x)
		rest += off * off
	}
	percent = 100 * xy / xx / y
	deviation := 100 * math.Sqrt(rest/float64(len(means)-2)/xx) / y
	s.Logf("%s: slope %.2f ± %.2f %%/h; by the minute, MiB: %s", memories[of].name, percent, deviation, strings.Join(text, " "))
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
		"--rate-limit-minute", "600", "--rate-limit-exempt", "127.0.0.1", "--trusted-proxies", sprayer, "--max-conns", "900", "--log-level", "info"}
	s.within, _ = memoryCgroup(t, 512<<20)
	s.start()

	c := newCutter(t, s.random, 0, 0, func() string { return *s.host.Load() })
	folds := slices.DeleteFunc(foldsOf(), func(f *clientFold) bool { return f.sub.Programs == nil }) // those of everything keep all that they hear
	folds = append(folds, newFold("wallets", clientlib.Subscription{Programs: simPrograms[:1], Commitment: clientlib.Finalized}))
	state := followGo(t, c.address(), folds)

	begun := time.Now()
	s.underWeather(func() {
		for next := begun; time.Since(begun) < length/3; {
			if time.Now().Before(next) {
				time.Sleep(time.Second)
				continue
			}
			next = time.Now().Add(length / 60)
			switch s.random.IntN(3) {
			case 0:
				s.node.Kill()
				s.start()
			case 1:
				s.node.stop()
				s.start()
			default:
				s.fill()
			}
		}
	})

	s.node.stop()
	s.start()
	s.quiet()
	before, goroutines := s.node.usage(), s.node.metric("go_goroutines")
	s.underWeather(func() {
		for filled := time.Now(); time.Since(begun) < length; time.Sleep(2 * time.Second) {
			s.measure(time.Since(begun).Hours())
			if time.Since(filled) > length/10 {
				s.fill()
				filled = time.Now()
			}
		}
	})
	s.node.untilWithin(length+2*patience, "the input ends", func() bool { return endOfInput.MatchString(s.node.errs.String()) })
	s.quiet()
	const spare = 10                                                                                                // what takes a snapshot, answers a scrape, …
	s.node.until("no goroutine is left", func() bool { return s.node.metric("go_goroutines") <= goroutines+spare }) // idle workers stay for seconds
	after := s.node.usage()
	growth := s.slope(0)
	for of := 1; of < len(memories); of++ {
		s.slope(of)
	}
	t.Logf("%v: resident memory %d MiB, then %d MiB; files %d, %d; goroutines %.0f, %.0f", length, before.RSSBytes>>20, after.RSSBytes>>20,
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

// underWeather does something while the weather lasts.
func (s *soak) underWeather(do func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	w := &weather{TB: s.T, host: func() string { return *s.host.Load() }}
	w.begin(ctx)
	defer w.clients.Wait()
	defer cancel()
	do()
	s.Logf("%d connections were made", w.conns.Load())
}

// quiet waits until nobody is left but the streams of the test.
func (s *soak) quiet() {
	s.Helper()
	s.node.until("the weather is over", func() bool { return s.node.metric("ledgerd_http_connections") <= 10 })
}
