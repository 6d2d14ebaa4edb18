package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"ledgerd/bench/load"
	"ledgerd/engine/ledger"
	"ledgerd/httpd/client"
)

// defaultPath is what is asked for where nothing is named.
const defaultPath = "/account/*"

// parseWhat reads what is asked for.
func (c *loadCommand) parseWhat() (err error) {
	if c.path != "" && c.RPC != nil {
		return errors.New("the URL of a path and --rpc can't be used together")
	}
	paths := c.Path
	switch {
	case c.path != "":
		paths = append([]string{c.path}, paths...)
	case len(paths)+len(c.RPC) == 0:
		paths = []string{defaultPath}
	}
	for _, path := range paths {
		u, err := url.Parse(path)
		switch {
		case err != nil || strings.ContainsAny(path, " \r\n") || u.Host == "" && !strings.HasPrefix(path, "/"):
			return fmt.Errorf("--path=%q must begin with / and hold no spaces, or be a whole URL", path)
		case u.Host != "" && (u.Host != c.base.Host || u.Scheme != c.base.Scheme):
			return fmt.Errorf("--path=%s is not on %s", path, c.base.Host)
		case u.Host != "":
			path = u.RequestURI()
		case !strings.HasPrefix(u.Path, c.base.Path+"/"):
			path = c.base.Path + path
		}
		c.paths = append(c.paths, path)
	}
	if c.Keys != "" {
		if c.keys, err = readNames(c.Keys); err != nil {
			return fmt.Errorf("--keys: %w", err)
		}
	}
	return c.parseRPC()
}

// parseRPC makes up the calls of JSON-RPC.
func (c *loadCommand) parseRPC() error {
	for _, call := range c.RPC {
		method, params, _ := strings.Cut(call, " ")
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, cmp.Or(params, "[]"))
		switch {
		case !json.Valid([]byte(body)):
			return fmt.Errorf("--rpc=%s is not METHOD [PARAMS] in JSON", call)
		case strings.Contains(params, "*") && c.Keys == "":
			return fmt.Errorf("--rpc=%s asks for keys: --keys names them", call)
		}
		c.calls = append(c.calls, body)
	}
	c.calls = spread(c.calls, c.keys)
	return nil
}

// asksForKeys reports whether a path has a place for one.
func (c *loadCommand) asksForKeys() bool { return slices.ContainsFunc(c.paths, hasPlace) }

func hasPlace(text string) bool { return strings.Contains(text, "*") }

// spread returns each text with each of the keys in the place of its asterisk.
func spread(texts, keys []string) (all []string) {
	if !slices.ContainsFunc(texts, hasPlace) {
		return texts
	}
	for _, key := range keys {
		for _, text := range texts {
			all = append(all, strings.ReplaceAll(text, "*", key))
		}
	}
	return all
}

// wellKnown are programs that own accounts on most ledgers: of tokens, and of wallets.
var wellKnown = []string{ledger.TokenProgram.String(), "11111111111111111111111111111111"}

// learn returns accounts of a well-known program that the node lists, to stand in a path, in no order.
func (c *loadCommand) learn(ctx context.Context) ([]string, error) {
	for _, program := range wellKnown {
		list, err := c.node.Program(ctx, program, client.Page{Limit: 1000}, client.Read{})
		if refused, ok := errors.AsType[*client.StatusError](err); err != nil && (!ok || refused.Status != http.StatusNotFound) {
			return nil, err
		}
		if n := len(list.Value.Accounts); n > 0 {
			keys := make([]string, n)
			for to, from := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
				keys[to] = url.PathEscape(list.Value.Accounts[from].Pubkey) // a server may tell anything
			}
			return keys, nil
		}
	}
	return nil, errors.New("the server lists no accounts to ask for; --keys names some")
}

// rpcPath is where JSON-RPC is: the path and query of the URL as it was given.
func (c *loadCommand) rpcPath() string {
	u, _ := url.Parse(c.URL) // parse has seen that it is one
	u.RawQuery = c.query
	return u.RequestURI()
}

// config makes up the requests.
func (c *loadCommand) config(ctx context.Context) (load.Config, error) {
	config := load.Config{
		Address: *cmp.Or(c.address.Load(), new(netip.AddrPort)), Dial: c.dialer, Connections: c.Connections, Timeout: c.Timeout, HTTP2: c.HTTP2, StopAt429: !c.IgnoreLimits,
	}
	if c.asksForKeys() && c.keys == nil {
		keys, err := c.learn(ctx)
		if err != nil {
			return config, err
		}
		config.Learned, c.keys = true, keys
	}
	paths := spread(c.paths, c.keys)
	if c.calls != nil {
		paths = c.calls
	}
	count := min(scriptRequests, len(paths)*len(c.headers))
	config.Script = load.NewScript(count, func(i int) []byte {
		header := c.headers[(i%len(paths)+i/len(paths))%len(c.headers)] // so that each path is asked for with each key
		if c.calls != nil {
			return load.Post(c.base.Host, c.rpcPath(), header, c.calls[i%len(paths)])
		}
		return load.Get(c.base.Host, paths[i%len(paths)], header)
	})
	if c.Verify {
		config.Verify = newVerifier(paths).verify
	}
	return config, nil
}
