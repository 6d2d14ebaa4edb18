package upstream

import (
	"cmp"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

var update = flag.Bool("update", false, "rewrite what is told in testdata/stats.txt")

// TestStatsAreToldAsReported plays the scenes in testdata/stats.txt. A line is what a source reports, by the name of a method and with what it
// takes, or "wait" and a duration, in which a new slot may be seen each second. A line below it, with a "<",
// is what the figures tell after it: what changed of them, and the trouble.
func TestStatsAreToldAsReported(t *testing.T) {
	ledgertest.Scenes(t, "testdata/stats.txt", "## ", *update, func(t *testing.T, scene string) string {
		var text strings.Builder
		synctest.Test(t, func(t *testing.T) {
			var s Stats
			before := ""
			for i, line := range strings.Split(scene, "\n") {
				if strings.HasPrefix(line, "<") {
					continue
				}
				fmt.Fprintln(&text, line)
				switch words := strings.Fields(line); {
				case i == 0 || words[0] == "#":
				case words[0] == "wait":
					d, err := time.ParseDuration(words[1])
					ledgertest.Must(t, err)
					for ; len(words) > 2 && d > 0; d -= time.Second { // seeing a new slot each second
						time.Sleep(time.Second)
						s.Saw(s.Snapshot().UpstreamSlot + 1)
					}
					time.Sleep(d)
				default:
					report(&s, words)
				}
				if now := told(&s); now != before {
					fmt.Fprintf(&text, "< %s\n", now)
					before = now
				}
			}
		})
		return "## " + text.String() + "\n"
	})
}

// told tells the figures that are not zero, and the trouble.
func told(s *Stats) string {
	n := s.Snapshot()
	text := fmt.Sprintf("connected %t since %s, %d peers, connects %d, again %d", n.Connected, n.Since.Format(time.TimeOnly), s.Peers(), n.Connects, n.Reconnects)
	if n.UpstreamSlot+n.SealedSlot > 0 {
		text += fmt.Sprintf("; node at %d, here %d, lag %d, %v", n.UpstreamSlot, n.SealedSlot, n.LagSlots, n.Lag)
	}
	if n.Gaps > 0 {
		text += fmt.Sprintf("; gaps %d of %d slots, repaired %d, open %t", n.Gaps, n.GapSlots, n.GapsRepaired, n.Gap.Open())
	}
	if n.Node != "" {
		text += fmt.Sprintf("; of %v %s", n.Nodes, n.Node)
	}
	for kind, count := range n.Errors {
		if count > 0 {
			text += fmt.Sprintf("; %v %d", Kind(kind), count)
		}
	}
	return text + "\n<   " + cmp.Or(s.Trouble(), "no trouble")
}

// report calls the method that a line names.
func report(s *Stats, words []string) {
	method := reflect.ValueOf(s).MethodByName(words[0])
	var args []reflect.Value
	for i, word := range words[1:] {
		n, _ := strconv.ParseUint(word, 10, 64)
		arg := reflect.ValueOf(n)
		switch in := method.Type().In(i); in {
		case reflect.TypeFor[time.Duration]():
			d, _ := time.ParseDuration(word)
			arg = reflect.ValueOf(d)
		case reflect.TypeFor[[]string]():
			arg = reflect.ValueOf(strings.Split(word, ","))
		case reflect.TypeFor[Kind]():
			n := slices.IndexFunc(kinds[:], func(k struct{ name, reason string }) bool { return k.name == word })
			arg = reflect.ValueOf(Kind(n))
		default:
			arg = arg.Convert(in)
		}
		args = append(args, arg)
	}
	method.Call(args)
}

func TestEveryKindHasItsWords(t *testing.T) {
	seen := make(map[string]bool)
	for k := range Kinds {
		isNew := k.String() != "" && k.Reason() != "" && !seen[k.String()] && !seen[k.Reason()]
		ledgertest.Holds(t, isNew, "kind %d: name %q, reason %q", k, k, k.Reason())
		seen[k.String()], seen[k.Reason()] = true, true
	}
}
