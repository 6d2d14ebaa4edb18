package stream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// withWallets adds how many wallets are named to an answer.
func withWallets(answer string, wallets int) string {
	programs := strings.Index(answer, `"programs":`)
	end := programs + strings.IndexAny(answer[programs:], ",}")
	return fmt.Sprintf(`%s,"wallets":%d%s`, answer[:end], wallets, answer[end:])
}

func unsubscribed(id string, pubkeys, programs int) string {
	return fmt.Sprintf(`{"type":"unsubscribed","id":%s,"pubkeys":%d,"programs":%d}`, id, pubkeys, programs)
}

func TestSnapshotsOfWallets(t *testing.T) {
	n := serveMints(t, nil)
	wallet, poor := account(3, 9, ledger.SystemProgram), key(4)
	first, last := tokenAccount(1, mintA, wallet.Pubkey, 5), tokenAccount(5, mintB, wallet.Pubkey, 6)
	n.script.block(1, first, account(2, 1, programA), wallet, last, tokenAccount(6, mintA, poor, 1))
	n.script.block(2, account(6, 0, programA))
	c := n.dial("?mode=none&extended=true&tokens=true")
	c.send(`{"type":"subscribe","id":1,"snapshot":true,"wallets":%s}`, list(wallet.Pubkey, poor))
	c.expect(withWallets(subscribed("1", 0, 0, 2, 6), 2), tokenFrame(first, 2, 6, "processed"), tokenFrame(wallet, 2, 6, "processed"),
		tokenFrame(last, 2, 6, "processed"), snapshotEnd("1", 2, 6))
	c.quiet()

	rich := make([]ledger.Account, maxSnapshot-1) // and the wallet itself
	for i := range rich {
		rich[i] = tokenAccount(100+i, mintA, poor, 1)
	}
	n.script.block(3, rich...)
	c = n.dial("?mode=none")
	c.send(`{"type":"subscribe","id":1,"snapshot":true,"wallets":%s}`, list(poor))
	c.expect(withWallets(subscribed("1", 0, 0, 3, 5+maxSnapshot), 1))
	if got := len(c.settle()); got != len(rich)+1 {
		t.Errorf("%d frames, want %d accounts and an end", got, len(rich))
	}
	c.send(`{"type":"subscribe","id":2,"snapshot":true,"wallets":%s}`, list(poor, wallet.Pubkey))
	c.expect(failed("2", errTooMany.Error()+": read them from GET /api/account/{pubkey}/tokens instead"))
	c.send(`{"type":"unsubscribe","wallets":%s}`, list(wallet.Pubkey)) // nothing has changed
	c.expect(withWallets(unsubscribed("null", 0, 0), 1))
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
