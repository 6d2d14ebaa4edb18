package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// process is a ledgerd of its own.
type process struct {
	*exec.Cmd
	base      string
	out, errs *transcript
}

// spawn starts this test binary as ledgerd and waits until it is ready.
func spawn(t testing.TB, args ...string) *process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}, args...)
	p := &process{Cmd: exec.CommandContext(t.Context(), binary, args...), out: newTranscript(), errs: newTranscript()}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stdout, p.Stderr = p.out, p.errs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	m := p.out.await(t, `REST +(http://\S+/api)/status(?s:.*)operators +(http://\S+)/metrics`)
	p.base = m[1]
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if status, _ := get(t, m[2]+"/readyz"); status == http.StatusOK {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready:\n%s", p.errs)
		}
	}
}

// end sends a signal and returns how the process ended.
func (p *process) end(t *testing.T, signal syscall.Signal) *os.ProcessState {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = p.Process.Kill()
		<-ended
		t.Fatalf("the process did not end within 10 s of %v:\n%s", signal, p.errs)
	}
	return p.ProcessState
}

func (p *process) nodeID(t *testing.T) string {
	t.Helper()
	_, body := get(t, p.base+"/status")
	var status struct {
		NodeInfo struct {
			NodeID string `json:"node_id"`
		} `json:"node_info"`
	}
	if err := json.Unmarshal(body, &status); err != nil || status.NodeInfo.NodeID == "" {
		t.Fatalf("status %s: %v", body, err)
	}
	return status.NodeInfo.NodeID
}

func TestProcessSurvivesSignals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := "sim:accounts=300,slot_time=2ms,fork_rate=0.2"
	id := ""
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT} {
		p := spawn(t, "--data-dir", dir, "--source", source)
		if again := p.nodeID(t); id == "" {
			id = again
		} else if again != id {
			t.Errorf("node_id %s became %s", id, again)
		}
		state := p.end(t, signal)
		switch {
		case signal == syscall.SIGKILL:
			if state.ExitCode() != -1 {
				t.Errorf("%v: %v", signal, state)
			}
		case state.ExitCode() != exitOK:
			t.Errorf("exit code %d after %v, want 0:\n%s", state.ExitCode(), signal, p.errs)
		}
	}
}

// A second node on the directory of a living one is refused, and of a killed one is not.
func TestProcessHoldsItsDirectory(t *testing.T) {
	dir := t.TempDir()
	p := spawn(t, "--data-dir", dir, "--source", "none")
	second := begin(t, "--data-dir", dir, "--source", "none")
	if code := <-second.code; code != exitFailure {
		t.Errorf("a second node on the directory: exit code %d, want %d", code, exitFailure)
	}
	p.end(t, syscall.SIGKILL)
	third := start(t, "--data-dir", dir, "--source", "none")
	if code := third.stop(); code != exitOK {
		t.Errorf("after a kill: exit code %d, want 0:\n%s", code, third.errs)
	}
}
