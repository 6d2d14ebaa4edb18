package main

import (
	"context"
	"fmt"

	"github.com/gdamore/tcell/v3"

	"ledgerd/cmd/internal/call"
	"ledgerd/cmd/ledgerd/internal/top"
	clientlib "ledgerd/httpd/client"
)

type topCommand struct {
	URL string `help:"The public listener of the node, or that for operators, which has no limits: http://HOST:PORT." default:"http://127.0.0.1:8080" name:"url" env:"-"`
	call.Flags
}

// Validate checks what the flags' types cannot.
func (c *topCommand) Validate() error {
	_, err := clientlib.ParseAddress(c.URL)
	return err
}

// Run shows the node until a person has seen enough.
func (c *topCommand) Run(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return &usageError{err}
	}
	screen, err := tcell.NewScreen()
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	return top.Run(ctx, client, c.URL, c.Asked(c.URL), screen)
}
