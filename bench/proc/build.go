package proc

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build returns the ledgerd of the module that the working directory is in. The go command builds it once for all who ask, and keeps it.
func Build() (program string, err error) {
	said, err := exec.Command("go", "tool", "-n", "ledgerd").Output()
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
