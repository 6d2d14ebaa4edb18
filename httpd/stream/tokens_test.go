package stream

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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

// Updates of the usual kind are in the transcripts: here is what these do not have.
func TestUpdatesAreWrittenToTheLetter(t *testing.T) {
	const walletText = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin"
	wallet := mustKey(t, walletText)
	var top ledger.Pubkey // whose text is the longest
	for i := range top {
		top[i] = 0xff
	}
	topText := top.String()
	full := ledger.Account{Pubkey: wallet, Lamports: math.MaxUint64, Owner: ledger.TokenProgram, Executable: true, Known: ledger.FieldsAll}
	lamportsOnly := ledger.Account{Pubkey: ledger.NativeMint, Lamports: 5000}
	longest := ledger.Account{
		Pubkey: top, Owner: top, Lamports: math.MaxUint64, Known: ledger.FieldsAll,
		Token: &ledger.TokenAccount{Mint: top, Owner: top, Amount: math.MaxUint64},
	}
	noon, first, never, end := ledger.Some[int64](1770294896), ledger.Some[int64](0), ledger.Opt[int64]{}, ledger.Some[int64](math.MaxInt64)
	const most = 1<<64 - 1
	const native = `{"type":"account_update","pubkey":"So11111111111111111111111111111111111111112","lamports":5000,"timestamp":`
	const numbers = `,"slot":18446744073709551615,"seq":18446744073709551615,"owner":`
	for _, tt := range []struct {
		account ledger.Account
		at      ledger.Opt[int64]
		level   ledger.Commitment

		basic, extended, token string // what each form adds
	}{
		{full, noon, ledger.Finalized, `{"type":"account_update","pubkey":"` + walletText + `","lamports":18446744073709551615,"timestamp":"2026-02-05T12:34:56Z"`,
			`"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA","executable":true,"commitment":"finalized"`, `null`},
		{lamportsOnly, never, ledger.Processed, native + `null`, `"","executable":false,"commitment":"processed"`, `null`},
		{lamportsOnly, first, ledger.Processed, native + `"1970-01-01T00:00:00Z"`, `"","executable":false,"commitment":"processed"`, `null`},
		{longest, end, ledger.Confirmed, `{"type":"account_update","pubkey":"` + topText + `","lamports":18446744073709551615,"timestamp":"292277026596-12-04T15:30:07Z"`,
			`"` + topText + `","executable":false,"commitment":"confirmed"`,
			`{"mint":"` + topText + `","owner":"` + topText + `","amount":"18446744073709551615","decimals":255}`},
	} {
		extends := tt.basic + numbers + tt.extended
		for f, want := range map[form]string{basic: tt.basic + "}", extended: extends + "}", withTokens: extends + `,"token":` + tt.token + "}"} {
			got := string(appendUpdate(nil, f, &tt.account, ledger.Some[uint8](255), tt.at, most, most, tt.level))
			if got = got[strings.Index(got, `{"type"`):]; got != want { // without the header of the frame
				t.Errorf("form %d:\n got %s\nwant %s", f, got, want)
			}
			if len(got)+4 > maxFrameBytes {
				t.Errorf("a frame of %d bytes, want at most %d: %s", len(got)+4, maxFrameBytes, got)
			}
		}
	}
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

// tokenFrame is the frame of an account for those that want tokens.
func tokenFrame(a ledger.Account, slot ledger.Slot, seq ledger.Seq, level string) string {
	token := "null"
	if t := a.Token; t != nil {
		decimals := "null"
		if m := knownMints[t.Mint]; m != nil {
			decimals = fmt.Sprint(m.Decimals)
		}
		token = fmt.Sprintf(`{"mint":"%s","owner":"%s","amount":"%d","decimals":%s}`, t.Mint, t.Owner, t.Amount, decimals)
	}
	return strings.TrimSuffix(extendedFrame(a, slot, seq, level), "}") + `,"token":` + token + "}"
}

// A conflating client that is lapped while it is told what it missed hears of every account that changed since, those it
// had not been told yet among them, with the decimals of tokens.
func TestConflatedStatesHaveTokens(t *testing.T) {
	inMemory(t, func(c *Config) { c.RingBytes = 256 << 10 }, func(n *node) {
		const missed, blockAccounts = 5000, 1000
		for from := 0; from < missed; from += blockAccounts {
			accounts := make([]ledger.Account, blockAccounts)
			for i := range accounts {
				accounts[i] = tokenAccount(blockAccounts+from+i, mintA, key(9), uint64(i))
			}
			n.script.block(n.script.nextSlot(), accounts...)
		}
		c := n.dial("?overflow=conflate&extended=true&tokens=true&resume_from=0")
		c.expect(resumed("null", 0))
		n.flood(n.overflown)
		frames, gaps := readGaps(n, c.settle())
		told, tokens := map[string]bool{}, 0
		for _, u := range readUpdates(n, frames) {
			a, slot := n.script.state[mustKey(n, u.Pubkey)], u.Slot
			told[u.Pubkey] = true
			if a.Token == nil {
				continue
			}
			tokens++
			if want := tokenFrame(a, slot, u.Seq, "processed"); u.text != want {
				n.Fatalf("told %s, want %s", u.text, want)
			}
		}
		if gaps == 0 || tokens < missed || len(told) != len(n.script.state) {
			n.Errorf("%d gaps, %d updates of tokens and %d accounts told, want some, %d and %d", gaps, tokens, len(told), missed, len(n.script.state))
		}
		if most := slices.MaxFunc(n.ledger.askedFor, func(a, b []ledger.Pubkey) int { return len(a) - len(b) }); len(most) != 1 {
			n.Errorf("asked for mints %v, want each once", most)
		}
	})
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
