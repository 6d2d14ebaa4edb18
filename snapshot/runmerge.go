package snapshot

import (
	"iter"
	"slices"

	"ledgerd/engine/ledger/bloom"
)

// runBlocks writes the chunks of a run: blocks, filters and signatures.
func (e *encoder) runBlocks(blocks []HeldBlock) error {
	var signatures []signatureEntry
	filters := make([]filterEntry, 0, len(blocks))
	for i := range blocks {
		b := blocks[i]
		if b.Whole != nil {
			b.Block, b.Whole = b.Whole(), nil
		}
		if err := e.block(&b); err != nil {
			return err
		}
		for j := range b.Block.Transactions {
			signatures = append(signatures, signatureEntry{prefixOf(&b.Block.Transactions[j].Signature), b.Block.Slot})
		}
		filters = append(filters, filterEntry{b.Block.Slot, bloom.Of(prefixesOf(b.Block))})
	}
	if err := e.flush(); err != nil {
		return err
	}
	for _, f := range filters {
		if err := e.filter(f); err != nil {
			return err
		}
	}
	if err := e.flush(); err != nil {
		return err
	}
	slices.SortFunc(signatures, signatureEntry.compare)
	e.full = signatureBytes
	for _, s := range slices.Compact(signatures) {
		if err := e.signature(s); err != nil {
			return err
		}
	}
	return e.flush()
}

// joined writes the chunks of a run that is made of several others: their blocks and filters as they are stored, and their
// signatures merged in order. It notes a run that it finds damaged.
func (e *encoder) joined(a *Archive, runs []*run) error {
	for _, k := range []kind{blockChunk, filterChunk} {
		for _, r := range runs {
			if err := e.copied(a, r, k); err != nil {
				return err
			}
		}
	}
	e.full = signatureBytes
	var failed error
	sources := make([]func() (signatureEntry, bool), len(runs))
	heads := make([]signatureEntry, len(runs))
	more := make([]bool, len(runs))
	for i, r := range runs {
		next, stop := iter.Pull(func(yield func(signatureEntry) bool) {
			if err := r.signatures(yield); err != nil {
				failed = a.failed(r, err)
			}
		})
		defer stop()
		sources[i] = next
		heads[i], more[i] = next()
	}
	for {
		least := -1
		for i := range heads {
			if more[i] && (least < 0 || heads[i].compare(heads[least]) < 0) {
				least = i
			}
		}
		if least < 0 || failed != nil {
			break
		}
		if err := e.signature(heads[least]); err != nil {
			return err
		}
		heads[least], more[least] = sources[least]()
	}
	if failed != nil {
		return failed
	}
	return e.flush()
}

// copied appends the chunks of a kind as they are stored, once their checksums are right.
func (e *encoder) copied(a *Archive, r *run, k kind) error {
	reader, err := r.open()
	if err != nil {
		return a.failed(r, err)
	}
	defer reader.close()
	chunks := r.of(k)
	for i := range chunks {
		if _, err := reader.read(&chunks[i]); err != nil {
			return a.failed(r, err)
		}
		if err := e.file.append(chunks[i], reader.stored); err != nil {
			return err
		}
		if err := e.pacer.rest(e.ctx); err != nil {
			return err
		}
	}
	return nil
}
