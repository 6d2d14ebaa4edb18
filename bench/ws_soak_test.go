package bench

import (
	"strings"
	"testing"
	"time"
)

// A short soak with a small crowd finds no fault, and all that it looks at was there.
func TestSoakFindsNothingWrong(t *testing.T) {
	t.Parallel()
	env := &Env{Ledgerd: program(t, "ledgerd"), Dir: t.TempDir(), Duration: 4 * time.Second, Scale: 0.05, Progress: t.Output()}
	r, err := (&soakRun{env: env, patience: 0.02}).run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if faults := r.median("whole run", "faults"); faults != 0 {
		t.Errorf("%v faults:\n%s", faults, strings.Join(r.Notes, "\n"))
	}
	for _, name := range []string{"joined", "resumed", "reset by the client", "answers compared"} {
		if r.median("whole run", name) == 0 {
			t.Errorf("nothing was %s", name)
		}
	}
	if got := r.median("last quarter", "connections"); got == 0 {
		t.Error("nobody was there")
	}
	if got := r.median("after all have gone", "goroutines"); got == 0 {
		t.Error("no goroutines were counted")
	}
}
