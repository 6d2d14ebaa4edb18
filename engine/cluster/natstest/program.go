package natstest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"ledgerd/bench/proc/proctest"
)

// program returns the path of the nats-server that the module in bench/peer/nats pins, in its variant with short elections.
// LEDGERD_NATS_TOOL=nats-server selects the plain one, and the path of a program that one. The go command builds it once and keeps it.
var program = sync.OnceValues(func() (string, error) {
	tool := cmp.Or(os.Getenv("LEDGERD_NATS_TOOL"), "hasty")
	if filepath.IsAbs(tool) {
		return tool, nil
	}
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the module: %w", err)
	}
	return proctest.Tool(filepath.Join(filepath.Dir(string(module)), "bench", "peer", "nats"), tool)
})

// Program returns the path of the pinned nats-server.
func Program(t testing.TB) string {
	t.Helper()
	path, err := program()
	must(t, err)
	return path
}
