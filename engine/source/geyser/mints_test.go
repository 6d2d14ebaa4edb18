package geyser

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/yellowstone"
)

// fetcherFunc is a Fetcher.
type fetcherFunc func(keys []ledger.Pubkey) (*ledger.BaseState, error)

func (f fetcherFunc) Fetch(ctx context.Context, keys []ledger.Pubkey, _ ledger.Commitment) (*ledger.BaseState, error) {
	return f(keys)
}

// What a header does not tell of a mint is asked for once its block is confirmed, until the node knows it.
func TestMintsAreAskedForOnce(t *testing.T) {
	s := scenario{until: "block 150", script: func(c *call) error {
		mint := make([]byte, 168) // of Token-2022, with extensions
		mint[45], mint[165] = 1, 1
		for slot := ledger.Slot(101); ; slot++ {
			update := accountUpdate(slot, keyOf(77), ledger.Token2022Program, 5, uint64(slot)*100, mint)
			all := slices.Insert(block{slot: slot, parent: slot - 1}.messages(), 2, update)
			if err := c.send(append(all, slotUpdate(slot-1, yellowstone.Confirmed))...); err != nil {
				return err
			}
			time.Sleep(400 * time.Millisecond)
		}
	}}
	var asked []int
	fetch := fetcherFunc(func(keys []ledger.Pubkey) (*ledger.BaseState, error) {
		asked = append(asked, len(keys))
		state := &ledger.BaseState{Slot: 100, Accounts: []ledger.AccountWrite{{Pubkey: keyOf(77)}}}
		switch len(asked) {
		case 1:
			return nil, &ledger.UpstreamError{}
		case 2: // it is not there yet
			return state, nil
		case 3: // as it was before
			state.Accounts[0].Lamports = 5
			return state, nil
		}
		state.Slot, state.Accounts[0].Lamports = 103, 5
		return state, nil
	})
	s.config = func(c *Config) { c.Fetcher = fetch }
	s.run(t)
	ledgertest.Equal(t, s.of("base"), "104 of 1", "base state")
	ledgertest.Equal(t, len(asked), 4, "questions")
}

// cut is a block that shows the headers of mints.
func cut(slot ledger.Slot, keys ...ledger.Pubkey) *ledger.Block {
	b := &ledger.Block{Slot: slot}
	for _, key := range keys {
		b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: key, Lamports: 5, Mint: &ledger.Mint{}})
	}
	return b
}

// asker asks a fetcher for mints, in a bubble, and returns what it is to be told and what it found.
func asker(t *testing.T, fetch fetcherFunc) (*mints, func() []string) {
	t.Helper()
	c := Config{Fetcher: fetch, Random: func(n int64) int64 { return n / 2 }}.withDefaults()
	m := newMints(&c)
	ctx, cancel := context.WithCancel(t.Context())
	stop := m.start(ctx)
	t.Cleanup(func() { cancel(); stop() })
	return m, func() (found []string) {
		for {
			select {
			case state := <-m.found:
				for _, a := range state.Accounts {
					found = append(found, fmt.Sprintf("%d at %d", a.Pubkey[0], state.Slot))
				}
			case <-time.After(time.Minute):
				return found
			}
		}
	}
}

// A node may be behind for long, and about some mints only: each is asked for until it is answered, and none
// waits for another. That it is gone is an answer.
func TestMintsAreAskedForUntilTheyAreAnswered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		asked := map[byte]int{}
		m, found := asker(t, func(keys []ledger.Pubkey) (*ledger.BaseState, error) {
			state := &ledger.BaseState{Slot: 200}
			mu.Lock()
			defer mu.Unlock()
			for _, k := range keys {
				asked[k[0]]++
				a := ledger.AccountWrite{Pubkey: k, Lamports: 5}
				if k[0] == 3 {
					a.Lamports = 0 // gone
				}
				state.Accounts = append(state.Accounts, a)
			}
			if time.Since(began) < 10*time.Minute && slices.Contains(keys, keyOf(1)) {
				state.Slot = 100
			}
			return state, nil
		})
		m.confirmed(cut(150, keyOf(1)))
		m.confirmed(cut(90, keyOf(2), keyOf(3)))
		if got := found(); len(got) != 1 || got[0][:1] != "2" {
			t.Errorf("while the node is behind it finds %q", got)
		}
		time.Sleep(10 * time.Minute)
		ledgertest.Equal(t, fmt.Sprint(found()), "[1 at 201]", "what it finds then")
		mu.Lock()
		defer mu.Unlock()
		if asked[1] < 60 || asked[1] > 200 || asked[2] != 1 || asked[3] != 1 || len(m.some()) != 0 {
			t.Errorf("asked %v times, %d are left", asked, len(m.some()))
		}
	})
}

// Those that are remembered are bounded, and one that is closed is asked for again.
func TestMintsToAskForAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m, found := asker(t, func([]ledger.Pubkey) (*ledger.BaseState, error) { return nil, &ledger.UpstreamError{} })
		for n := range 2*keptMints + 10 {
			m.confirmed(cut(150, ledger.Pubkey{byte(n), byte(n >> 8), byte(n >> 16)}))
		}
		if got := found(); len(got) > 0 || len(m.slots) != 10 {
			t.Errorf("it finds %q, %d are remembered", got, len(m.slots))
		}
		m.confirmed(&ledger.Block{Accounts: []ledger.AccountWrite{{Pubkey: m.some()[0]}}})
		ledgertest.Equal(t, len(m.some()), 9, "mints to ask for after one was closed")
	})
}
