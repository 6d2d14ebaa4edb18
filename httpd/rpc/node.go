package rpc

import (
	"crypto/sha256"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// nodeHealth answers whether the node is to be asked at all.
func (c *call) nodeHealth(dst []byte) ([]byte, error) {
	switch s := c.door.config.Ledger.Status(); {
	case s.Unhealthy != "" && s.SlotsBehind.Known:
		return dst, &callError{code: codeUnhealthy, message: fmt.Sprintf("Node is behind by %d slots: %s", s.SlotsBehind.Value, s.Unhealthy),
			data: fmt.Sprintf(`{"numSlotsBehind":%d}`, s.SlotsBehind.Value)}
	case s.Unhealthy != "":
		return dst, unhealthy(s.Unhealthy)
	}
	return append(dst, `"ok"`...), nil
}

// version answers the version of the service, and first the oldest of Agave that has all methods that are answered and none that it removed: Rust's client
// 1.x asks a node below 1.9 for getFees in place of getLatestBlockhash, and below 1.7 for blocks by a name of old. The service runs no programs, so it has
// no set of features.
func (c *call) version(dst []byte) ([]byte, error) {
	return fmt.Appendf(dst, `{"solana-core":"2.0.0","ledgerd":%s}`, c.door.version), nil
}

// genesisHash is the hash of the cluster's first block.
type genesisHash struct {
	hash  ledger.Hash
	until time.Time // when an upstream is asked again; zero: none is
}

// genesisHash answers the hash that the operator gave or another node told, which no block tells.
func (c *call) genesisHash(dst []byte) ([]byte, error) {
	if known := c.door.genesis.Load(); known != nil && (known.until.IsZero() || time.Now().Before(known.until)) {
		return append(known.hash.AppendBase58(append(dst, '"')), '"'), nil
	}
	return dst, elsewhere(codeMethod, "Method not found: this node was not told --genesis-hash")
}

// identity answers a key made of the node's id: the node has no key pair.
func (c *call) identity(dst []byte) ([]byte, error) {
	key := ledger.Pubkey(sha256.Sum256([]byte(c.door.config.Ledger.Status().NodeID)))
	return append(encode.AppendKey(dst, `{"identity":`, &key), '}'), nil
}
