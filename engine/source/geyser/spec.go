package geyser

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"ledgerd/engine/source/unpack"
)

// TokenVariable is the environment variable that the x-token is taken from where the specification
// does not give it.
const TokenVariable = "LEDGERD_X_TOKEN"

const (
	tokenBytes     = 4096     // bounds a token
	tokenFileBytes = 64 << 10 // bounds the file that holds it
)

// ParseSpec reads what follows "geyser:" in a specification: the address of a node and options. rpc is
// the specification of the node to fill gaps from, "" for none. An error never shows the address or
// a token.
func ParseSpec(spec string) (c Config, rpc string, err error) {
	c, rpc, err = parseSpec(spec)
	if err != nil {
		err = fmt.Errorf("geyser source: %w", err)
	}
	return c, rpc, err
}

func parseSpec(spec string) (c Config, rpc string, err error) {
	address, query, _ := strings.Cut(spec, "?")
	if err := c.parseAddress(address); err != nil {
		return c, "", err
	}
	options, err := url.ParseQuery(query)
	if err != nil {
		return c, "", errors.New("the options after \"?\" are not NAME=VALUE&NAME=VALUE")
	}
	for name, values := range options {
		if len(values) != 1 {
			return c, "", fmt.Errorf("%s is given twice", known(name))
		}
		if name == "rpc" {
			rpc = values[0]
			continue
		}
		if err := c.option(name, values[0]); err != nil {
			return c, "", err
		}
	}
	if options.Has("token") && options.Has("token-file") {
		return c, "", errors.New("token and token-file are both given")
	}
	if !options.Has("token") && !options.Has("token-file") {
		c.Token = os.Getenv(TokenVariable)
	}
	return c, rpc, checkToken(c.Token)
}

// known returns the name of an option that may be shown: what is none may be a part of a secret.
func known(name string) string {
	if slices.Contains([]string{"rpc", "token", "token-file", "compression", "data", "transactions", "votes"}, name) {
		return name
	}
	return "an option"
}

// parseAddress reads http://HOST:PORT or https://HOST[:PORT].
func (c *Config) parseAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the address is not http://HOST:PORT or https://HOST:PORT")
	case u.User != nil || u.Path != "" && u.Path != "/" || u.Fragment != "":
		return errors.New("the address is a host and a port alone; a token goes into token= or token-file=")
	case u.Port() == "" && u.Scheme == "http":
		return errors.New("the address has no port")
	}
	c.Address = u.Host
	if u.Port() == "" {
		c.Address = net.JoinHostPort(u.Hostname(), "443")
	}
	if u.Scheme == "https" {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

func (c *Config) option(name, value string) error {
	switch name + "=" + value {
	case "data=header", "transactions=all", "votes=all", "compression=none":
		return nil
	case "data=full":
		c.WholeData = true
		return nil
	case "transactions=none":
		c.NoTransactions = true
		return nil
	case "votes=skip":
		c.SkipVotes = true
		return nil
	case "compression=zstd", "compression=gzip":
		c.Compression = value
		return nil
	}
	switch name {
	case "token":
		c.Token = value
		return nil
	case "token-file":
		return c.readToken(value)
	case "data":
		return errors.New("data is header or full")
	case "transactions":
		return errors.New("transactions is all or none")
	case "votes":
		return errors.New("votes is all or skip")
	case "compression":
		return errors.New("compression is none, zstd or gzip")
	}
	return errors.New("the options are rpc, token, token-file, compression, data, transactions and votes")
}

func (c *Config) readToken(path string) error {
	content, err := unpack.ReadSmall(path, tokenFileBytes)
	if err != nil {
		return fmt.Errorf("the file that token-file names cannot be read: %w", err)
	}
	if c.Token = string(bytes.TrimSpace(content)); c.Token == "" {
		return errors.New("the file that token-file names is empty")
	}
	return nil
}

// checkToken refuses what cannot be sent.
func checkToken(token string) error {
	if len(token) > tokenBytes || strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("the token is too long or holds characters that cannot be sent")
	}
	return nil
}
