package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/cmd/internal/build"
	"ledgerd/engine/ledger"
	"ledgerd/httpd/rpc"
	"ledgerd/shard/giveway"
)

// rpcFlags are how a node speaks Solana's JSON-RPC.
type rpcFlags struct {
	RPCListen     string   `name:"rpc-listen" help:"Address of the listener for Solana's JSON-RPC, such as 127.0.0.1:8899; WebSockets are on the port above, too. unix:PATH is a Unix socket. Limits, API keys and certificates are those of --listen. By default there is none." placeholder:"HOST:PORT"`
	RPCForward    []string `name:"rpc-forward" help:"Nodes that are asked, in this order, what this one cannot answer. Whoever may call this node may so call them." placeholder:"URL,…"`
	GenesisHash   string   `help:"What getGenesisHash answers; no block tells it." placeholder:"HASH"`
	IndexMints    bool     `help:"List the token accounts of a mint, for its largest holders: 13 bytes of memory for each."`
	SlotsPerEpoch uint64   `help:"How long an epoch is; by default as on the public clusters." default:"432000" placeholder:"N"`
}

// validate checks what the flags' types cannot. listen and opsListen are the addresses of the other listeners.
func (f *rpcFlags) validate(listen, opsListen string) error {
	if f.SlotsPerEpoch == 0 {
		return errors.New("--slots-per-epoch must be at least 1")
	}
	if _, err := ledger.ParseHash(f.GenesisHash); f.GenesisHash != "" && err != nil {
		return errors.New("--genesis-hash must be the base58 of exactly 32 bytes")
	}
	if _, err := rpc.New(rpc.Config{Forward: f.RPCForward}); err != nil {
		return fmt.Errorf("--rpc-forward: %w", err)
	}
	if f.RPCListen == "" {
		if len(f.RPCForward) > 0 {
			return errors.New("--rpc-forward needs --rpc-listen")
		}
		return nil
	}
	if err := checkAddress(f.RPCListen); err != nil {
		return fmt.Errorf("--rpc-listen: %w", err)
	}
	for i, address := range f.addresses() {
		why := ""
		if i > 0 {
			why = "; it takes the port above its own"
		}
		switch {
		case sameAddress(address, listen):
			return fmt.Errorf("--rpc-listen: %q is the address of --listen too%s", address, why)
		case sameAddress(address, opsListen): // none is no address
			return fmt.Errorf("--rpc-listen: %q is the address of --ops-listen too%s", address, why)
		}
	}
	return nil
}

// addresses returns where the listeners are, if there are any: libraries look for WebSockets on the port above.
func (f *rpcFlags) addresses() (all []string) {
	if f.RPCListen != "" {
		all = append(all, f.RPCListen)
	}
	if host, text, err := net.SplitHostPort(f.RPCListen); err == nil && !strings.HasPrefix(f.RPCListen, "unix:") {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil && port > 0 && port < math.MaxUint16 {
			all = append(all, net.JoinHostPort(host, strconv.FormatUint(port+1, 10)))
		}
	}
	return all
}

// rpcPort returns where JSON-RPC is spoken, 0 if on no port.
func (n *node) rpcPort() int {
	if len(n.rpcPorts) > 0 {
		if a, ok := n.rpcPorts[0].Addr().(*net.TCPAddr); ok {
			return a.Port
		}
	}
	return 0
}

// assemble makes the door that answers there.
func (f *rpcFlags) assemble(n *node, set *metrics.Set) (err error) {
	if len(n.rpcPorts) == 0 {
		return nil
	}
	n.rpc, err = rpc.New(rpc.Config{
		Ledger: answers{n.engine, n}, Version: build.Version, GenesisHash: f.GenesisHash, SlotsPerEpoch: f.SlotsPerEpoch, IndexMints: f.IndexMints,
		Hub: n.hub, Forward: f.RPCForward, Turn: giveway.Turn, Metrics: set, Log: n.logger,
	})
	return err
}
