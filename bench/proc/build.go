package proc

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build builds ledgerd from the module that the working directory is in, into a directory, and
// returns the program.
func Build(dir string) (program string, err error) {
	program = filepath.Join(dir, "ledgerd")
	if said, err := exec.Command("go", "build", "-o", program, "ledgerd/cmd/ledgerd").CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build ledgerd: %w: %s", err, said)
	}
	return program, nil
}

// Find returns the program of a name that lies beside another one, or else that on the search path.
func Find(name, beside string) (string, error) {
	if found, err := exec.LookPath(filepath.Join(filepath.Dir(beside), name)); err == nil {
		return found, nil
	}
	return exec.LookPath(name)
}
