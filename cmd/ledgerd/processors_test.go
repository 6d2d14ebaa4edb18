package main

import (
	"runtime"
	"testing"
)

func TestNodeHasOneProcessorMoreThanCores(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	for name, tt := range map[string]struct {
		set  string // GOMAXPROCS in the environment
		want int
	}{
		"by default":           {"", before + 1},
		"as an operator wants": {"2", before}, // the runtime has read the variable at its start
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", tt.set)
			cores, restore := addProcessor()
			if now := runtime.GOMAXPROCS(0); now != tt.want || cores != before {
				t.Errorf("%d cores, %d processors; want %d and %d", cores, now, before, tt.want)
			}
			restore()
			if now := runtime.GOMAXPROCS(0); now != before {
				t.Errorf("%d processors are left, want %d as before", now, before)
			}
		})
	}
}
