package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestProgressOnATerminalEndsWithWhatIsDone(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out)
	p.terminal = true // as if it were one
	p.begin("1 of 2: account")
	fmt.Fprintln(p, "round 1")
	if got, want := out.String(), clearLine+"1 of 2: account, 0s"+clearLine+"round 1\n"+clearLine+"1 of 2: account, 0s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.end()
	if !strings.HasSuffix(out.String(), clearLine) {
		t.Errorf("the line is left: %q", out.String())
	}
}

func TestProgressElsewhereIsLines(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out)
	p.begin("1 of 2: account")
	fmt.Fprintln(p, "round 1")
	p.end()
	if out.String() != "round 1\n" {
		t.Errorf("got %q", out.String())
	}
}
