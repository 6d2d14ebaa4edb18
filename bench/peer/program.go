package peer

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ledgerd/bench/proc"
)

const (
	// startPatience is how long a peer may take to listen.
	startPatience = 20 * time.Second
	// endPatience is how long a peer may take to end.
	endPatience = 10 * time.Second
)

// startProgram starts a service, and waits until it listens. It gets an address, that of the server, and a directory of its own; words returns
// the arguments that follow the command, having written its configuration.
func (s *Server) startProgram(ctx context.Context, c *Config, command []string, in *os.File, words func(dir string) ([]string, error)) error {
	address, held, err := proc.FreeAddress()
	if err != nil {
		return err
	}
	defer held.Close() // then the program listens
	s.Address = address
	dir, err := s.tempDir(c, filepath.Base(command[len(command)-1]))
	if err != nil {
		return err
	}
	args, err := words(dir)
	if err != nil {
		return err
	}
	p, err := launch(ctx, proc.Command{Words: append(command, args...), Stdin: in}, startPatience, func(ctx context.Context, _ int) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address.String())
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return err
	}
	s.pids = append([]int{p.Pid()}, s.pids...)
	s.atStop(func() error { return end(p) })
	return nil
}

// versionOf returns what a program says that it is, "" if it does not.
func versionOf(ctx context.Context, program, flag string) string {
	said, _ := exec.CommandContext(ctx, program, flag).CombinedOutput()
	return strings.TrimSpace(string(said))
}

// launch starts a program, and tries something, time and again, until it works.
func launch(ctx context.Context, c proc.Command, patience time.Duration, try func(ctx context.Context, pid int) error) (*proc.Process, error) {
	p, err := proc.Launch(ctx, c)
	if err != nil {
		return nil, err
	}
	err = p.Until(ctx, patience, time.Millisecond, func(ctx context.Context) error { return try(ctx, p.Pid()) })
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s does not answer: %w", c.Words[0], err)
	}
	return p, nil
}

// end asks a process to end, and waits until it has.
func end(p *proc.Process) error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	return p.Stop(ctx, syscall.SIGTERM)
}
