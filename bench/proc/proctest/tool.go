// Package proctest builds the programs that tests start.
package proctest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Tool returns a program that the module of a directory names as a tool; "" is the working directory. The go command builds it once for all who
// ask, and keeps it: as programs are built, whatever those who ask are built for, such as the race detector.
func Tool(dir, name string) (program string, err error) {
	build := exec.Command("go", "tool", "-n", name)
	build.Dir = dir
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath "+os.Getenv("GOFLAGS"))
	said, err := build.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("cannot build %s: %w: %s", name, err, failed.Stderr)
	}
	return strings.TrimSpace(string(said)), err
}
