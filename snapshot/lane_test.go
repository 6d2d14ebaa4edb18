package snapshot

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/ledger/ledgertest"
)

// TestClientsShareTheTurnsOfALane has clients, each a letter, ask one after the other while all turns are had, and gives these back one at a time: to whom
// they go tells that a single client has all turns, several have them in turn, and the one with the most questions gives way where too many wait.
func TestClientsShareTheTurnsOfALane(t *testing.T) {
	full := "aa" + "aaaaaaaaaaaaaa"
	for asked, tt := range map[string]struct {
		turns   int
		given   string // the clients in the order of their turns
		refused string
	}{
		"aaaa":                      {2, "aaaa", ""},
		"aaaab":                     {2, "aabaa", ""},
		"aaaabbc":                   {2, "aabcaba", ""},
		"aaabb":                     {1, "ababa", ""},
		"aaabcbc":                   {1, "abcabca", ""},
		full + "a":                  {2, full, "a"},
		full + "b":                  {2, "aab" + full[3:], "a"},
		full + "bb":                 {2, "aabab" + full[5:], "aa"},
		full[:9] + "bbbbbbb" + "cb": {2, "aabcabababababab", "ab"},
	} {
		bubble.Test(t, func(t *testing.T) {
			var l lane
			must(t, l.open(tt.turns))
			var given, refused []byte
			turn := make(chan struct{})
			for _, c := range []byte(asked) {
				go func() {
					client := netip.AddrFrom4([4]byte{c})
					z, err := l.take(Asker{client, time.Now().Add(time.Hour)})
					if err != nil {
						refused = append(refused, c)
						return
					}
					given = append(given, c)
					<-turn
					l.giveBack(client, z)
				}()
				synctest.Wait()
			}
			for range len(asked) - len(refused) {
				turn <- struct{}{}
				synctest.Wait()
			}
			slices.Sort(refused)
			if string(given) != tt.given || string(refused) != tt.refused {
				t.Errorf("%s, %d turns: %s had them, %s were refused; want %s, %s", asked, tt.turns, given, refused, tt.given, tt.refused)
			}
			if len(l.free) != tt.turns || len(l.last) > 0 || len(l.waiting)+len(l.reading) > 0 {
				t.Errorf("%s: %d turns are free, %d wait, %d read", asked, len(l.free), len(l.waiting), len(l.reading))
			}
		})
	}
}

// TestALateQuestionLeavesItsLane asks while the turn is had, until after the deadline: once as a client that had a turn while it waited.
func TestALateQuestionLeavesItsLane(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var l lane
		must(t, l.open(1))
		first, other := netip.AddrFrom4([4]byte{1}), netip.AddrFrom4([4]byte{2})
		z, err := l.take(Asker{first, time.Now().Add(time.Hour)})
		must(t, err)
		had := make(chan error)
		for _, by := range []Asker{{other, time.Now().Add(time.Hour)}, {first, time.Now().Add(time.Second)}} {
			go func() {
				_, err := l.take(by)
				had <- err
			}()
			synctest.Wait()
		}
		l.giveBack(first, z)
		must(t, <-had)
		ledgertest.ErrorIs(t, <-had, errLate, "a question after its deadline")
		l.giveBack(other, z)
		ledgertest.Equal(t, []int{len(l.free), len(l.waiting) + len(l.last)}, []int{1, 0}, "turns that are free, and what is left of the questions")
	})
}
