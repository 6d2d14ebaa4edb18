// Package source says where blocks come from. Each kind of source is a package of its own
// below this one; they share nothing but the events they emit.
//
// A [Source] emits events in the order it learned them and never decides about forks. It
// owns no state between runs: what it needs to go on comes with the point to resume from.
package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/file"
	"ledgerd/engine/source/sim"
)

// Source emits what happens on a ledger.
type Source interface {
	// Info says what the sequencer has to know of the source. It never changes.
	Info() ledger.SourceInfo
	// Run emits events until ctx ends (it returns ctx.Err()), the input ends (nil), emit
	// fails (its error) or the source does. from is nil on a fresh start.
	Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error
	// Peers returns how many upstream nodes are connected now. Any goroutine may ask.
	Peers() int
}

// Open returns the source of a specification: "sim:PARAMETERS", "file:PATHS", or nil for "none",
// which means to serve what the data directory holds and to run nothing.
// Every error is one line about the specification, or about a file it names.
func Open(spec string, log *slog.Logger) (Source, error) {
	if spec == "none" {
		return nil, nil
	}
	kind, rest, hasKind := strings.Cut(spec, ":")
	if !hasKind {
		return nil, errors.New("a source is sim:PARAMETERS, file:PATHS or none")
	}
	// A nil pointer must not become an interface that is not nil: hence no bare return of calls.
	switch kind {
	case "sim":
		s, err := sim.Open(rest)
		if err != nil {
			return nil, err
		}
		return s, nil
	case "file":
		s, err := file.Open(rest, log)
		if err != nil {
			return nil, err
		}
		return s, nil
	case "rpc", "geyser":
		return nil, fmt.Errorf("this build does not offer the source %s: it follows no live node; use sim:, file: or none", kind)
	}
	return nil, fmt.Errorf("no source %q: there are sim:PARAMETERS, file:PATHS and none", kind)
}
