package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"ledgerd/engine"
	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/source/file"
	"ledgerd/snapshot/vfs"
)

// exportBufferBytes is how much of an export is written at once.
const exportBufferBytes = 1 << 20

type exportCommand struct {
	DataDir string `help:"Directory of the node whose ledger is exported. The node must not be running." default:"./data"`
	Format  string `help:"ndjson: event lines; binary: an event file, smaller and faster. file: reads both." enum:"ndjson,binary" default:"ndjson"`
	Output  string `help:"File to write, - is standard output. The file appears when it is complete, and must not exist." placeholder:"FILE" default:"-"`
	Force   bool   `help:"Replace the file of --output, if there is one, when the new one is complete." env:"-"`
	quietFlag
}

// Validate checks what the flags' types cannot.
func (c *exportCommand) Validate() error {
	if c.Output == "" {
		return errors.New("--output must name a file, or be - for standard output")
	}
	return nil
}

// Run writes what the data directory holds.
func (c *exportCommand) Run(ctx context.Context, s *streams) error {
	if err := checkDataDir(c.DataDir); err != nil {
		return err
	}
	if err := c.isFree(); err != nil {
		return &usageError{err}
	}
	x := &exportWriter{binary: c.Format == "binary"}
	err := c.create(s.out, func(out io.Writer) error {
		return x.writeAll(out, func() error { return cmp.Or(c.export(ctx, s, x), ctx.Err()) })
	})
	if err != nil {
		return fmt.Errorf("cannot export %s: %w", c.DataDir, err)
	}
	fmt.Fprintf(s.err, "exported %d accounts, %d mints and %d blocks up to slot %d\n", x.accounts, x.mints, x.blocks, x.slot)
	if x.gaps > 0 {
		fmt.Fprintf(s.err, "gaps in the ledger: %d; only file:PATH?gaps=allow reads the export\n", x.gaps)
	}
	return nil
}

// export writes the events that rebuild the ledger. It tells how far it is in accounts: of others than the newest snapshot has it knows not how many.
func (c *exportCommand) export(ctx context.Context, s *streams, x *exportWriter) error {
	written := &meter{phase: "writing accounts"}
	if store, infos, err := snapshots(c.DataDir); err == nil && len(infos) > 0 {
		if newest, err := store.Open(infos[0]); err == nil { // what is wrong with it the engine says
			written.total = newest.Meta().Accounts
		}
	}
	dir, err := datadir.Open(c.DataDir)
	if err != nil {
		return err
	}
	defer dir.Close() // nothing was written to it
	defer c.show(s, written.progress)()
	log := slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return engine.Export(ctx, dir, log, func(e ledger.Event) error {
		if base, ok := e.(*ledger.BaseState); ok {
			written.done.Add(uint64(len(base.Accounts)))
		}
		return x.write(e)
	})
}

// create has fill write the output. A regular file gets its name when it is complete; it then survives a crash.
func (c *exportCommand) create(standard io.Writer, fill func(io.Writer) error) error {
	if c.Output == "-" {
		return fill(standard)
	}
	if info, err := os.Stat(c.Output); err == nil && !info.Mode().IsRegular() { // a pipe or a device
		f, err := os.OpenFile(c.Output, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(fill(f), f.Close())
	}
	return replaceFile(c.Output, func(f vfs.File) error {
		return cmp.Or(fill(io.NewOffsetWriter(f, 0)), c.isFree())
	})
}

// isFree returns an error if the export would replace a file and is not told to.
func (c *exportCommand) isFree() error {
	if info, err := os.Stat(c.Output); err == nil && info.Mode().IsRegular() && c.Output != "-" && !c.Force {
		return fmt.Errorf("%s exists: --force replaces it", c.Output)
	}
	return nil
}

// exportWriter writes events in one of the two forms and counts them.
type exportWriter struct {
	out    *bufio.Writer
	binary bool
	events *codec.EventWriter // with binary
	line   []byte
	any    bool // an event was written, or a part of one

	accounts, mints, blocks, gaps int
	slot                          ledger.Slot // the highest
}

// writeAll writes what export emits by write.
func (x *exportWriter) writeAll(out io.Writer, export func() error) (err error) {
	x.out = bufio.NewWriterSize(out, exportBufferBytes)
	if x.binary {
		x.events, err = codec.NewEventWriter(x.out)
	}
	if err == nil {
		err = export()
	}
	if err != nil {
		x.writePartialEvent()
		return err
	}
	return x.out.Flush()
}

func (x *exportWriter) write(e ledger.Event) error {
	x.any = true
	x.count(e)
	if x.binary {
		return x.events.Write(e)
	}
	x.line = file.AppendEventLine(x.line[:0], e)
	if len(x.line) > file.MaxLineBytes {
		return fmt.Errorf("an event at slot %d takes a line of %d bytes, more than a line may have: use --format binary", x.slot, len(x.line))
	}
	_, err := x.out.Write(x.line)
	return err
}

func (x *exportWriter) count(e ledger.Event) {
	switch e := e.(type) {
	case *ledger.Block:
		if x.blocks > 0 && e.ParentSlot != x.slot {
			x.gaps++
		}
		x.blocks++
		x.slot = e.Slot
	case *ledger.BaseState:
		x.accounts += len(e.Accounts)
		x.mints += len(e.Mints)
		if x.blocks == 0 {
			x.slot = e.Slot
		}
	}
}

// writePartialEvent ends the output inside an event, so that no reader takes it for a whole export. An empty
// one is refused as it is. The export has failed already: an error here adds nothing.
func (x *exportWriter) writePartialEvent() {
	if !x.any {
		return
	}
	beginning := `{"type":`
	if x.binary {
		beginning = "\x01" // the length of a frame
	}
	x.out.WriteString(beginning)
	x.out.Flush()
}
