package snapshot

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"sync/atomic"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bloom"
	"ledgerd/snapshot/vfs"
)

// run is a file of an [Archive]. It never changes, except that it counts as damaged once a read finds damage.
type run struct {
	*file
	runMeta
	lost atomic.Bool
}

// runMeta is the content of the last chunk of a run, as JSON.
type runMeta struct {
	First    ledger.Slot  `json:"first_slot"` // of the first block
	Last     ledger.Slot  `json:"last_slot"`
	Previous *ledger.Slot `json:"previous_slot"` // of the block before the first; null where it is not known
	Blocks   uint64       `json:"blocks"`
	Gap      *ledger.Slot `json:"gap_slot,omitempty"` // of the newest block whose predecessors on the chain are missing
	Ledger   string       `json:"ledger,omitempty"`   // of the blocks; "" if an older program wrote the run
}

// follows reports whether no block is missing between another run and r.
func (r *run) follows(before *run) bool { return r.Previous != nil && *r.Previous == before.Last }

// signatureEntry says that a block has a transaction whose signature begins with eight given bytes.
type signatureEntry struct {
	prefix uint64 // big endian
	slot   ledger.Slot
}

const signatureEntryBytes = 8 + 8

func (s signatureEntry) compare(t signatureEntry) int {
	return cmp.Or(cmp.Compare(s.prefix, t.prefix), cmp.Compare(s.slot, t.slot))
}

// key returns the key of a signature in the index of a file: its prefix and slot, big endian, then zeros.
func (s signatureEntry) key() (k ledger.Pubkey) {
	binary.BigEndian.PutUint64(k[:], s.prefix)
	binary.BigEndian.PutUint64(k[8:], uint64(s.slot))
	return k
}

func prefixOf(sig *ledger.Signature) uint64 { return binary.BigEndian.Uint64(sig[:]) }

// filterEntry tells which keys a block may name.
type filterEntry struct {
	slot   ledger.Slot
	filter bloom.Filter // of their prefixes
}

func (f filterEntry) key() ledger.Pubkey { return blockKey(f.slot) }

// prefixesOf returns the prefixes of the keys that a block's transactions name.
func prefixesOf(b *ledger.Block) (prefixes []uint64) {
	for i := range b.Transactions {
		for j := range b.Transactions[i].Accounts {
			prefixes = append(prefixes, b.Transactions[i].Accounts[j].Prefix())
		}
	}
	return prefixes
}

func (e *encoder) signature(s signatureEntry) error {
	e.raw = binary.BigEndian.AppendUint64(e.raw, s.prefix)
	e.raw = binary.BigEndian.AppendUint64(e.raw, uint64(s.slot))
	key := s.key()
	return e.added(signatureChunk, &key)
}

func decodeSignature(b []byte) (s signatureEntry, rest []byte, err error) {
	if len(b) < signatureEntryBytes {
		return s, nil, errCutShort
	}
	return signatureEntry{binary.BigEndian.Uint64(b), ledger.Slot(binary.BigEndian.Uint64(b[8:]))}, b[signatureEntryBytes:], nil
}

func (e *encoder) filter(n filterEntry) error {
	e.raw = binary.LittleEndian.AppendUint64(e.raw, uint64(n.slot))
	at := len(e.raw)
	e.raw = n.filter.Append(binary.LittleEndian.AppendUint32(e.raw, 0))
	binary.LittleEndian.PutUint32(e.raw[at:], uint32(len(e.raw)-at-4))
	key := n.key()
	return e.added(filterChunk, &key)
}

func decodeFilter(b []byte) (n filterEntry, rest []byte, err error) {
	if len(b) < 12 {
		return n, nil, errCutShort
	}
	n.slot = ledger.Slot(binary.LittleEndian.Uint64(b))
	size := uint64(binary.LittleEndian.Uint32(b[8:]))
	if rest = b[12:]; size > uint64(len(rest)) {
		return n, nil, errCutShort
	}
	var ok bool
	if n.filter, ok = bloom.Decode(rest[:size]); !ok {
		return n, nil, fmt.Errorf("%w: not a filter", ledger.ErrCorrupt)
	}
	return n, rest[size:], nil
}

// openRun opens a run and checks all that its index and its meta tell.
func openRun(disk vfs.FS, dir, name string) (*run, error) {
	f, err := openFile(disk, dir, name, runMagic)
	if err != nil {
		return nil, err
	}
	blocks := f.of(blockChunk)
	if len(blocks) == 0 || !f.hasMeta() || len(blocks)+len(f.of(filterChunk))+len(f.of(signatureChunk))+1 != len(f.chunks) {
		return nil, &DamagedError{name, f.end, "the index is not one of a run"}
	}
	opened := &run{file: f}
	meta, err := f.readMeta(func(raw []byte) error { return json.Unmarshal(raw, &opened.runMeta) })
	if err != nil {
		return nil, err
	}
	last := len(blocks) - 1
	if slotOf(&blocks[0].first) != opened.First || slotOf(&blocks[last].last) != opened.Last || f.count(blockChunk) != opened.Blocks || f.count(filterChunk) != opened.Blocks {
		return nil, f.damaged(meta, "its meta does not fit its index")
	}
	return opened, nil
}

// hold opens the file of a run that is to be used, until release.
func (r *run) hold() (err error) {
	r.kept, err = r.openDisk()
	return err
}

// release closes the file of a run that is not used any more.
func (r *run) release() {
	if r.kept != nil { // else it is damaged
		r.kept.Close() // nothing was written
	}
}

// chunkFrom returns the index of the first of chunks, which are in key order, that may hold a key at or above another.
func chunkFrom(chunks []chunk, key ledger.Pubkey) int {
	return sort.Search(len(chunks), func(i int) bool { return chunks[i].last.Compare(&key) >= 0 })
}

// slots returns the slots in which there may be a transaction with a signature, oldest first.
func (r *run) slots(reader *chunkReader, sig *ledger.Signature) (slots []ledger.Slot, err error) {
	chunks, prefix := r.of(signatureChunk), prefixOf(sig)
	for i := chunkFrom(chunks, signatureEntry{prefix: prefix}.key()); i < len(chunks) && chunks[i].first.Prefix() <= prefix; i++ {
		raw, err := reader.read(&chunks[i])
		if err != nil {
			return nil, err
		}
		entry := func(n int) signatureEntry { s, _, _ := decodeSignature(raw[n*signatureEntryBytes:]); return s }
		count := int(chunks[i].count)
		if len(raw) != count*signatureEntryBytes {
			return nil, r.damaged(&chunks[i], "a chunk of signatures is of another length")
		}
		for n := sort.Search(count, func(n int) bool { return entry(n).prefix >= prefix }); n < count && entry(n).prefix == prefix; n++ {
			slots = append(slots, entry(n).slot)
		}
	}
	return slots, nil
}

// signatures calls visit for all signatures of a run, in order.
func (r *run) signatures(visit func(signatureEntry) bool) error {
	return r.within(signatureChunk, 0, math.MaxUint64, func(reader *chunkReader, c *chunk) error {
		return decodeChunk(reader, c, decodeSignature, signatureEntry.key, func(s signatureEntry) error {
			if visit(s) {
				return nil
			}
			return errStop
		})
	})
}
