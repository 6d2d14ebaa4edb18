package stream

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func mustKey(t testing.TB, text string) ledger.Pubkey {
	t.Helper()
	k, err := ledger.ParsePubkey(text)
	must(t, err)
	return k
}

// Updates of the usual kind are in the transcripts: testdata/updates.golden has, in each form, what these do not have.
func TestUpdatesAreWrittenToTheLetter(t *testing.T) {
	const most = math.MaxUint64
	wallet, top := mustKey(t, "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"), ledger.Pubkey(bytes.Repeat([]byte{0xff}, 32)) // whose text is the longest
	lamportsOnly := ledger.Account{Pubkey: ledger.NativeMint, Lamports: 5000}
	var text strings.Builder
	for _, tt := range []struct {
		account ledger.Account
		at      ledger.Opt[int64]
		level   ledger.Commitment
	}{
		{ledger.Account{Pubkey: wallet, Lamports: most, Owner: ledger.TokenProgram, Executable: true, Known: ledger.FieldsAll}, ledger.Some[int64](1770294896), ledger.Finalized},
		{lamportsOnly, ledger.Opt[int64]{}, ledger.Processed},
		{lamportsOnly, ledger.Some[int64](0), ledger.Processed},
		{ledger.Account{Pubkey: top, Owner: top, Lamports: most, Known: ledger.FieldsAll, Token: &ledger.TokenAccount{Mint: top, Owner: top, Amount: most}},
			ledger.Some[int64](math.MaxInt64), ledger.Confirmed},
	} {
		for _, f := range []form{basic, extended, withTokens} {
			got := appendUpdate(nil, f, &tt.account, ledger.Some[uint8](255), tt.at, most, most, tt.level)
			fmt.Fprintf(&text, "%s\n", got[bytes.IndexByte(got, '{'):]) // without the header of the frame
			if len(got) > maxFrameBytes {
				t.Errorf("a frame of %d bytes, want at most %d: %s", len(got), maxFrameBytes, got)
			}
		}
	}
	ledgertest.Golden(t, "testdata/updates.golden", text.String(), *update)
}

// Mints: the ledger knows the first one.
var mintA, mintB = key(1 << 21), key(1<<21 + 1)

var knownMints = map[ledger.Pubkey]*ledger.Mint{mintA: {Decimals: 6}}

// tokenAccount returns a live account that holds an amount for a wallet.
func tokenAccount(n int, mint, wallet ledger.Pubkey, amount uint64) ledger.Account {
	a := account(n, 2039280, ledger.TokenProgram)
	a.Token = &ledger.TokenAccount{Mint: mint, Owner: wallet, Amount: amount}
	return a
}

// A source that is faster than what is delivered meanwhile waits: what is pending is bounded.
func TestWhatWaitsForDecimalsIsBounded(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("?mode=none&extended=true&tokens=true")
		n.ledger.mintsGo = make(chan struct{})
		const blocks, updates = 40, 1000
		var published atomic.Int64
		go func() {
			for slot := range ledger.Slot(blocks) {
				writes := accounts(0, updates, ledger.Lamports(slot+1))
				writes[0] = tokenAccount(0, mintA, key(9), uint64(slot))
				n.script.append(slot+1, writes...)
				n.script.publishNow()
				published.Add(1)
			}
		}()
		synctest.Wait()
		if most := int64(mostPending/(updates*updateBytes)) + 2; published.Load() == blocks || published.Load() > most {
			n.Errorf("%d blocks of %d were published while the ledger did not answer, want at most %d", published.Load(), blocks, most)
		}
		close(n.ledger.mintsGo)
		synctest.Wait()
		ledgertest.Equal(n, published.Load(), blocks, "blocks that were published in the end")
		_ = c.conn.Close()
	})
}

// tokenStep stages one random thing, most often a block of token accounts that change hands.
func (s *script) tokenStep(r *rand.Rand) {
	if r.IntN(2) == 0 {
		s.step(r)
		return
	}
	var writes []ledger.Account
	for _, k := range r.Perm(8)[:r.IntN(5)] {
		writes = append(writes, tokenAccount(k, mintA, key(r.IntN(4)), r.Uint64()))
	}
	s.slots++
	s.append(s.slots, writes...)
}
