// Package source says where blocks come from. Each kind of source is a package of its own
// below this one; they share nothing but the events they emit.
//
// A [ledger.Source] emits events in the order it learned them and never decides about forks. It
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
	"ledgerd/engine/source/geyser"
	"ledgerd/engine/source/rpc"
	"ledgerd/engine/source/sim"
	"ledgerd/engine/source/upstream"
)

// Options are what a source is told besides its specification.
type Options struct {
	Log *slog.Logger
	// SkipVotes: vote transactions are not wanted. A source that can leave them out, as one that
	// subscribes to transactions can, does not ask for them; others may show them all the same.
	SkipVotes bool
	// Filter selects the accounts that are held; nil: all. A source shows all the same, unless its specification says otherwise.
	Filter *ledger.Filter
	// Data are the programs whose accounts are held with their data; nil: none. A source tells the data of no others.
	Data *ledger.DataPrograms
}

// Open returns the source of a specification: "sim:PARAMETERS", "file:PATHS", "rpc:URL", "geyser:URL", or nil
// for "none", which means to serve what the data directory holds and to run nothing.
// Every error is one line about the specification, or about a file it names.
func Open(spec string, o Options) (ledger.Source, error) {
	if spec == "none" {
		return nil, nil
	}
	kind, rest, hasKind := strings.Cut(spec, ":")
	if !hasKind {
		return nil, errors.New("a source is sim:PARAMETERS, file:PATHS, rpc:URL, geyser:URL or none")
	}
	var s ledger.Source
	var err error
	switch kind {
	case "sim":
		s, err = sim.Open(rest)
	case "file":
		s, err = file.Open(rest, o.Log)
	case "rpc":
		s, err = openRPC(rest, o)
	case "geyser":
		s, err = openGeyser(rest, o)
	default:
		return nil, fmt.Errorf("no source %q: there are sim:PARAMETERS, file:PATHS, rpc:URL, geyser:URL and none", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%s source: %w", kind, err) // s may hold a nil pointer
	}
	if holder, ok := s.(interface{ HoldData(of *ledger.DataPrograms) }); ok {
		holder.HoldData(o.Data)
	}
	return s, nil
}

// openRPC opens a node that is asked.
func openRPC(spec string, o Options) (*rpc.Source, error) {
	c, err := rpc.ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	c.Logger, c.Data, c.Filter = o.Log, o.Data, o.Filter
	return rpc.New(c), nil
}

// openGeyser opens a stream and, where the specification has rpc=URL, who fills its gaps.
func openGeyser(spec string, o Options) (ledger.Source, error) {
	c, calls, err := geyser.ParseSpec(spec, o.Filter)
	if err != nil {
		return nil, err
	}
	c.Logger, c.SkipVotes, c.Data = o.Log, c.SkipVotes || o.SkipVotes, o.Data
	if calls == "" {
		if !c.WholeData {
			o.Log.Info("whether mints with extensions scale their amounts stays unknown: the stream is asked for headers and nobody for the rest (see rpc= and data=full)")
		}
		return geyser.New(c), nil
	}
	node, err := openRPC(calls, o)
	if err != nil {
		return nil, fmt.Errorf("rpc=: %w", err)
	}
	c.Filler = node
	return &filled{geyser.New(c), node}, nil
}

// filled is a stream whose node can be asked as well.
type filled struct {
	*geyser.Source
	calls *rpc.Source // it fills gaps, and is asked for accounts
}

// Run follows the stream.
func (f *filled) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	defer f.calls.CloseIdle()
	return f.Source.Run(ctx, from, emit)
}

// Calls returns the figures of the way to the node that is asked.
func (f *filled) Calls() upstream.Snapshot { return f.calls.Upstream() }

// Fetch asks the node for accounts as they stand at a level.
func (f *filled) Fetch(ctx context.Context, keys []ledger.Pubkey, level ledger.Commitment) (*ledger.BaseState, error) {
	return f.calls.Fetch(ctx, keys, level)
}
