package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

var (
	// errStop ends a walk over items without an error.
	errStop     = errors.New("the visitor wants no more")
	errCutShort = fmt.Errorf("%w: cut short", ledger.ErrCorrupt)
	errNoBlock  = fmt.Errorf("%w: not a block without writes", ledger.ErrCorrupt)
)

func accountKey(a *ledger.Account) ledger.Pubkey { return a.Pubkey }
func mintKey(m ledger.MintWrite) ledger.Pubkey   { return m.Pubkey }

// between returns a visitor of all items that calls visit for those whose key has a prefix from first to last. The visitor
// returns errStop once visit returned false, and for the first item after last.
func between[T any](first, last uint64, keyOf func(T) ledger.Pubkey, visit func(T) bool) func(T) error {
	return func(item T) error {
		key := keyOf(item)
		if prefix := key.Prefix(); prefix < first || prefix <= last && visit(item) {
			return nil
		}
		return errStop
	}
}

// decodeChunk reads a chunk, decodes its items, compares them with the index, and calls visit for each until it
// returns an error. decode returns an item and the bytes after it.
func decodeChunk[T any](r *chunkReader, c *chunk, decode func([]byte) (T, []byte, error),
	keyOf func(T) ledger.Pubkey, visit func(T) error) error {
	rest, err := r.read(c)
	if err != nil {
		return err
	}
	var count uint32
	var last ledger.Pubkey
	for len(rest) > 0 {
		item, after, err := decode(rest)
		if err != nil {
			return r.of.damaged(c, fmt.Sprintf("item %d of a chunk: %v", count, err))
		}
		key := keyOf(item)
		switch {
		case count == 0 && key != c.first:
			return r.of.damaged(c, "the first key of a chunk is not that of the index")
		case count > 0 && last.Compare(&key) >= 0:
			return r.of.damaged(c, fmt.Sprintf("item %d of a chunk is out of order", count))
		}
		rest, last = after, key
		count++
		if err := visit(item); err != nil {
			return err
		}
	}
	switch {
	case count != c.count:
		return r.of.damaged(c, fmt.Sprintf("a chunk holds %d items, not %d", count, c.count))
	case last != c.last:
		return r.of.damaged(c, "the last key of a chunk is not that of the index")
	}
	return nil
}

// accounts visits the accounts of a chunk. An account is valid until visit returns.
func (r *chunkReader) accounts(c *chunk, visit func(*ledger.Account) error) error {
	return decodeChunk(r, c, r.account.Decode, accountKey, visit)
}

// mints visits the mint facts of a chunk.
func (r *chunkReader) mints(c *chunk, visit func(ledger.MintWrite) error) error {
	return decodeChunk(r, c, decodeMint, mintKey, visit)
}

func decodeMint(b []byte) (m ledger.MintWrite, rest []byte, err error) {
	if len(b) < len(m.Pubkey) {
		return m, nil, errCutShort
	}
	rest = b[copy(m.Pubkey[:], b):]
	m.Mint, rest, err = codec.DecodeMint(rest)
	return m, rest, err
}

// blocks visits the blocks of a chunk.
func (r *chunkReader) blocks(c *chunk, visit func(HeldBlock) error) error {
	return decodeChunk(r, c, decodeBlock, func(h HeldBlock) ledger.Pubkey { return blockKey(h.Block.Slot) }, visit)
}

// packedBlock is a block as a chunk holds it.
type packedBlock struct {
	slot     ledger.Slot
	previous ledger.Opt[ledger.Slot]
	event    []byte // valid as long as the bytes of the chunk
}

func (p packedBlock) key() ledger.Pubkey { return blockKey(p.slot) }

func cutBlock(b []byte) (p packedBlock, rest []byte, err error) {
	if len(b) < blockHeadBytes {
		return p, nil, errCutShort
	}
	flags := b[0]
	p.previous = ledger.Opt[ledger.Slot]{Value: ledger.Slot(binary.LittleEndian.Uint64(b[1:])), Known: flags != 0}
	size := uint64(binary.LittleEndian.Uint32(b[9:]))
	rest = b[blockHeadBytes:]
	switch {
	case flags&^blockHasPrevious != 0 || flags == 0 && p.previous.Value != 0:
		return p, nil, fmt.Errorf("%w: unknown flags", ledger.ErrCorrupt)
	case size > uint64(len(rest)):
		return p, nil, errCutShort
	}
	var ok bool
	p.event = rest[:size]
	if p.slot, ok = codec.BlockSlot(p.event); !ok {
		return p, nil, errNoBlock
	}
	return p, rest[size:], nil
}

func (p packedBlock) decode() (h HeldBlock, err error) {
	e, err := codec.DecodeEvent(p.event)
	if err != nil {
		return h, err
	}
	block, ok := e.(*ledger.Block)
	if !ok || len(block.Accounts)+len(block.Mints) > 0 {
		return h, errNoBlock
	}
	return HeldBlock{Block: block, Previous: p.previous}, nil
}

func decodeBlock(b []byte) (h HeldBlock, rest []byte, err error) {
	p, rest, err := cutBlock(b)
	if err == nil {
		h, err = p.decode()
	}
	return h, rest, err
}
