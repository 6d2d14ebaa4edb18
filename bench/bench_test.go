package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/proc/proctest"
	"ledgerd/bench/report"
	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// asPeer has the test binary be a peer, as ledgerbench is one.
const asPeer = "peer"

// program is the ledgerd that all tests start, and self is how a peer is started, in a directory with the other programs of scenarios.
var (
	program string
	self    []string
)

func TestMain(m *testing.M) { os.Exit(begin(m)) }

func begin(m *testing.M) int {
	if len(os.Args) == 5 && os.Args[1] == asPeer {
		if err := peer.Serve(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			panic(err)
		}
		return 0
	}
	dir, err := os.MkdirTemp("", "ledgerd-bench-")
	defer os.RemoveAll(dir)
	built, err2 := proctest.Tool("", "ledgerd")
	own, err3 := os.Executable()
	program, self = filepath.Join(dir, "ledgerd"), []string{filepath.Join(dir, "self"), asPeer}
	if err := errors.Join(err, err2, err3, os.Symlink(built, program), os.Symlink(own, self[0])); err != nil {
		panic(err)
	}
	return m.Run()
}

// sampled are the scenarios that every run of the tests measures: between them they have all kinds of peers that serve, and see what the feed tells.
// All are measured where LEDGERD_BENCH_ALL is set (make bench-once).
var sampled = []string{"account", "firehose", "filtered"}

// Each scenario, small and short, measures every figure that its goals ask for, ledgerd's and the peers'; what it verifies meanwhile holds.
func TestScenariosMeasureWhatTheirGoalsAskFor(t *testing.T) {
	must(t, os.Symlink(natstest.Program(t), filepath.Join(filepath.Dir(program), "nats-server")))
	for _, g := range Goals {
		if !slices.ContainsFunc(Scenarios, func(s Scenario) bool { return s.Name == g.Scenario }) {
			t.Errorf("%s is of scenario %q, which is none", g.What(), g.Scenario)
		}
	}
	for i := range Scenarios {
		s := &Scenarios[i]
		t.Run(s.Name, func(t *testing.T) {
			if os.Getenv("LEDGERD_BENCH_ALL") == "" && !slices.Contains(sampled, s.Name) {
				t.Skip("make bench-once measures it")
			}
			t.Parallel()
			found, records := measured(t, s, 0.01, 400*time.Millisecond)
			for i := range Goals {
				g := &Goals[i]
				if g.Scenario == s.Name && found.Judge(g).Verdict == report.Absent && !strings.Contains(records, "left out") {
					t.Errorf("%s is not measured", g.What())
				}
			}
		})
	}
}

// measured runs a scenario, which leaves no files behind, and returns what it recorded.
func measured(t *testing.T, s *Scenario, scale float64, duration time.Duration) (*report.File, string) {
	t.Helper()
	var records bytes.Buffer
	r := &Run{
		Ledgerd: program, Self: self, Dir: t.TempDir(), Rounds: 1, Duration: duration, Scale: scale, Peers: true,
		Progress: t.Output(), Out: report.NewWriter(&records, nil),
	}
	must(t, r.Do(t.Context(), s))
	if left, err := os.ReadDir(r.Dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v behind (%v)", left, err)
	}
	found, err := report.Read(records.Bytes(), s.Name)
	must(t, err)
	return found, records.String()
}

// What a measurement has started ends with it, what a scenario has started with that, the last first, also after a failure.
func TestARunEndsWhatItsScenariosStart(t *testing.T) {
	failure := errors.New("a failure")
	const all = "a -a2 -a1 b -b2 -b1 b -b2 -b1 a -a2 -a1 -s2 -s1"
	for failing, want := range map[string]string{"none": all, "b": "a -a2 -a1 b -b2 -b1 -s2 -s1", "the last end of a2": all} {
		var said []string
		r := &Run{Rounds: 2, Progress: t.Output(), Out: report.NewWriter(io.Discard, nil)}
		start := func(name string) {
			r.atEnd(func() error {
				said = append(said, "-"+name)
				if failing == "the last end of "+name && len(said) > 9 {
					return failure
				}
				return nil
			})
		}
		err := r.Do(t.Context(), &Scenario{run: func(context.Context, *Run) {
			start("s1")
			start("s2")
			turns(r, []string{"a", "b"}, func(name string) {
				said = append(said, name)
				start(name + "1")
				start(name + "2")
				if name == failing {
					check(failure)
				}
			})
		}})
		if got := strings.Join(said, " "); got != want || errors.Is(err, failure) != (failing != "none") {
			t.Errorf("where %s fails: %s, %v; want %s", failing, got, err, want)
		}
	}
}

// A peer that fails in a round is not measured in those after it: its figures would stand beside those of other rounds.
func TestAPeerThatFailsIsLeftOutFromThenOn(t *testing.T) {
	var records bytes.Buffer
	r := &Run{Rounds: 3, Progress: t.Output(), Out: report.NewWriter(&records, nil)}
	round := map[string]int{}
	scenario := &Scenario{Name: "firehose", run: func(ctx context.Context, r *Run) {
		peersInTurns(ctx, r, []peer.Peer{{Name: "ledgerd"}, {Name: "raw"}, {Name: "nats"}}, func(p *peer.Peer) {
			if round[p.Name]++; p.Name == "raw" && round[p.Name] == 2 {
				check(errors.New("a failure"))
			}
			r.Record(p.Name, 1, report.Figure{Unit: "B/s", Value: float64(round[p.Name])})
		})
	}}
	must(t, r.Do(t.Context(), scenario))
	ledgertest.Equal(t, round, map[string]int{"ledgerd": 3, "raw": 2, "nats": 3}, "how often each is measured")
	ledgertest.Contains(t, records.String(), "# firehose: raw is left out from here on: a failure", "the records")
}

// Where there is no Redis, a note says so, and ledgerd is measured.
func TestScenariosMeasureLedgerdWithoutRedis(t *testing.T) {
	t.Setenv("PATH", "")
	for i := range Scenarios {
		s := &Scenarios[i]
		if s.Name != "memory" && (s.Name != "ingest" || os.Getenv("LEDGERD_BENCH_ALL") == "") {
			continue
		}
		_, records := measured(t, s, 0.001, 100*time.Millisecond)
		ledgertest.Equal(t, strings.Count(records, ": Redis is left out: there is no redis-server"), 1, "%s: notes that Redis is left out of\n%s\nare", s.Name, records)
		if !strings.Contains(records, "/subject=ledgerd") {
			t.Errorf("%s does not measure ledgerd:\n%s", s.Name, records)
		}
	}
}

// A peer can be stopped while nobody reads what it publishes, and who publishes is told.
func TestPeersAreStoppedWhileSubscribersHang(t *testing.T) {
	for _, p := range peer.Peers {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			s, err := p.Start(t.Context(), peer.Config{Self: self, Dir: t.TempDir(), Messages: slices.Repeat([][]byte{literal(0)}, 1000)})
			if errors.As(err, new(*proc.AbsentError)) {
				t.Skip(err)
			}
			must(t, err)
			subscriber, err := s.Dial(t.Context())
			must(t, err)
			defer subscriber.Close()
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				for range 100 { // of which sooner or later one waits
					if s.Publish() != nil {
						return
					}
				}
			}()
			must(t, s.Stop())
			<-stopped
		})
	}
}
