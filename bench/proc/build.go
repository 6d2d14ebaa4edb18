package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build returns the ledgerd of the module that the working directory is in. The go command builds it once for all who ask, and keeps it: in the
// way that programs are built in, whatever those who ask are built for, such as the race detector.
func Build() (program string, err error) {
	build := exec.Command("go", "tool", "-n", "ledgerd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath "+os.Getenv("GOFLAGS"))
	said, err := build.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("cannot build ledgerd: %w: %s", err, failed.Stderr)
	}
	return strings.TrimSpace(string(said)), err
}

// Find returns the program of a name that lies beside another one, or else that on the search path, or else that where Debian keeps
// servers.
func Find(name, beside string) (found string, err error) {
	for _, place := range []string{filepath.Join(filepath.Dir(beside), name), name, filepath.Join("/usr/sbin", name)} {
		if found, err = exec.LookPath(place); err == nil {
			return found, nil
		}
	}
	return "", err
}
