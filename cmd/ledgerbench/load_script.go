package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"ledgerd/bench/load"
)

// parseWhat reads what is asked for.
func (c *loadCommand) parseWhat() (err error) {
	paths := c.Path
	if c.path != "" {
		paths = append([]string{c.path}, paths...)
	}
	for _, path := range paths {
		u, err := url.Parse(path)
		switch {
		case err != nil || strings.ContainsAny(path, " \r\n") || u.Host == "" && !strings.HasPrefix(path, "/"):
			return fmt.Errorf("--path=%q must begin with / and hold no spaces, or be a whole URL", path)
		case u.Host != "" && (u.Host != c.base.Host || u.Scheme != c.base.Scheme):
			return fmt.Errorf("--path=%s is not on %s", path, c.base.Host)
		case u.Host == "" && !strings.HasPrefix(u.Path, c.base.Path+"/"):
			u.Path = c.base.Path + u.Path
		}
		if c.MinSlot > 0 {
			u.RawQuery = strings.TrimPrefix(fmt.Sprintf("%s&min_slot=%d", u.RawQuery, c.MinSlot), "&")
		}
		c.paths = append(c.paths, u.RequestURI())
	}
	if c.path != "" && (c.Mix != "" || c.RPC != nil) {
		return errors.New("the URL of a path and --mix or --rpc can't be used together")
	}
	if len(paths)+len(c.RPC) == 0 {
		c.Mix = cmp.Or(c.Mix, "account=1")
		if c.mix, err = load.ParseMix(c.Mix); err != nil {
			return fmt.Errorf("--mix: %w", err)
		}
	}
	c.known = load.Known{}
	if c.Keys != "" {
		if c.known["keys"], err = readNames(c.Keys); err != nil {
			return fmt.Errorf("--keys: %w", err)
		}
	}
	return c.parseRPC()
}

// parseRPC makes up the calls of JSON-RPC: each of them with each of the keys.
func (c *loadCommand) parseRPC() error {
	keys := c.known["keys"]
	if keys == nil {
		keys = []string{"*"}
	}
	for _, key := range keys {
		for _, call := range c.RPC {
			method, params, _ := strings.Cut(call, " ")
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, strings.ReplaceAll(cmp.Or(params, "[]"), "*", key))
			switch {
			case !json.Valid([]byte(body)):
				return fmt.Errorf("--rpc=%s is not METHOD [PARAMS] in JSON", call)
			case strings.Contains(params, "*") && c.Keys == "":
				return fmt.Errorf("--rpc=%s asks for keys: --keys names them", call)
			}
			c.calls = append(c.calls, body)
		}
	}
	return nil
}

// rpcPath is where JSON-RPC is: the path of the URL as it was given.
func (c *loadCommand) rpcPath() string {
	u, _ := url.Parse(c.URL) // parse has seen that it is one
	return u.RequestURI()
}

// config makes up the requests.
func (c *loadCommand) config(ctx context.Context) (load.Config, error) {
	config := load.Config{
		Address: *cmp.Or(c.address.Load(), new(netip.AddrPort)), Dial: c.dialer, Connections: c.Connections, Timeout: c.Timeout, HTTP2: c.HTTP2, StopAt429: !c.IgnoreLimits,
	}
	paths, count := c.paths, min(scriptRequests, len(c.paths)*len(c.headers))
	if c.mix != nil {
		if config.Learned = c.mix.Unknown(c.known) != ""; config.Learned {
			if err := c.known.Learn(ctx, c.node); err != nil {
				return config, err
			}
		}
		if name := c.mix.Unknown(c.known); name != "" {
			return config, fmt.Errorf("the server tells of nothing that %s can be asked for; --keys names accounts", name)
		}
		paths, count = c.mix.Paths(c.known, scriptRequests), scriptRequests
		for i := range paths {
			paths[i] = c.base.EscapedPath() + paths[i]
			if c.MinSlot > 0 {
				paths[i] += fmt.Sprintf("%cmin_slot=%d", map[bool]byte{false: '?', true: '&'}[strings.Contains(paths[i], "?")], c.MinSlot)
			}
		}
	}
	if c.calls != nil {
		paths, count = c.calls, min(scriptRequests, len(c.calls)*len(c.headers))
	}
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
