package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/cluster/natstest"
)

// besideNATS returns ledgerd in a directory that holds the nats-server of the tests, too, where scenarios look for it first.
func besideNATS(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, program := range map[string]string{"ledgerd": program(t, "ledgerd"), "nats-server": natstest.Program(t)} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ledgerd")
}

func TestClusterScenariosNoteWhatTheyTime(t *testing.T) {
	t.Parallel()
	ledgerd := besideNATS(t)
	figures := map[string][]string{
		"cluster-rate":     {"updates", "CPU of the ingester", "CPU of the replica", "CPU of the nats-servers"},
		"cluster-lag":      {"p50", "p99", "CPU of the ingester"},
		"cluster-fresh":    {"start"},
		"cluster-failover": {failoverFigure},
	}
	for _, s := range Cluster() {
		if testing.Short() && s.Name != "cluster-rate" && s.Name != "cluster-failover" {
			continue // a sample: those that start every kind of node
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			r := run(t, s, Env{Ledgerd: ledgerd, Rounds: 1, Duration: 800 * time.Millisecond, Scale: 0.02})
			if len(r.Rows) == 0 || len(r.Goals) == 0 {
				t.Fatalf("%d rows, %d goals; notes: %q", len(r.Rows), len(r.Goals), r.Notes)
			}
			for i := range r.Rows {
				for _, name := range figures[s.Name] {
					if f := r.Rows[i].figure(name); len(f.Values) == 0 {
						t.Errorf("%s: %s is not noted", r.Rows[i].Subject, name)
					}
				}
			}
		})
	}
}

// Without nats-server the scenarios are left out by name.
func TestClusterIsLeftOutWithoutNATS(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, s := range Cluster() {
		env := &Env{Ledgerd: filepath.Join(t.TempDir(), "ledgerd"), Dir: t.TempDir(), Rounds: 1, Duration: time.Second, Scale: 0.02, Progress: t.Output()}
		r, err := s.Do(t.Context(), env)
		if err != nil || len(r.Rows) != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "there is no nats-server") {
			t.Errorf("%s: %+v, %v", s.Name, r, err)
		}
	}
}
