package stream

import (
	"runtime"
	"testing"
	"weak"

	"ledgerd/engine/ledger"
)

// What a block changed goes with the block: not who heard an account of it last, nor who has yet to
// read of that one, keeps all the others in memory.
func TestSubscribersKeepNoBlock(t *testing.T) {
	tests := map[string]connect{
		"has heard":             {wants: wants{pubkeys: keySet{few: []ledger.Pubkey{key(1)}}}},
		"is slow":               {wants: wants{pubkeys: keySet{few: []ledger.Pubkey{key(1)}}}},
		"is slow and conflates": {wants: wants{pubkeys: keySet{few: []ledger.Pubkey{key(1)}}}, conflates: true},
		"is slow, conflates and is ahead": {wants: wants{everything: true}, conflates: true,
			resume: ledger.Some(ledger.Seq(1))},
	}
	for name, asked := range tests {
		h := New(Config{RecentBytes: 1})
		script := newScript(h, newFakeLedger())
		s := &subscriber{hub: h, wants: asked.wants, outbox: newOutbox(1<<40, new(unshared))}
		s.outbox.conflates = asked.conflates
		h.join(s, asked.resume)
		r := script.append(1, account(1, 1, programA), account(2, 1, programA))
		block := weak.Make(&r.Updates[0])
		script.reach(ledger.Finalized, 1)
		script.publish()
		if name == "has heard" {
			if pieces, _, _ := s.outbox.take(nil, 0); len(pieces) != 1 {
				t.Fatalf("%s: told %d pieces, want 1", name, len(pieces))
			}
		}
		r = nil
		script.append(2, account(3, 1, programA))
		script.reach(ledger.Finalized, 2)
		script.publish() // the first is not kept to resume from any more
		runtime.GC()
		if block.Value() != nil {
			t.Errorf("one who %s keeps a block in memory", name)
		}
		runtime.KeepAlive(s)
		runtime.KeepAlive(h)
	}
}
