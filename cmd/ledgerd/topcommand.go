package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/gdamore/tcell/v3"

	"ledgerd/cmd/ledgerd/internal/top"
	"ledgerd/engine/source/unpack"
)

type topCommand struct {
	URL        string `help:"The public listener of the node, or that for operators, which has no limits: http://HOST:PORT." default:"http://127.0.0.1:8080" name:"url" env:"-"`
	APIKeyFile string `help:"A file that holds an API key, to be asked with." name:"api-key-file" env:"-" placeholder:"FILE"`
	callFlags
}

// maxKeyBytes is longer than any API key.
const maxKeyBytes = 4 << 10

// Validate checks what the flags' types cannot.
func (c *topCommand) Validate() error {
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--url must be the address of a node: http://HOST:PORT")
	}
	return nil
}

// Run shows the node until a person has seen enough.
func (c *topCommand) Run(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return &usageError{err}
	}
	key := ""
	if c.APIKeyFile != "" {
		content, err := unpack.ReadSmall(c.APIKeyFile, maxKeyBytes)
		if err != nil {
			return &usageError{fmt.Errorf("--api-key-file: %w", err)}
		}
		key = strings.TrimSpace(string(content))
	}
	screen, err := tcell.NewScreen()
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	return top.Run(ctx, client, c.URL, key, c.asked(c.URL), screen)
}
