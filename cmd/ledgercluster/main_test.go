package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// asProgram in the environment makes the test binary be ledgercluster itself.
const asProgram = "LEDGERCLUSTER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// What ends by itself is started again, and its output kept. Ctrl-C, a signal and a terminal that is closed end the cluster for good, from the
// outside in: nodes may say their last to the log.
func TestClusterRunsUntilASignalEndsItInOrder(t *testing.T) {
	for _, asked := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(asked) { // these tests run under nohup
			continue
		}
		dir := t.TempDir()
		began, ended := filepath.Join(dir, "began"), filepath.Join(dir, "ended")
		for _, program := range []string{"ledgerd", "nats-server"} {
			script := fmt.Sprintf("#!/bin/sh\ntrap 'echo %[1]s >> %[2]s; exit 0' TERM\necho began\necho on >&2\necho %[1]s >> %[3]s\n", program, ended, began) +
				"case \"$*\" in *'--role replica'*) [ -e $0.second ] || { touch $0.second; exit 3; };; esac\nwhile :; do sleep 0.01; done\n"
			must(t, os.WriteFile(filepath.Join(dir, program), []byte(script), 0o700))
		}
		p, err := proc.Launch(t.Context(), proc.Command{Env: append(os.Environ(), asProgram+"=1"), Words: []string{
			os.Args[0], "--dir", filepath.Join(dir, "data"), "--ledgerd", filepath.Join(dir, "ledgerd"), "--nats-server", filepath.Join(dir, "nats-server"),
			"--port", strconv.Itoa(freePorts(t)), "--ingesters", "1", "--replicas", "1", "--balancer", "none",
		}})
		must(t, err)
		must(t, p.Until(t.Context(), time.Minute, 10*time.Millisecond, func(context.Context) error {
			if content, _ := os.ReadFile(began); strings.Count(string(content), "\n") < 6 {
				return fmt.Errorf("began: %q", content)
			}
			return nil
		}))
		ledgertest.Contains(t, p.Out.String(), "replica-1 ended (exit status 3) and is started again", "what a person is told")
		ledgertest.Equal(t, string(ledgertest.ReadFile(t, filepath.Join(dir, "data", "logs", "replica-1.log"))), "began\non\nbegan\non\n", "the log of what ended")
		p.Signal(asked)
		_, err = p.Await(t.Context(), regexp.MustCompile("stopping\n"))
		must(t, err)
		p.Signal(syscall.SIGHUP) // the shell of a terminal that is closed sends one, and so does the kernel
		_, err = p.Await(t.Context(), regexp.MustCompile("stopping\nstopped\n"))
		must(t, err)
		<-p.Gone()
		ledgertest.Equal(t, p.State().ExitCode(), 0, "%v: the exit code", asked)
		ledgertest.Equal(t, string(ledgertest.ReadFile(t, ended)), strings.Repeat("ledgerd\n", 2)+strings.Repeat("nats-server\n", 3), "%v: what ended, in order", asked)
	}
}
