package main

import (
	"strings"
	"testing"

	"ledgerd/bench"
)

func TestBadRESTFlagsExitWithTwo(t *testing.T) {
	for _, command := range []string{"rest", "mixed"} {
		for name, flags := range map[string]string{
			"too many connections": "--connections=10001", "no such keys": "--keys=tea", "a share above one": "--misses=1.5",
			"pipelining without connections": "--pipeline=4 --keep-alive=false", "negative rate": "--rate=-1", "no such scenario": "--scenario=nope",
		} {
			var s said
			args := append([]string{command, "--ledgerd", ledgerd(t)}, strings.Fields(flags)...)
			if code := run(t.Context(), args, s.streams()); code != exitUsage || s.err.Len() == 0 {
				t.Errorf("%s %s: exit code %d, said %q, want %d and why", command, name, code, s.err.String(), exitUsage)
			}
		}
	}
}

func TestRESTFlagsAreHandedOn(t *testing.T) {
	for _, tt := range []struct {
		flags restFlags
		want  bench.RESTOptions
	}{
		{restFlags{Connections: 64, Pipeline: 1, KeepAlive: true, Keys: "uniform"}, bench.RESTOptions{Connections: 64}},
		{restFlags{Connections: 3, Pipeline: 1, Keys: "zipf", Rate: 5, Misses: 0.5, Mix: true}, bench.RESTOptions{Connections: 3, Fresh: true, Zipf: true, Rate: 5, Misses: 0.5, Mix: true}},
		{restFlags{Connections: 3, Pipeline: 16, KeepAlive: true}, bench.RESTOptions{Connections: 3, Depth: 16}},
	} {
		if got, err := tt.flags.options(); err != nil || got != tt.want {
			t.Errorf("%+v: %+v, %v, want %+v", tt.flags, got, err, tt.want)
		}
	}
}

func TestRESTHelpNamesEveryScenario(t *testing.T) {
	var s said
	if code := run(t.Context(), []string{"rest", "--help"}, s.streams()); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, scenario := range bench.REST(bench.RESTOptions{}) {
		if !strings.Contains(s.out.String(), scenario.Name+": ") {
			t.Errorf("help does not name %s:\n%s", scenario.Name, s.out.String())
		}
	}
}
