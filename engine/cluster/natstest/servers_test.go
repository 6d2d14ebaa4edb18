package natstest

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestServersComeBack kills each server in turn: the others answer, and it answers again when it was restarted.
func TestServersComeBack(t *testing.T) {
	s := Start(t, 3)
	for i := range 3 {
		s.Kill(i)
		s.WaitReady()
		s.Restart(i)
		s.WaitReady()
	}
}

// TestOneServerAlone starts one without a cluster.
func TestOneServerAlone(t *testing.T) {
	s := Start(t, 1)
	if len(s.URLs()) != 1 || s.Index("s0") != 0 || s.Index("other") != -1 {
		t.Fatalf("one server: %v", s.URLs())
	}
}
