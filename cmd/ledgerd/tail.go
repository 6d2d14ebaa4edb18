package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	clientlib "ledgerd/httpd/client"
	"ledgerd/snapshot/vfs"
)

// tail prints what a stream tells, and keeps in a file how far that is. What it prints is written at the end of each block, and then the file:
// so of what is in the file nothing is missing, and after a crash a few lines may come again.
type tail struct {
	*subCommand
	out  *bufio.Writer
	errs io.Writer

	known     bool   // everything up to seq was printed
	seq, kept uint64 // kept is what the file holds
	stop      context.CancelFunc
	failed    error // why it was stopped
}

// newTail returns one that goes on after a number, if there is any. It prints the heading of a table.
func newTail(c *subCommand, s *streams, after *uint64, stop context.CancelFunc) *tail {
	t := &tail{subCommand: c, out: bufio.NewWriterSize(s.out, 64<<10), errs: s.err, stop: stop}
	if after != nil {
		t.known, t.seq, t.kept = true, *after, *after
	}
	if c.Output == "table" {
		fmt.Fprintf(t.out, tailColumns, "SLOT", "SEQ", "ACCOUNT", "LAMPORTS", "OWNER", "")
	}
	return t
}

const tailColumns = "%12v %14v %-44s %20v %-44s%s\n"

func (t *tail) handler() clientlib.Handler {
	return clientlib.Handler{
		Start: t.start,
		Ready: func() {
			t.known = true
			t.settle()
		},
		Update: t.update,
		Rollback: func(r clientlib.Rollback) {
			if t.Output == "json" {
				t.printJSON("rollback", r)
				return
			}
			fmt.Fprintf(t.out, "%12d %14d undoes the blocks from %d down to this one\n", r.ToSlot, r.Seq, r.FromSlot)
		},
		SlotEnd:   func(_, seq uint64) { t.reach(seq) },
		Heartbeat: func(_, seq uint64) { t.reach(seq) },
		Disconnected: func(why error, wait time.Duration) {
			t.settle()
			fmt.Fprintf(t.errs, "%s; the next try is in %v\n", printable(why.Error()), wait.Round(time.Millisecond))
		},
	}
}

// start begins anew. Where something was printed before, there is a gap.
func (t *tail) start(at clientlib.Start) {
	if t.known {
		if t.FailOnGap {
			t.fail(fmt.Errorf("%w update %d; it stands at %d", errGap, t.seq, at.Seq))
			return
		}
		fmt.Fprintf(t.errs, "a gap: %v update %d; what is printed from here on follows %d\n", errGap, t.seq, at.Seq)
	}
	t.known, t.seq = !at.Snapshot, at.Seq
	if t.Output == "json" {
		t.printJSON("start", at)
	}
}

func (t *tail) update(u clientlib.Update) {
	if t.failed != nil {
		return // the connection ends a little later
	}
	t.seq = max(t.seq, u.Seq)
	if t.Output == "json" {
		t.printJSON("account_update", u)
		return
	}
	token := ""
	if u.Token != nil {
		token = fmt.Sprintf(" %s of %s", u.Token.Amount, u.Token.Mint)
	}
	fmt.Fprintf(t.out, tailColumns, u.Slot, u.Seq, printable(u.Pubkey), u.Lamports, printable(u.Owner), printable(token))
}

// printJSON prints an object with its type first, as the node sends it.
func (t *tail) printJSON(kind string, frame any) {
	text, err := json.Marshal(frame)
	if err != nil {
		panic(err) // frames are of numbers and texts
	}
	fmt.Fprintf(t.out, "{\"type\":%q,%s\n", kind, printable(string(text[1:])))
}

// reach notes that all up to a number was told.
func (t *tail) reach(seq uint64) {
	t.seq = max(t.seq, seq)
	t.settle()
}

// settle writes what was printed, and then the number of the newest that it holds all up to.
func (t *tail) settle() {
	if t.failed != nil {
		return
	}
	if err := t.out.Flush(); err != nil {
		t.fail(fmt.Errorf("cannot print: %w", err))
		return
	}
	if t.Resume == "" || !t.known || t.seq == t.kept {
		return
	}
	f, err := vfs.Replace(vfs.Disk{}, t.Resume, func(f vfs.File) error {
		_, err := fmt.Fprintln(io.NewOffsetWriter(f, 0), t.seq)
		return err
	})
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.fail(fmt.Errorf("cannot keep how far that is: %w", err))
	}
	t.kept = t.seq
}

// fail ends the stream.
func (t *tail) fail(why error) {
	t.failed = why
	t.stop()
}
