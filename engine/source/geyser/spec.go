package geyser

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// TokenVariable is the environment variable that the x-token is taken from where the specification
// does not give it.
const TokenVariable = "LEDGERD_X_TOKEN"

// choices are the options that have a few values, of which the first is taken where they are not given.
var choices = map[string][]string{
	"accounts": {"all", "indexed"}, "compression": {"none", zstdName, "gzip"}, "data": {"header", "full"},
	"transactions": {"all", "none"}, "votes": {"all", "skip"},
}

// optionNames are those that an error may name: what is none may be a part of a secret.
var optionNames = slices.Concat([]string{"rpc", "token", "token-file", "header-file"}, slices.Sorted(maps.Keys(choices)), upstream.TLSOptions)

// ParseSpec reads what follows "geyser:" in a specification: the address of a node and options. held selects the accounts
// that we hold. rpc is the specification of the node to fill gaps from, "" for none. An error never shows the address or
// a token.
func ParseSpec(spec string, held *ledger.Filter) (c Config, rpc string, err error) {
	addresses, query, _ := strings.Cut(spec, "?")
	for address := range strings.SplitSeq(addresses, ",") {
		if err := c.parseAddress(address); err != nil {
			return c, "", err
		}
	}
	options, err := url.ParseQuery(query)
	if err != nil {
		return c, "", errors.New("the options after \"?\" are not NAME=VALUE&NAME=VALUE")
	}
	var files upstream.TLSFiles
	for name, given := range options {
		values, isChoice := choices[name]
		switch {
		case !slices.Contains(optionNames, name):
			return c, "", fmt.Errorf("the options are %s", strings.Join(optionNames, ", "))
		case len(given) != 1:
			return c, "", fmt.Errorf("%s is given twice", name)
		case isChoice && !slices.Contains(values, given[0]):
			return c, "", fmt.Errorf("%s is %s", name, strings.Join(values, " or "))
		}
		files.Set(name, given[0])
		c.Headers.Set(name, given[0])
	}
	config, err := files.ForAddress(c.TLS != nil)
	if err := cmp.Or(c.chooseAccounts(options, held), err); err != nil {
		return c, "", err
	}
	c.TLS = cmp.Or(config, c.TLS)
	c.WholeData, c.NoTransactions = options.Get("data") == "full", options.Get("transactions") == "none"
	c.SkipVotes = options.Get("votes") == "skip"
	if compression := options.Get("compression"); compression != "none" {
		c.Compression = compression
	}
	c.Headers.Token = options.Get("token")
	switch {
	case options.Has("token") && options.Has("token-file"):
		return c, "", errors.New("token and token-file are both given")
	case !options.Has("token") && !options.Has("token-file"):
		c.Headers.Token = os.Getenv(TokenVariable)
	}
	_, err = c.Headers.Read()
	return c, options.Get("rpc"), err
}

// chooseAccounts takes the accounts to ask for. A node shows a write to who asks for its key or for the owner that it leaves. So
// the accounts of a program cannot be followed that way: who asks for them is not shown the write by which one leaves the program.
func (c *Config) chooseAccounts(options url.Values, held *ledger.Filter) error {
	switch {
	case options.Get("accounts") != "indexed":
		return nil
	case held == nil || len(held.Owners()) > 0:
		return errors.New("accounts=indexed needs --index-accounts without --index-owners: a node does not show how an account leaves its program")
	}
	c.Accounts = held.Accounts()
	return nil
}

// parseAddress reads http://HOST:PORT or https://HOST[:PORT], of the next node.
func (c *Config) parseAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || !upstream.HasPort(u) || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the address is not http://HOST:PORT or https://HOST:PORT")
	case u.User != nil || u.Path != "" && u.Path != "/" || u.Fragment != "":
		return errors.New("the address is a host and a port alone; a token goes into token= or token-file=")
	case u.Port() == "" && u.Scheme == "http":
		return errors.New("the address has no port")
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "443")
	}
	isTLS := u.Scheme == "https"
	switch _, _, err := net.SplitHostPort(host); {
	case err != nil:
		return errors.New("the address has brackets out of place")
	case len(c.Addresses) > 0 && isTLS != (c.TLS != nil):
		return errors.New("the addresses are all of http:// or all of https://")
	case slices.Contains(c.Addresses, host):
		return errors.New("an address is given twice")
	case isTLS:
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c.Addresses = append(c.Addresses, host)
	return nil
}
