package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
