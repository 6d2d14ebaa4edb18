package snapshot

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine/ledger"
)

// tally counts what is in a file.
type tally struct {
	accounts, tombstones, mints uint64
	hash                        ledger.StateHash // of the state, if it was asked for
}

func (t *tally) account(a *ledger.Account, hash bool) {
	if a.Exists() {
		t.accounts++
	} else {
		t.tombstones++
	}
	if hash {
		t.hash.Add(a.StateTerm())
	}
}

func (t *tally) mint(m *ledger.MintWrite, hash bool) {
	t.mints++
	if hash {
		t.hash.Add(m.Mint.StateTerm(m.Pubkey))
	}
}

func (t *tally) add(o *tally) {
	t.accounts += o.accounts
	t.tombstones += o.tombstones
	t.mints += o.mints
	t.hash.Add(o.hash)
}

// checkItems reads and decodes all chunks of a file, with a goroutine for each core, and returns what is in it.
func (f *file) checkItems(ctx context.Context, pace Pace) (tally, error) {
	var (
		next  atomic.Int64
		mu    sync.Mutex
		total tally
	)
	g, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), len(f.chunks)) {
		g.Go(func() error {
			r, err := f.open()
			if err != nil {
				return err
			}
			defer r.close()
			var found tally
			p := newPacer(pace)
			for i := next.Add(1) - 1; i < int64(len(f.chunks)); i = next.Add(1) - 1 {
				if err := r.check(&f.chunks[i], &found); err != nil {
					return err
				}
				if err := p.rest(ctx); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(&found)
			return nil
		})
	}
	err := g.Wait()
	return total, err
}

// check reads and decodes a chunk and adds what is in it to found.
func (r *chunkReader) check(c *chunk, found *tally) (err error) {
	switch c.kind {
	case accountChunk:
		err = r.accounts(c, func(a *ledger.Account) error {
			found.account(a, true)
			return nil
		})
	case mintChunk:
		err = r.mints(c, func(m ledger.MintWrite) error {
			found.mint(&m, true)
			return nil
		})
	case blockChunk:
		err = r.blocks(c, func(HeldBlock) error { return nil })
	case metaChunk:
		_, err = r.read(c) // openState and openRun decode it
	case signatureChunk:
		err = decodeChunk(r, c, decodeSignature, signatureEntry.key, func(signatureEntry) error { return nil })
	case filterChunk:
		err = decodeChunk(r, c, decodeFilter, filterEntry.key, func(filterEntry) error { return nil })
	}
	return err
}
