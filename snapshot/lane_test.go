package snapshot

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// isEmpty fails the test if something is left in the lane.
func (l *lane) isEmpty(t *testing.T) {
	t.Helper()
	synctest.Wait()
	ledgertest.Holds(t, len(l.waiting) == 0 && l.present == nil, "%d questions wait, one is answered: %t", len(l.waiting), l.present != nil)
}

// TestClientsShareTheTurnsOfALane has clients, each a letter, ask one after the other while the first question is answered, and some again whenever
// they are answered; then it ends one answer at a time. Whose are next tells that a single client has all turns, several have them in turn, and
// the one with the most questions gives way where too many wait.
func TestClientsShareTheTurnsOfALane(t *testing.T) {
	full := strings.Repeat("a", 1+mostWaiting)
	for asked, tt := range map[string]struct {
		given   string // the clients in the order of their turns
		refused string
		times   map[byte]int // how often a client asks; of others: once
	}{
		"aaaa":                       {given: "aaaa"},
		"aaaab":                      {given: "abaaa"},
		"aaaabbc":                    {given: "abcabaa"},
		"aaabb":                      {given: "ababa"},
		"aaabcbc":                    {given: "abcabca"},
		"abcc":                       {given: "abccababab", times: map[byte]int{'a': 4, 'b': 4}},
		full + "a":                   {given: full, refused: "a"},
		full + "b":                   {given: "ab" + full[2:], refused: "a"},
		full[:mostWaiting] + "bb":    {given: "abab" + full[4:], refused: "a"},
		full[:mostWaiting-2] + "bbb": {given: "ababab" + full[6:]},
		full[:2] + strings.Repeat("b", mostWaiting-1) + "a": {given: "ababba" + strings.Repeat("b", mostWaiting-5), refused: "b"},
	} {
		bubbletest.Test(t, func(t *testing.T) {
			l := &lane{log: quiet}
			var given, refused []byte
			turn := make(chan struct{})
			for _, c := range []byte(asked) {
				go func() {
					for range max(1, tt.times[c]) {
						err := l.ask(Asker{netip.AddrFrom4([4]byte{c}), time.Now().Add(time.Hour)}, func() error {
							given = append(given, c)
							<-turn
							return nil
						})
						if err == errCrowded {
							refused = append(refused, c)
						}
					}
				}()
				synctest.Wait()
			}
			for l.present != nil {
				turn <- struct{}{}
				synctest.Wait()
			}
			slices.Sort(refused)
			if string(given) != tt.given || string(refused) != tt.refused {
				t.Errorf("%s: %s had turns, %s were refused; want %s, %s", asked, given, refused, tt.given, tt.refused)
			}
			l.isEmpty(t)
		})
	}
}

// TestALateQuestionLeavesItsLane has the answer to a question take longer than its deadline, and that of one behind it: both end in time, and the lane
// goes on with the next one.
func TestALateQuestionLeavesItsLane(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l := &lane{log: quiet}
		turn, ended := make(chan struct{}), make(chan error, 3)
		ask := func(client byte, longest time.Duration) {
			go func() {
				ended <- l.ask(Asker{netip.AddrFrom4([4]byte{client}), time.Now().Add(longest)}, func() error {
					<-turn
					return nil
				})
			}()
			synctest.Wait()
		}
		ask(1, time.Second)
		ask(2, time.Hour)
		ask(1, time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		for range 2 {
			ledgertest.MustHold(t, len(ended) > 0, "a question has not ended at its deadline")
			ledgertest.ErrorIs(t, <-ended, errLate, "a question after its deadline")
		}
		turn <- struct{}{} // nobody waits for the first answer any more
		turn <- struct{}{}
		must(t, <-ended)
		l.isEmpty(t)
	})
}

func breaks() error { panic("broken") }

// TestAPanicIsOfWhoAsks has answers panic, one of them after its deadline: who waits has the panic, the log tells where each was, and the lane goes on.
func TestAPanicIsOfWhoAsks(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		l := &lane{log: slog.New(slog.NewTextHandler(&logged, nil))}
		by := Asker{Deadline: time.Now().Add(time.Hour)}
		func() {
			defer func() { ledgertest.Equal(t, recover(), any("broken"), "the panic of who asks") }()
			_ = l.ask(by, breaks)
		}()
		late := make(chan struct{})
		err := l.ask(Asker{Deadline: time.Now().Add(time.Second)}, func() error {
			<-late
			return breaks()
		})
		ledgertest.ErrorIs(t, err, errLate, "a question whose answer comes late")
		close(late)
		must(t, l.ask(by, func() error { return nil }))
		l.isEmpty(t)
		if got := logged.String(); strings.Count(got, "panic=broken") != 2 || strings.Count(got, "snapshot.breaks(") != 2 {
			t.Errorf("the log says %q", got)
		}
	})
}
