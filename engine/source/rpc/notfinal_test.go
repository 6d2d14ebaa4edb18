package rpc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
)

// A node that says it finalized what it shows as confirmed alone has taken nothing back.
func TestBlocksThatAreFinalLaterThanItIsSaidAreNotTakenBack(t *testing.T) {
	for name, answer := range map[string]string{"null": `"result":null`, "skipped": `"error":{"code":-32007}`, "not yet": `"error":{"code":-32004}`} {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			n.add(9, 10)
			n.fault = func(w http.ResponseWriter, method string, params []json.RawMessage) bool {
				n.finalized = n.confirmed
				var slot ledger.Slot
				if method != "getBlock" || !strings.Contains(string(params[1]), "finalized") || json.Unmarshal(params[0], &slot) != nil || slot+32 <= n.confirmed {
					return false
				}
				says(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, n.calledLocked(), answer))(w)
				return true
			}
			c := n.config()
			c.Parallel = 1
			s := New(c)
			go goesOn(n, 10, 200)
			r := follow(t, s, at(10), untilSlot(200))
			wantChain(t, r)
			if g := s.Upstream(); len(r.blocks()) != 190 || g.Errors[upstream.Equivocation] != 0 {
				t.Errorf("%s: %d blocks, figures %+v", name, len(r.blocks()), g.Errors)
			}
		})
	}
}

// A node that finalizes nothing is not followed for ever.
func TestANodeThatFinalizesNothingIsTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		s := New(n.config())
		defer s.CloseIdle()
		f := s.newFollower(nil, nil, AccountsNone)
		f.chain = make([]link, maxUnfinal)
		for range patience {
			if more, err := f.goOn(t.Context()); more || err != nil {
				t.Fatalf("more %t, err = %v", more, err)
			}
		}
		s.stats.Connected()
		if got := s.Trouble(); !strings.Contains(got, "no block can be had since") || n.calls["getBlocks"] != 0 {
			t.Errorf("trouble %q, calls %v", got, n.calls)
		}
	})
}
