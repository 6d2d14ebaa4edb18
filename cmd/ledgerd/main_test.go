package main

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"ledgerd/engine/ledger/ledgertest"
)

var must, readFile = ledgertest.Must, ledgertest.ReadFile

// asProgram in the environment makes the test binary be ledgerd itself, so that tests can
// start real processes of it.
const asProgram = "LEDGERD_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	if shell := os.Getenv(inNetwork); shell != "" {
		fmt.Fprintln(os.Stderr, becomeShell(shell))
		os.Exit(exitFailure)
	}
	_ = flag.Set("test.parallel", "6") // they wait for other processes much of the time; -parallel still overrides it
	testscript.Main(leakChecked{m}, map[string]func(){"ledgerd": main})
}

// leakChecked runs all tests and fails if a goroutine is left after them.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() (code int) {
	goleak.VerifyTestMain(m.M,
		goleak.Cleanup(func(exit int) { code = exit }),
		// fasthttp keeps its clock for the life of the process, and lets the cleaner of a
		// stopped worker pool sleep to its end.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
	return code
}
