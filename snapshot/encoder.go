package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

const (
	// chunkBytes is how many raw bytes a chunk gets before it is closed: enough for zstd to find
	// repetitions.
	chunkBytes = 256 << 10
	// pieceBytes are gathered or compressed between two points where the encoder may rest: a whole chunk takes
	// milliseconds.
	pieceBytes = 32 << 10
)

// windowBytes bounds what zstd refers back to, in the files we write and those we read.
const windowBytes = 1 << 20

// HeldBlock is a finalized block as it is held for readers: with its transactions, without
// writes.
type HeldBlock struct {
	Block *ledger.Block
	// Whole, unless it is nil, returns the block with its transactions. Block then lacks them: many
	// blocks are held at once, but only one is written at a time.
	Whole    func() *ledger.Block
	Previous ledger.Opt[ledger.Slot] // of the block before it on the chain, if there is one
}

// encoder makes chunks of items and appends them to a file. It belongs to one goroutine. It is not closed: its
// compressor starts no goroutine.
type encoder struct {
	ctx    context.Context
	file   *fileWriter
	pacer  *pacer
	zstd   *zstd.Encoder
	full   int    // how many raw bytes a chunk gets
	raw    []byte // the items of the chunk in the making
	rested int    // how long raw was at the last rest
	stored bytes.Buffer
	chunk  chunk
}

func newEncoder(ctx context.Context, file *fileWriter, pace Pace) *encoder {
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(windowBytes)) // it fails only where an option is wrong
	return &encoder{ctx: ctx, file: file, pacer: newPacer(pace), zstd: z, full: chunkBytes}
}

func (e *encoder) account(a *ledger.Account) error {
	e.raw = codec.AppendAccount(e.raw, a)
	return e.added(accountChunk, &a.Pubkey)
}

func (e *encoder) mint(m *ledger.MintWrite) error {
	e.raw = append(e.raw, m.Pubkey[:]...)
	e.raw = codec.AppendMint(e.raw, &m.Mint)
	return e.added(mintChunk, &m.Pubkey)
}

const (
	blockHasPrevious = 1 << 0 // flag of a block
	blockHeadBytes   = 1 + 8 + 4
)

func (e *encoder) block(b *HeldBlock) error {
	var head [blockHeadBytes]byte
	if b.Previous.Known {
		head[0] = blockHasPrevious
		binary.LittleEndian.PutUint64(head[1:], uint64(b.Previous.Value))
	}
	whole := b.Block
	if b.Whole != nil {
		whole = b.Whole()
	}
	start := len(e.raw)
	e.raw = codec.AppendEvent(append(e.raw, head[:]...), whole.WithoutWrites())
	size := len(e.raw) - start - blockHeadBytes
	if size > codec.MaxEventBytes {
		return fmt.Errorf("the block at slot %d takes %d bytes, over the bound of %d", b.Block.Slot, size, codec.MaxEventBytes)
	}
	binary.LittleEndian.PutUint32(e.raw[start+9:], uint32(size))
	key := blockKey(b.Block.Slot)
	return e.added(blockChunk, &key)
}

// blocks writes the blocks of a history file.
func (e *encoder) blocks(blocks []HeldBlock) error {
	for i := range blocks {
		if err := e.block(&blocks[i]); err != nil {
			return err
		}
	}
	return e.flush()
}

// added counts the item that was just appended to raw.
func (e *encoder) added(k kind, key *ledger.Pubkey) error {
	c := &e.chunk
	if c.count == 0 {
		c.kind, c.first = k, *key
	} else if c.last.Compare(key) >= 0 {
		return fmt.Errorf("cannot write a snapshot: key %x comes after %x", *key, c.last)
	}
	c.last = *key
	c.count++
	if len(e.raw) >= e.full {
		return e.flush()
	}
	if len(e.raw) < e.rested+pieceBytes {
		return nil
	}
	e.rested = len(e.raw)
	return e.pacer.rest(e.ctx)
}

// flush writes the chunk in the making, and rests meanwhile.
func (e *encoder) flush() error {
	if e.chunk.count == 0 {
		return nil
	}
	e.chunk.raw = uint32(len(e.raw))
	if err := e.compress(); err != nil {
		return err
	}
	if err := e.file.append(e.chunk, e.stored.Bytes()); err != nil {
		return err
	}
	e.raw, e.rested, e.chunk = e.raw[:0], 0, chunk{}
	return e.pacer.rest(e.ctx)
}

// compress makes one frame of raw.
func (e *encoder) compress() error {
	e.stored.Reset()
	e.zstd.ResetContentSize(&e.stored, int64(len(e.raw)))
	for piece := range slices.Chunk(e.raw, pieceBytes) {
		if _, err := e.zstd.Write(piece); err != nil {
			return fmt.Errorf("cannot compress: %w", err)
		}
		if err := e.pacer.rest(e.ctx); err != nil {
			return err
		}
	}
	if err := e.zstd.Close(); err != nil {
		return fmt.Errorf("cannot compress: %w", err)
	}
	return nil
}

// meta writes the last chunk of a file that has one, from what encoding it returned.
func (e *encoder) meta(raw []byte, err error) error {
	if err != nil {
		return fmt.Errorf("cannot encode the meta of a file: %w", err)
	}
	e.raw, e.chunk = append(e.raw[:0], raw...), chunk{kind: metaChunk, count: 1}
	return e.flush()
}
