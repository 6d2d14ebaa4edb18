package budget

import (
	"flag"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// F47: TestMemoryIsTakenInOrder plays the scenes of testdata, each with a budget of 8,000 bytes, and holds what go test -update writes behind each =>: how
// often it was granted, and what answers and sockets hold then.
//
//	fetch                                 an account that is not held is to be fetched
//	answers|sockets take|hold|allows N    something is begun, goes on, or is kept by who holds N; xM: M times, or until it is refused; for CLIENT: by one of many
func TestMemoryIsTakenInOrder(t *testing.T) {
	ledgertest.Scenes(t, "testdata/budget.txt", "== ", *update, func(t *testing.T, scene string) string {
		b := New(8000)
		name, lines, _ := strings.Cut(scene, "\n")
		got := "== " + name + "\n"
		for line := range strings.SplitSeq(lines, "\n") {
			line, _, _ = strings.Cut(line, " => ")
			if got += line; askedLine.MatchString(line) {
				got += b.asked(askedLine.FindStringSubmatch(line))
			}
			got += "\n"
		}
		return got + "\n"
	})
}

var askedLine = regexp.MustCompile(`^(fetch|answers|sockets) ?(\w*) ?(-?\d*)(?: x(\d+))?(?: for (\S+))?$`)

// asked does what a line says, and tells what comes of it.
func (b *Budget) asked(words []string) string {
	part := map[string]*Part{"answers": &b.Answers, "sockets": &b.Sockets}[words[1]]
	bytes, _ := strconv.Atoi(words[3])
	client, err := netip.ParseAddr(words[5])
	do := map[string]func() bool{
		"":       b.MayFetch,
		"take":   func() bool { return err != nil && part.Take(bytes) || err == nil && part.TakeFor(client, bytes) },
		"allows": func() bool { return part.Allows(bytes) },
		"hold": func() bool {
			if err != nil {
				part.Hold(bytes)
			} else {
				part.HoldFor(client, bytes)
			}
			return true
		},
	}[words[2]]
	times, _ := strconv.Atoi(words[4])
	granted := 0
	for granted < max(times, 1) && do() {
		granted++
	}
	return fmt.Sprintf(" => %d; answers %d of %d clients, sockets %d", granted, b.Answers.Used(), len(b.Answers.clients), b.Sockets.Used())
}
