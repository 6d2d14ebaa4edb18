package rpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// Accounts says which accounts the node is asked for after the blocks that touched them.
type Accounts uint8

const (
	// AccountsTouched are those that are not known, and token accounts and mints each time that a
	// block touches them: blocks show neither delegates nor supplies.
	AccountsTouched Accounts = iota
	AccountsNew              // those that are not known
	AccountsNone
)

var accountsNames = []string{AccountsTouched: "touched", AccountsNew: "new", AccountsNone: "none"}

// Config is how a node is followed. The zero value of each field but URL is a default.
type Config struct {
	URL      *url.URL             // of the node's JSON-RPC; it may hold keys, and is never shown whole
	TLS      *tls.Config          // for https; nil: the authorities of the system
	Headers  upstream.HeaderFiles // read for each call; what they hold is never shown
	Accounts Accounts
	From     ledger.Opt[ledger.Slot] // begin with the first block from there on; default: the newest confirmed
	// Brief asks for blocks with their accounts and balances alone, which not every node offers.
	Brief bool

	// Filter selects the accounts that are held; nil: all. Others are not asked for, where it lists accounts alone: of those of a program
	// it is only known from the answer.
	Filter *ledger.Filter
	// Data are the programs whose accounts are fetched with their data; nil: none.
	Data *ledger.DataPrograms

	Parallel    int           // calls at once; 0: 6
	Timeout     time.Duration // of a call, and of the making of a connection; 0: 10 s
	MaxBlock    int           // bytes of a block's JSON; 0: 64 MiB
	MaxAccounts int           // bytes of the JSON of up to 100 accounts; 0: 32 MiB

	// Dial opens connections; nil: net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Random is what waiting times are drawn from, as in wait.Backoff; nil: math/rand.
	Random func(n int64) int64
	Logger *slog.Logger // nil: slog.Default
}

const (
	poll         = 400 * time.Millisecond // between looks for new blocks near the tip
	finalityPoll = time.Second            // between looks for finality
)

// withDefaults returns the configuration with every default in place.
func (c Config) withDefaults() Config {
	c.Parallel = cmp.Or(c.Parallel, 6)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.MaxBlock = cmp.Or(c.MaxBlock, defaultBlockBytes)
	c.MaxAccounts = cmp.Or(c.MaxAccounts, 32<<20)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// ParseSpec reads what follows "rpc:": the address of a node, whose query may hold options of
// ours among its own. An error never shows the address.
func ParseSpec(spec string) (Config, error) {
	var c Config
	address, query, _ := strings.Cut(spec, "?")
	var theirs []string
	given := map[string]bool{} // of ours
	var files upstream.TLSFiles
	for option := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(option, "=")
		ours, err := files.Set(name, value) || c.Headers.Set(name, value), error(nil)
		if !ours {
			ours, err = c.option(name, value)
		}
		switch {
		case err != nil:
			return c, err
		case given[name]:
			return c, fmt.Errorf("%s is given twice", name)
		case ours:
			given[name] = true
		case option != "":
			theirs = append(theirs, option)
		}
	}
	if len(theirs) > 0 {
		address += "?" + strings.Join(theirs, "&")
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || !upstream.HasPort(u) || u.Fragment != "" {
		return c, errors.New("the address is not http://HOST:PORT or https://HOST:PORT, with a path where the node wants one")
	}
	c.URL = u
	if c.TLS, err = files.ForAddress(u.Scheme == "https"); err == nil {
		_, err = c.Headers.Read()
	}
	return c, err
}

// option takes an option of ours. It reports whether it is one.
func (c *Config) option(name, value string) (ours bool, err error) {
	switch name {
	case "accounts":
		mode := slices.Index(accountsNames, value)
		if mode < 0 {
			return true, errors.New("accounts is touched, new or none")
		}
		c.Accounts = Accounts(mode)
	case "from":
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return true, errors.New("from is a slot")
		}
		c.From = ledger.Some(ledger.Slot(n))
	case "timeout":
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Second || d > time.Hour {
			return true, errors.New("timeout is between 1s and 1h")
		}
		c.Timeout = d
	case "max-block":
		n, err := strconv.ParseUint(value, 10, 12)
		if err != nil || n == 0 {
			return true, errors.New("max-block is 1 to 4095 MiB")
		}
		c.MaxBlock = int(n) << 20
	case "ws":
		return true, errors.New("ws is not taken any more: new blocks are looked for each 400 ms")
	case "details":
		if value != "full" && value != "accounts" {
			return true, errors.New("details is full or accounts")
		}
		c.Brief = value == "accounts"
	default:
		return false, nil
	}
	return true, nil
}
