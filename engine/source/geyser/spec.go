package geyser

import (
	"bytes"
	"cmp"
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
		if !slices.Contains(optionNames, name) {
			return c, "", errors.New("the options are rpc, token, token-file, compression, data, transactions and votes")
		}
		if len(values) != 1 {
			return c, "", fmt.Errorf("%s is given twice", name)
		}
	}
	if err := c.choose(options); err != nil {
		return c, "", err
	}
	switch {
	case options.Has("token") && options.Has("token-file"):
		err = errors.New("token and token-file are both given")
	case options.Has("token"):
		c.Token = options.Get("token")
	case options.Has("token-file"):
		c.Token, c.TokenIsOpen, err = readToken(options.Get("token-file"))
	default:
		c.Token = os.Getenv(TokenVariable)
	}
	if err == nil && (len(c.Token) > tokenBytes || strings.ContainsFunc(c.Token, func(r rune) bool { return r < ' ' || r > '~' })) {
		err = errors.New("the token is too long or holds characters that cannot be sent")
	}
	return c, options.Get("rpc"), err
}

// optionNames are those that an error may name: what is none may be a part of a secret.
var optionNames = []string{"rpc", "token", "token-file", "compression", "data", "transactions", "votes"}

// choose takes the options that have a few values.
func (c *Config) choose(options url.Values) error {
	data, dataErr := choice(options, "data", "header", "full")
	transactions, transactionsErr := choice(options, "transactions", "all", "none")
	votes, votesErr := choice(options, "votes", "all", "skip")
	compression, compressionErr := choice(options, "compression", "none", zstdName, "gzip")
	c.WholeData, c.NoTransactions, c.SkipVotes = data == "full", transactions == "none", votes == "skip"
	if compression != "none" {
		c.Compression = compression
	}
	return cmp.Or(dataErr, transactionsErr, votesErr, compressionErr)
}

// choice returns the value of an option, which is one of values; the first where the option is not given.
func choice(options url.Values, name string, values ...string) (string, error) {
	if !options.Has(name) {
		return values[0], nil
	}
	if !slices.Contains(values, options.Get(name)) {
		return "", fmt.Errorf("%s is %s", name, strings.Join(values, " or "))
	}
	return options.Get(name), nil
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

// readToken reads a token from a file. open reports whether everybody may.
func readToken(path string) (token string, open bool, err error) {
	content, err := unpack.ReadSmall(path, tokenFileBytes)
	if err != nil {
		return "", false, fmt.Errorf("the file that token-file names cannot be read: %w", err)
	}
	if token = string(bytes.TrimSpace(content)); token == "" {
		return "", false, errors.New("the file that token-file names is empty")
	}
	info, err := os.Stat(path)
	return token, err == nil && info.Mode().Perm()&0o004 != 0, nil
}
