package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"ledgerd/cmd/internal/call"
	"ledgerd/engine/source/unpack"
	clientlib "ledgerd/httpd/client"
)

// subCommand says what of a node's stream is printed, and how.
type subCommand struct {
	URL        string   `help:"The public listener of the node: http://HOST:PORT." default:"http://127.0.0.1:8080" name:"url" env:"-"`
	Wallet     []string `group:"Accounts, all by default:" help:"These wallets and their token accounts." placeholder:"PUBKEY,…" env:"-"`
	Program    []string `group:"Accounts, all by default:" help:"Accounts that these programs own." placeholder:"PUBKEY,…" env:"-"`
	Pubkey     []string `group:"Accounts, all by default:" help:"These accounts." placeholder:"PUBKEY,…" env:"-"`
	Commitment string   `help:"What is printed must have reached this level: processed, confirmed or finalized." enum:"processed,confirmed,finalized" default:"processed" env:"-"`
	Include    []string `help:"What updates tell beside the usual: token (of token accounts), data." enum:"token,data" placeholder:"token,data" env:"-"`
	Output     string   `help:"table, or json: an object a line." enum:"table,json" default:"table" env:"-"`
	Resume     string   `help:"Keep in this file the number of the newest update that was printed, and go on after it." placeholder:"FILE" env:"-"`
	FailOnGap  bool     `help:"End with exit code 3 where the node does not hold any more what followed the number. Otherwise that is told, and the state printed anew." env:"-"`
	call.Flags
}

// errGap says that updates were missed for good.
var errGap = errors.New("the node does not hold any more what followed")

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
	return fmt.Errorf("%s tells nothing: %w", c.Asked(c.URL), err)
}

// kept returns the number in the file of --resume; nil: there is none yet.
func (c *subCommand) kept() (*uint64, error) {
	if c.Resume == "" {
		return nil, nil
	}
	text, err := unpack.ReadRegular(c.Resume, maxNumberBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--resume: %w", err)
	}
	seq, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("--resume: %s does not hold the number of an update", c.Resume)
	}
	return &seq, nil
}
