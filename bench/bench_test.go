package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/cluster/natstest"
)

// asPeer has the test binary be a peer, as ledgerbench is one.
const asPeer = "peer"

// program is the ledgerd that all tests start.
var program string

func TestMain(m *testing.M) { os.Exit(begin(m)) }

func begin(m *testing.M) int {
	if len(os.Args) == 3 && os.Args[1] == asPeer {
		if err := peer.Serve(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return 0
	}
	dir, err := os.MkdirTemp("", "ledgerd-bench-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if program, err = proc.Build(dir); err != nil {
		panic(err)
	}
	return m.Run()
}

// sampled are the scenarios that every run of the tests measures; all are measured where LEDGERD_BENCH_ALL is set (make bench-once).
var sampled = []string{"account", "latency", "ingest"}

// Each scenario, small and short, measures every figure that its goals ask for, ledgerd's and the peers'; what it verifies meanwhile holds.
func TestScenariosMeasureWhatTheirGoalsAskFor(t *testing.T) {
	if err := os.Symlink(natstest.Program(t), filepath.Join(filepath.Dir(program), "nats-server")); err != nil {
		t.Fatal(err)
	}
	for i := range Scenarios {
		s := &Scenarios[i]
		t.Run(s.Name, func(t *testing.T) {
			if os.Getenv("LEDGERD_BENCH_ALL") == "" && !slices.Contains(sampled, s.Name) {
				t.Skip("make bench-once measures it")
			}
			t.Parallel()
			var records bytes.Buffer
			r := &Run{
				Ledgerd: program, Self: []string{os.Args[0], asPeer}, Dir: t.TempDir(), Rounds: 1, Duration: 900 * time.Millisecond, Scale: 0.01, Peers: true,
				Progress: t.Output(), Out: report.NewWriter(&records, nil),
			}
			if err := r.Do(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			found, err := report.Read(records.Bytes(), s.Name)
			if err != nil {
				t.Fatal(err)
			}
			for i := range Goals {
				g := &Goals[i]
				if g.Scenario == s.Name && found.Judge(g).Verdict == report.Absent && !strings.Contains(records.String(), "left out") {
					t.Errorf("%s is not measured", g.What())
				}
			}
			if left, err := os.ReadDir(r.Dir); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v behind (%v)", left, err)
			}
		})
	}
}

func TestGoalsAreOfScenariosThatAre(t *testing.T) {
	is := func(name string) bool {
		return slices.ContainsFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
	}
	for i := range Goals {
		g := &Goals[i]
		if !is(g.Scenario) || g.OfScenario != "" && !is(g.OfScenario) {
			t.Errorf("%s is of scenario %q, which is none", g.What(), g.Scenario)
		}
	}
}
