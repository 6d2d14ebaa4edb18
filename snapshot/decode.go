package snapshot

import (
	"encoding/binary"
	"fmt"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// cursor walks the items of a chunk and holds them against the index.
type cursor struct {
	file  *file
	chunk *chunk
	rest  []byte // the items not taken yet
	count uint32
	last  ledger.Pubkey
}

// took moves on behind an item, or says why there is none.
func (u *cursor) took(key *ledger.Pubkey, rest []byte, err error) error {
	switch {
	case err != nil:
		return u.file.damaged(u.chunk, fmt.Sprintf("item %d of a chunk: %v", u.count, err))
	case u.count == 0 && *key != u.chunk.first:
		return u.file.damaged(u.chunk, "the first key of a chunk is not that of the index")
	case u.count > 0 && u.last.Compare(key) >= 0:
		return u.file.damaged(u.chunk, fmt.Sprintf("item %d of a chunk is out of order", u.count))
	}
	u.rest, u.last = rest, *key
	u.count++
	return nil
}

// finish checks what only the end of a chunk tells.
func (u *cursor) finish() error {
	if u.count != u.chunk.count {
		return u.file.damaged(u.chunk, fmt.Sprintf("a chunk holds %d items, not %d", u.count, u.chunk.count))
	}
	if u.last != u.chunk.last {
		return u.file.damaged(u.chunk, "the last key of a chunk is not that of the index")
	}
	return nil
}

// cursor reads a chunk and begins to walk it.
func (r *chunkReader) cursor(c *chunk) (cursor, error) {
	raw, err := r.read(c)
	return cursor{file: r.of, chunk: c, rest: raw}, err
}

// accounts decodes a chunk of accounts and calls visit for each until it returns false.
func (r *chunkReader) accounts(c *chunk, visit func(*ledger.Account) bool) (more bool, err error) {
	u, err := r.cursor(c)
	if err != nil {
		return false, err
	}
	for len(u.rest) > 0 {
		a, rest, err := r.made.Decode(u.rest)
		if err := u.took(&a.Pubkey, rest, err); err != nil {
			return false, err
		}
		if !visit(a) {
			return false, nil
		}
	}
	return true, u.finish()
}

// mints decodes a chunk of mints and calls visit for each until it returns false.
func (r *chunkReader) mints(c *chunk, visit func(ledger.MintWrite) bool) (more bool, err error) {
	u, err := r.cursor(c)
	if err != nil {
		return false, err
	}
	for len(u.rest) > 0 {
		m, rest, err := decodeMint(u.rest)
		if err := u.took(&m.Pubkey, rest, err); err != nil {
			return false, err
		}
		if !visit(m) {
			return false, nil
		}
	}
	return true, u.finish()
}

func decodeMint(b []byte) (m ledger.MintWrite, rest []byte, err error) {
	if len(b) < len(m.Pubkey) {
		return m, nil, errCutShort
	}
	rest = b[copy(m.Pubkey[:], b):]
	m.Mint, rest, err = codec.DecodeMint(rest)
	return m, rest, err
}

// blocks decodes a chunk of blocks and calls visit for each until it returns an error.
func (r *chunkReader) blocks(c *chunk, visit func(HeldBlock) error) error {
	u, err := r.cursor(c)
	if err != nil {
		return err
	}
	for len(u.rest) > 0 {
		b, rest, err := decodeBlock(u.rest)
		var key ledger.Pubkey
		if err == nil {
			key = blockKey(b.Block.Slot)
		}
		if err := u.took(&key, rest, err); err != nil {
			return err
		}
		if err := visit(b); err != nil {
			return err
		}
	}
	return u.finish()
}

func decodeBlock(b []byte) (h HeldBlock, rest []byte, err error) {
	if len(b) < blockHeadBytes {
		return h, nil, errCutShort
	}
	flags, previous := b[0], ledger.Slot(binary.LittleEndian.Uint64(b[1:]))
	size := uint64(binary.LittleEndian.Uint32(b[9:]))
	rest = b[blockHeadBytes:]
	switch {
	case flags&^blockHasPrevious != 0 || flags == 0 && previous != 0:
		return h, nil, fmt.Errorf("%w: unknown flags", ledger.ErrCorrupt)
	case size > uint64(len(rest)):
		return h, nil, errCutShort
	}
	e, err := codec.DecodeEvent(rest[:size])
	if err != nil {
		return h, nil, err
	}
	block, ok := e.(*ledger.Block)
	if !ok || len(block.Accounts)+len(block.Mints) > 0 {
		return h, nil, fmt.Errorf("%w: not a block without writes", ledger.ErrCorrupt)
	}
	return HeldBlock{Block: block, Previous: previous, HasPrevious: flags != 0}, rest[size:], nil
}

var errCutShort = fmt.Errorf("%w: cut short", ledger.ErrCorrupt)
