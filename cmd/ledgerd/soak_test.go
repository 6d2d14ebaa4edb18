package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	clientlib "ledgerd/httpd/client"
)

// weather has every abuse come over a node, each from another client, and askers beside them, until it is stopped. Each client comes again when its
// connection has ended.
func (v *victim) weather(conns *atomic.Int64) (stop func()) {
	kinds := slices.Collect(maps.Values(v.abuses()))
	for range 8 {
		kinds = append(kinds, v.asks)
	}
	var stops []func()
	for i, does := range kinds {
		stops = append(stops, v.attackFrom(2+i, 8, does, conns))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// asks mixes requests, and looks at the status of each.
func (v *victim) asks(c *attacker) {
	paths := []string{"/status", "/blocks/latest", "/transactions/recent?limit=1000", "/accounts/program/" + simPrograms[0] + "?limit=10000",
		"/account/" + simPrograms[0], "/blocks/1", "/account/x", "/metrics", "/health"}
	for range 50 {
		answer, err := c.get(paths[rand.IntN(len(paths))])
		if err != nil {
			return // the node was killed
		}
		if !slices.Contains([]int{200, 400, 404, 429, 503}, answer.StatusCode) {
			v.Errorf("a request was answered with %s", answer.Status)
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
	}
}

// soak is a node under all weathers, and what it is measured by.
type soak struct {
	*testing.T
	random *rand.Rand
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

// growth returns by how many percent an hour the resident memory grows: from the middle third of the measurements to the last.
func (s *soak) growth() (percent float64) {
	third := len(s.memory) / 3
	mean := func(part [][2]float64) (hours, bytes float64) {
		for _, m := range part {
			hours, bytes = hours+m[0]/float64(len(part)), bytes+m[1]/float64(len(part))
		}
		return hours, bytes
	}
	earlier, before := mean(s.memory[third : 2*third])
	later, after := mean(s.memory[2*third:])
	return 100 * (after/before - 1) / (later - earlier)
}

// TestSoak holds a node in a cgroup of 512 MiB under all weathers at once for LEDGERD_SOAK: every abuse, askers, a full disk; in the first third it is killed and stopped as well. Then the books are balanced: streams of the client library are what REST answers,
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
		"--rate-limit-minute", "600", "--rate-limit-exempt", "127.0.0.1", "--api-keys", shareKeys(t), "--max-conns", "900", "--log-level", "info"}
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
	growth := s.growth()
	t.Logf("%v, %d connections: resident memory %d MiB, then %d MiB, %.2f %% more an hour; files %d, %d; goroutines %.0f, %.0f", length, s.conns.Load(), before.RSSBytes>>20, after.RSSBytes>>20, growth,
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
