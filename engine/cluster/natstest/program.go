package natstest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// program returns the path of the nats-server that the module in bench/peer/nats pins, in its variant with short elections.
// LEDGERD_NATS_TOOL=nats-server selects the plain one, and the path of a program that one. The go command builds it once and keeps it.
var program = sync.OnceValues(func() (string, error) {
	tool := cmp.Or(os.Getenv("LEDGERD_NATS_TOOL"), "hasty")
	if filepath.IsAbs(tool) {
		return tool, nil
	}
	module, err := output("go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	return output("go", "tool", "-C", filepath.Join(filepath.Dir(module), "bench", "peer", "nats"), "-n", tool)
})

// Program returns the path of the pinned nats-server.
func Program(t testing.TB) string {
	t.Helper()
	path, err := program()
	must(t, err)
	return path
}

func output(name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	var failed bytes.Buffer
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("cannot run %s: %w: %s", command, err, &failed)
	}
	return strings.TrimSpace(string(out)), nil
}
