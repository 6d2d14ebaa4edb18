package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ledgerd/cmd/internal/call"
	"ledgerd/engine/source/unpack"
	clientlib "ledgerd/httpd/client"
	"ledgerd/snapshot/vfs"
)

// subCommand says what of a node's stream is printed, and how.
type subCommand struct {
	URL        string   `help:"The public listener of the node: http://HOST:PORT." default:"http://127.0.0.1:8080" name:"url" env:"-"`
	Wallet     names    `group:"Accounts, all by default:" help:"These wallets and their token accounts." placeholder:"PUBKEY,…" env:"-"`
	Program    names    `group:"Accounts, all by default:" help:"Accounts that these programs own." placeholder:"PUBKEY,…" env:"-"`
	Pubkey     names    `group:"Accounts, all by default:" help:"These accounts." placeholder:"PUBKEY,…" env:"-"`
	Commitment string   `help:"What is printed must have reached this level: processed, confirmed or finalized." enum:"processed,confirmed,finalized" default:"processed" env:"-"`
	Include    []string `help:"What updates tell beside the usual: token (of token accounts), data." enum:"token,data" placeholder:"token,data" env:"-"`
	Output     string   `help:"table, or json: an object a line." enum:"table,json" default:"table" env:"-"`
	Resume     *string  `help:"Keep in this file the number of the newest update that was printed, and go on after it." placeholder:"FILE" env:"-"`
	call.Flags
}

// names are public keys that a node checks: a flag with some may be given again.
type names []string

// UnmarshalText adds those of "KEY,KEY".
func (n *names) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		return errNoKeys
	}
	*n = append(*n, strings.Split(string(b), ",")...)
	return nil
}

// Validate checks what the flags' types cannot.
func (c *subCommand) Validate() error {
	if c.Resume != nil && *c.Resume == "" {
		return errors.New("--resume must name a file")
	}
	return nil
}

// maxNumberBytes is room for any number and the end of its line.
const maxNumberBytes = 32

// Run prints until ctx ends, or nobody reads any more.
func (c *subCommand) Run(ctx context.Context, s *streams) error {
	node, err := c.Node(c.URL)
	if err != nil {
		return &usageError{err}
	}
	after, err := c.kept()
	if err != nil {
		return &usageError{err}
	}
	closed := make(chan os.Signal, 1)
	signal.Notify(closed, syscall.SIGPIPE) // so that to write fails, and does not kill
	defer signal.Stop(closed)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t := newTail(c, s, after, stop)
	err = node.Stream(ctx, clientlib.Subscription{
		Wallets: c.Wallet, Programs: c.Program, Pubkeys: c.Pubkey, Commitment: clientlib.Commitment(c.Commitment),
		Tokens: slices.Contains(c.Include, "token"), Data: slices.Contains(c.Include, "data"), After: after,
	}, t.handler())
	switch t.settle(); {
	case errors.Is(t.failed, syscall.EPIPE):
		return nil
	case t.failed != nil:
		return t.failed
	case ctx.Err() != nil:
		return nil
	}
	if refused, ok := errors.AsType[*clientlib.StatusError](err); ok && refused.Status == http.StatusNotFound {
		err = fmt.Errorf("%w; the public listener is where --listen is", err)
	}
	return fmt.Errorf("%s tells nothing: %w", c.Asked(c.URL), err)
}

// kept returns the number in the file of --resume; nil: there is none yet. It refuses one that could not be replaced.
func (c *subCommand) kept() (*uint64, error) {
	if c.Resume == nil {
		return nil, nil
	}
	if err := mayHold(filepath.Dir(*c.Resume)); err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	text, err := unpack.ReadRegular(*c.Resume, maxNumberBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	seq, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("--resume: %s does not hold the number of an update", *c.Resume)
	}
	return &seq, nil
}

// tail prints what a stream tells, and keeps in a file how far that is. What it prints is written at the end of each block, and then the file:
// so of what is in the file nothing is missing, and after a crash a few lines may come again.
type tail struct {
	*subCommand
	out  *bufio.Writer
	errs io.Writer

	headed    bool   // the heading of the table was printed
	known     bool   // everything up to seq was printed
	seq, kept uint64 // kept is what the file holds
	stop      context.CancelFunc
	failed    error // why it was stopped
}

// newTail returns one that goes on after a number, if there is any.
func newTail(c *subCommand, s *streams, after *uint64, stop context.CancelFunc) *tail {
	t := &tail{subCommand: c, out: bufio.NewWriterSize(s.out, 64<<10), errs: s.err, stop: stop}
	if after != nil {
		t.known, t.seq, t.kept = true, *after, *after
	}
	return t
}

const tailColumns = "%12v %14v %-44s %20v %-44s%s\n"

// head prints the heading of a table, once the node tells anything. That is a heartbeat where nothing else happens.
func (t *tail) head() {
	if t.Output == "table" && !t.headed {
		fmt.Fprintf(t.out, tailColumns, "SLOT", "SEQ", "ACCOUNT", "LAMPORTS", "OWNER", "")
	}
	t.headed = true
}

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
			t.head()
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
		fmt.Fprintf(t.errs, "a gap: the node does not hold any more what followed update %d; what is printed from here on follows %d\n", t.seq, at.Seq)
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
	t.head()
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
	t.head()
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
	if t.Resume == nil || !t.known || t.seq == t.kept {
		return
	}
	err := replaceFile(*t.Resume, func(f vfs.File) error {
		_, err := fmt.Fprintln(io.NewOffsetWriter(f, 0), t.seq)
		return err
	})
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
