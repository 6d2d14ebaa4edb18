package file

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// Source is a list of recorded inputs. It holds no open file between runs.
type Source struct {
	info   ledger.SourceInfo
	inputs []input
	stdin  io.Reader            // what "-" reads
	data   *ledger.DataPrograms // whose accounts are told with their data
	log    *slog.Logger
	bytes  int64        // of all inputs; 0: one of them has no size
	read   atomic.Int64 // bytes of them
}

// Open returns the source for what follows "file:" in its specification: paths between
// commas, "-" for standard input, then "?gaps=allow" if missing parents may be passed over.
// Files that are missing or cannot be opened are an error here; what is wrong with their
// content is an error of Run.
func Open(spec string, log *slog.Logger) (*Source, error) {
	paths, gapsAllowed, err := parseSpec(spec)
	if err != nil {
		return nil, err
	}
	s := &Source{
		stdin: os.Stdin,
		log:   log,
		info: ledger.SourceInfo{
			Name:        "file:" + spec,
			GapsAllowed: gapsAllowed,
			// Blocks of a node arrive finalized, so that only event lines feel this.
			FinalityByDepth: true,
		},
	}
	for _, p := range paths {
		inputs, err := expand(p)
		if err != nil {
			return nil, err
		}
		s.inputs = append(s.inputs, inputs...)
	}
	for _, in := range s.inputs {
		if in.stream {
			s.bytes = 0
			break
		}
		s.bytes += in.bytes
	}
	return s, nil
}

// HoldData has the source tell the data of accounts that these programs own. It is called before Run.
func (s *Source) HoldData(of *ledger.DataPrograms) { s.data = of }

// Progress returns how many bytes of how many were read, packed as they are; size is 0 where nobody knows.
func (s *Source) Progress() (read, size int64) { return s.read.Load(), s.bytes }

// Info says what the sequencer has to know of the source.
func (s *Source) Info() ledger.SourceInfo { return s.info }

// Run emits the events of all inputs in order. It returns nil at their end, ctx.Err() once
// ctx ends, the error of emit as it is, and else what is wrong with which file and where.
func (s *Source) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	out := &sink{emit: emit, from: from, log: s.log}
	if err := s.readAll(ctx, out); err != nil {
		return err
	}
	if out.isOther() && !s.info.GapsAllowed {
		return fmt.Errorf("the input has another block at slot %d than the finalized one that is held, or none: another ledger", from.Slot)
	}
	if out.basesHeldBack == 0 || out.sawBlock {
		return nil
	}
	// Base state alone: no block of this input can have changed it since it was ingested.
	if i := slices.IndexFunc(s.inputs, func(in input) bool { return in.stream }); i >= 0 {
		s.log.Warn("base state is not loaded again: the data directory holds blocks already and the input can be read only once",
			"input", s.inputs[i].name(), "resume_slot", uint64(from.Slot))
		return nil
	}
	return s.readAll(ctx, &sink{emit: emit})
}

func (s *Source) readAll(ctx context.Context, out *sink) error {
	done := int64(0)
	s.read.Store(done)
	for _, in := range s.inputs {
		err := s.readOne(ctx, in, out)
		switch {
		case out.failed != nil:
			return out.failed
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("cannot read %s: %w", in.name(), err)
		}
		done += in.bytes
		s.read.Store(done) // also of one that was passed over
	}
	return nil
}

// readOne emits the events of one input.
func (s *Source) readOne(ctx context.Context, in input, out *sink) error {
	c, err := openContent(ctx, in, s.stdin, &s.read)
	if err != nil {
		return err
	}
	defer c.Close()
	form, err := c.form()
	if err != nil {
		return err
	}
	data := &nodejson.DataDecoder{Held: s.data}
	defer data.Close()
	switch form {
	case jsonValues:
		return (&jsonReader{in: in, log: s.log, data: data, out: out}).run(ctx, c.r)
	case eventLines:
		return (&lineReader{out: out, skipped: c.skippedLines, data: data}).run(ctx, c.r)
	case eventFile:
		return readEventFile(ctx, c.r, out)
	case validatorStream:
		return readValidatorStream(ctx, c.r, in.name(), s.data, out, s.log)
	}
	if in.inFolder {
		s.log.Warn("file skipped: its content is none of the recorded forms", "file", in.path)
		return nil
	}
	return errUnknownForm
}
