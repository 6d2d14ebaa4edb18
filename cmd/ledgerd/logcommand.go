package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// unfinishedCommit is what a torn tail means to an operator.
const unfinishedCommit = "the log ends in an unfinished commit (a running node, or a crash)"

type logCommand struct {
	Dump   logDumpCommand   `cmd:"" help:"Print the log, one record a line."`
	Verify logVerifyCommand `cmd:"" help:"Read all of the log and say whether it is whole."`
}

type logDumpCommand struct {
	DataDir string `help:"Directory of the node. It may be running." default:"./data"`
	From    uint64 `help:"Version of the first record; 0 is the oldest." default:"0" placeholder:"VERSION"`
	Limit   uint64 `help:"How many records to print; 0 is all." default:"0" placeholder:"N"`
}

// errEnough ends a dump at its limit.
var errEnough = errors.New("enough records")

// Run prints records as they are read.
func (c *logDumpCommand) Run(ctx context.Context, s *streams) error {
	if err := checkDataDir(c.DataDir); err != nil {
		return err
	}
	out := bufio.NewWriter(s.out)
	fmt.Fprintln(out, logHeading)
	var line []byte
	printed := uint64(0)
	end, err := wal.NewReader(vfs.Disk{}, datadir.LogDir(c.DataDir), ledger.Version(c.From)).Read(ctx, func(commit []wal.Entry) error {
		for i := range commit {
			if c.Limit > 0 && printed == c.Limit {
				return errEnough
			}
			if commit[i].Record.Version < ledger.Version(c.From) {
				continue // the commit began before it
			}
			line = appendLogLine(line[:0], &commit[i], i == len(commit)-1)
			if _, err := out.Write(line); err != nil {
				return err
			}
			printed++
		}
		return nil
	})
	_ = out.Flush()
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err == nil && end.Torn():
		fmt.Fprintln(s.err, unfinishedCommit)
	}
	return err
}

type logVerifyCommand struct {
	DataDir string `help:"Directory of the node. It may be running." default:"./data"`
	quietFlag
}

// logTotals is what a log holds.
type logTotals struct {
	records, commits, updates uint64
	blocks, rollbacks         uint64
	firstVersion, lastVersion ledger.Version
	firstSeq, nextSeq         ledger.Seq
	bytes                     uint64
	segments, segment         uint64 // how many, and the newest
}

// Run reads the whole log, from the oldest segment that is there.
func (c *logVerifyCommand) Run(ctx context.Context, s *streams) error {
	if err := checkDataDir(c.DataDir); err != nil {
		return err
	}
	meter := &meter{phase: "verifying the log", total: logBytes(c.DataDir)}
	stop := c.show(s, meter.progress)
	var totals logTotals
	read := func() (wal.End, error) {
		totals = logTotals{}
		return wal.NewReader(vfs.Disk{}, datadir.LogDir(c.DataDir), 0).Read(ctx, func(commit []wal.Entry) error {
			meter.done.Store(totals.bytes)
			return totals.add(commit)
		})
	}
	end, err := read()
	for errors.Is(err, wal.ErrMissing) { // a running node pruned it meanwhile
		end, err = read()
	}
	stop()
	totals.print(s.out)
	if err != nil {
		return err
	}
	if totals.records > 0 {
		fmt.Fprintf(s.out, "the newest record is %d, at slot %d\n", end.Version(), end.Slot())
	}
	if end.Torn() {
		fmt.Fprintln(s.out, unfinishedCommit)
	}
	if err := reachable(c.DataDir, totals.firstVersion); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "ok")
	return nil
}

// reachable returns an error unless a snapshot leads to the first record of the log, or that is the
// first there ever was. The log of a running node may have been pruned since it was read.
func reachable(dataDir string, first ledger.Version) error {
	if first == 1 {
		return nil
	}
	_, infos, err := snapshots(dataDir)
	switch {
	case err != nil:
		return err
	case first == 0 && len(infos) == 0:
		return nil // nothing was ever kept
	case first == 0:
		return fmt.Errorf("the log is empty, and the newest snapshot is of record %d", infos[0].Version)
	case len(infos) == 0 || infos[0].Version < first:
		return fmt.Errorf("the log begins at record %d, and no snapshot leads there", first)
	}
	return nil
}

// add counts a commit. The numbers of its updates must follow those before.
func (t *logTotals) add(commit []wal.Entry) error {
	t.commits++
	for i := range commit {
		e := &commit[i]
		r := e.Record
		if t.records == 0 {
			t.firstVersion, t.firstSeq = r.Version, r.FirstSeq
		} else if r.FirstSeq != t.nextSeq {
			return fmt.Errorf("record %d, in segment %d at byte %d, was written wrong: its updates are numbered from %d, not %d",
				r.Version, e.Segment, e.Offset, r.FirstSeq, t.nextSeq)
		}
		if e.Segment != t.segment {
			t.segments, t.segment = t.segments+1, e.Segment
		}
		t.records++
		t.bytes += uint64(e.SizeBytes)
		t.updates += uint64(len(r.Updates))
		t.lastVersion, t.nextSeq = r.Version, r.LastSeq()+1
		switch r.Kind {
		case ledger.BlockRecord:
			t.blocks++
		case ledger.RollbackRecord:
			t.rollbacks++
		}
	}
	return nil
}

func (t *logTotals) print(w io.Writer) {
	if t.records == 0 {
		fmt.Fprintln(w, "no records")
		return
	}
	fmt.Fprintf(w, "%d records, %d to %d, in %d commits: %d blocks, %d rollbacks, %d updates",
		t.records, t.firstVersion, t.lastVersion, t.commits, t.blocks, t.rollbacks, t.updates)
	if t.updates > 0 {
		fmt.Fprintf(w, ", seq %d to %d", t.firstSeq, t.nextSeq-1)
	}
	fmt.Fprintf(w, "\n%d bytes of records in %d segments\n", t.bytes, t.segments)
}

// The columns of a dump. Position and durable count bytes of the log from its beginning, offset
// those of the segment. A commit goes on while its records say more.
const (
	logHeading = "    position  segment:offset   version kind           slot hash                                         commit updates         seq      durable"
	logColumns = "%12d %15s %9d %-8s %10d %-44s %-6s %7d %11s %12d"
)

// appendLogLine appends the line of a record, newline included; last tells whether it is the
// last of its commit.
func appendLogLine(dst []byte, e *wal.Entry, last bool) []byte {
	r := e.Record
	commit, seq := "more", "-"
	if last {
		commit = "end"
	}
	if len(r.Updates) > 0 {
		seq = fmt.Sprintf("%d-%d", r.FirstSeq, r.LastSeq())
	}
	dst = fmt.Appendf(dst, logColumns, e.Position, fmt.Sprintf("%d:%d", e.Segment, e.Offset), r.Version,
		kindNames[r.Kind], r.Slot, r.Hash, commit, len(r.Updates), seq, e.Durable)
	switch {
	case r.Block != nil:
		dst = fmt.Appendf(dst, "  parent %d, %d transactions", r.Block.ParentSlot, len(r.Block.Transactions))
	case r.Base != nil:
		dst = fmt.Appendf(dst, "  %d accounts, %d mints", len(r.Base.Accounts), len(r.Base.Mints))
	case r.Kind == ledger.RollbackRecord:
		dst = fmt.Appendf(dst, "  from slot %d", r.FromSlot)
	case r.Kind == ledger.StatusRecord:
		dst = fmt.Appendf(dst, "  %s", r.Status)
	}
	return append(dst, '\n')
}

// kindNames are what a dump calls the kinds of records: the reader of the log lets no others through.
var kindNames = map[ledger.RecordKind]string{
	ledger.BlockRecord: "block", ledger.RollbackRecord: "rollback", ledger.StatusRecord: "status", ledger.BaseRecord: "base",
}
