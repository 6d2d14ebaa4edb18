package rpc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// waiting is a subscription as the model of it sees it.
type waiting struct {
	number   int
	sig      ledger.Signature
	level    ledger.Commitment
	received bool
}

// notes returns what a subscription is told of the transaction of a block: at the processed level that it was received, and at its own what became of it.
func (w waiting) notes(b *ledger.Block, at ledger.Commitment, receivedOnly bool) (all []string, ends bool) {
	note := func(value string) {
		all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","method":"signatureNotification","params":{"result":{"context":{"slot":%d},"value":%s},"subscription":%d}}`, b.Slot, value, w.number))
	}
	if b.Transactions[0].Signature != w.sig {
		return nil, false
	}
	if w.received && receivedOnly {
		note(`"receivedSignature"`)
	}
	if ends = at >= w.level; ends {
		note(map[bool]string{true: `{"err":null}`, false: `{"err":"Unknown"}`}[b.Slot%2 == 0])
	}
	return all, ends
}

// However blocks come, are undone, come again with another outcome and reach their levels, each subscription is told once what became of its
// transaction at its level, and has then ended.
func TestSignaturesAreToldOnceThroughForks(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { followSignatures(t, rand.New(rand.NewPCG(3, seed))) })
	}
}

func followSignatures(t *testing.T, random *rand.Rand) {
	f, r := serveHub(t)
	l := f.ledger
	c := r.dial()
	asked := make(chan struct{}, 1) // the ledger is, after the answer: the next block must not come before
	l.asked = func() func() { return func() { asked <- struct{}{} } }
	var alive []waiting
	var chain []ledger.Tip // of blocks that are not final
	numbers, slot := 0, ledger.Slot(40)
	// follow compares what comes next with what the model says, in any order.
	follow := func(step int, what string, want []string) {
		t.Helper()
		var got []string
		for range want {
			got = append(got, c.next())
		}
		slices.Sort(got)
		slices.Sort(want)
		ledgertest.Equal(t, got, want, "what is told at step %d, %s", step, what)
	}
	// deliver has the model tell of a block that has reached a level.
	deliver := func(b *ledger.Block, level ledger.Commitment) (want []string) {
		alive = slices.DeleteFunc(alive, func(w waiting) bool {
			if w.level != level && level != ledger.Processed {
				return false
			}
			notes, ends := w.notes(b, level, level == ledger.Processed)
			want = append(want, notes...)
			return ends
		})
		return want
	}
	blockAt := func(slot ledger.Slot) *ledger.Block {
		return l.Chain[slices.IndexFunc(l.Chain, func(b *ledger.Block) bool { return b.Slot == slot })]
	}
	sigOf := func() ledger.Signature { return testSignature(byte(100 + random.IntN(30))) }
	for step, said := 0, 0; said < 90; step++ { // a client may say no more in a second
		switch n := random.IntN(10); {
		case n < 3:
			slot += 1 + ledger.Slot(random.IntN(2))
			sig := sigOf()
			if slices.ContainsFunc(l.Chain, func(b *ledger.Block) bool { return b.Transactions[0].Signature == sig }) {
				sig = testSignature(1)
			}
			f.publishWith(sig, ledger.BlockRecord, slot, 0)
			chain = append(chain, l.Newest.Load().Tips[ledger.Processed])
			follow(step, "a block", deliver(blockAt(slot), ledger.Processed))
		case n < 4 && len(chain) > 1 && chain[len(chain)-2].Slot >= l.Newest.Load().Tips[ledger.Confirmed].Slot:
			from := chain[len(chain)-1].Slot
			chain = chain[:len(chain)-1]
			f.publish(ledger.RollbackRecord, chain[len(chain)-1].Slot, from)
			follow(step, "a block is undone", nil)
		case n < 6 && len(chain) > 0:
			level, upTo := ledger.Confirmed+ledger.Commitment(random.IntN(2)), random.IntN(len(chain))
			before := *l.Newest.Load()
			f.reach(level, chain[upTo])
			var want []string
			for at := ledger.Confirmed; at <= level; at++ {
				for _, tip := range chain[:upTo+1] {
					if tip.Slot > before.Tips[at].Slot {
						want = append(want, deliver(blockAt(tip.Slot), at)...)
					}
				}
			}
			if level == ledger.Finalized {
				chain = chain[upTo+1:]
			}
			follow(step, level.String(), want)
		case n < 7 && len(alive) > 0:
			said++
			i := random.IntN(len(alive))
			ledgertest.Equal(t, c.ask("signatureUnsubscribe", fmt.Sprintf("[%d]", alive[i].number)), `{"jsonrpc":"2.0","result":true,"id":1}`, "taken back")
			alive = slices.Delete(alive, i, i+1)
		default:
			said++
			w := waiting{sig: sigOf(), level: ledger.Commitment(random.IntN(3)), received: random.IntN(2) == 0}
			answer := c.ask("signatureSubscribe", fmt.Sprintf(`["%s",{"commitment":"%s","enableReceivedNotification":%t}]`, w.sig, w.level, w.received))
			<-asked
			same := slices.IndexFunc(alive, func(o waiting) bool { o.number = 0; return o == w })
			if same >= 0 {
				w = alive[same]
				alive = slices.Delete(alive, same, same+1)
			} else {
				numbers++
				w.number = numbers
			}
			ledgertest.Equal(t, answer, subscribed(w.number), "the answer at step %d", step)
			var want []string
			ends := false
			for _, b := range l.Chain {
				if b.Transactions[0].Signature == w.sig {
					at := l.Newest.Load().CommitmentOf(b.Slot)
					want, ends = w.notes(b, at, at < w.level)
				}
			}
			if !ends {
				alive = append(alive, w)
			}
			follow(step, "a subscription", want)
		}
	}
	ledgertest.Equal(t, c.ask("signatureUnsubscribe", "[0]"), badID, "what comes last")
}
