package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// programs is where the programs of this module are built for the tests, one at a time.
var (
	programs string
	building sync.Mutex
)

func TestMain(m *testing.M) { os.Exit(withPrograms(m)) }

func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ledgerd-bench-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	programs = dir
	_ = flag.Set("test.parallel", "4") // they wait for servers much of the time; -parallel still overrides it
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "after all tests:", err)
		code = 1
	}
	return code
}

// program returns a program of this module, such as ledgerd, which the first test that asks
// for it builds.
func program(t *testing.T, name string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(programs, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if out, err := exec.Command("go", "build", "-o", path, "ledgerd/cmd/"+name).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("cannot build %s: %w\n%s", name, err, out))
	}
	return path
}
