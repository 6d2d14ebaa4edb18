package wire

import (
	"cmp"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/ratelimit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// G3, F33, F34, F42: TestConnectionsAreCapped plays the scenes of testdata/caps.txt: connections come to two listeners of a server by turns, and behind =>
// it is told, and written by go test -update, how many are admitted. 10.0.0.0/24 is trusted, 10.0.1.0/24 exempt. Nothing is counted in the end.
//
//	ADDRESS xN         N connections come, or one, that stay open
//	ADDRESS xN key K   each sends a key, which may have so many sockets, or "any": those that do not count for it are closed
//	close ADDRESS      the oldest one of the address ends
//	caps A B C         there may be A connections, B of a client, C a minute
//	?                  tells what is counted
func TestConnectionsAreCapped(t *testing.T) {
	ledgertest.Scenes(t, "testdata/caps.txt", "== ", *update, func(t *testing.T, scene string) string {
		name, lines, _ := strings.Cut(scene, "\n")
		var exempt, perMinute int
		config := Config{Identity: testIdentity()}
		_, err := fmt.Sscanf(name, "%d in all, %d with exempt clients, %d of a client, %d a minute", &config.MaxConns, &exempt, &config.MaxConnsPerClient, &perMinute)
		must(t, err)
		s := New(config)
		s.SetCaps(config.MaxConns, config.MaxConnsPerClient, perMinute)
		s.caps.mostExempt = exempt
		listeners := []*listener{newListener(nil, &s.config, s.caps), newListener(nil, &s.config, s.caps)}
		var open []*Conn
		connect := func(from, key string) (admitted bool) {
			listeners[0], listeners[1] = listeners[1], listeners[0]
			c := listeners[0].admit(&addressed{from: from})
			if c == nil {
				return false
			}
			sockets, err := strconv.Atoi(key)
			client := ratelimit.Client{Key: netip.IPv6Unspecified().WithZone("key:" + key), Sockets: sockets, Exempt: err != nil}
			if key != "" && !c.CountFor(client) {
				_ = c.Close()
				return false
			}
			if key != "" && !c.CountFor(client) {
				t.Errorf("%s: a connection is refused when it sends its key again", from)
			}
			open = append(open, c)
			return true
		}
		var got strings.Builder
		fmt.Fprintln(&got, "==", name)
		for line := range strings.SplitSeq(lines, "\n") {
			line, _, _ = strings.Cut(line, " => ")
			got.WriteString(line)
			switch said := comesLine.FindStringSubmatch(line); {
			case said != nil:
				admitted := 0
				n, _ := strconv.Atoi(cmp.Or(said[2], "1"))
				for range n {
					if connect(said[1], said[3]) {
						admitted++
					}
				}
				fmt.Fprintf(&got, " => %d", admitted)
			case line == "?":
				refused := []uint64{s.Counts.RefusedTotal.Load(), s.Counts.RefusedClient.Load()}
				fmt.Fprintf(&got, " => %d open, %d refused in all and %d of clients", s.Connections(), refused[0], refused[1])
			case strings.HasPrefix(line, "caps "):
				var most, perClient, perMinute int
				_, err := fmt.Sscanf(line, "caps %d %d %d", &most, &perClient, &perMinute)
				must(t, err)
				s.SetCaps(most, perClient, perMinute)
			case strings.HasPrefix(line, "close "):
				i := slices.IndexFunc(open, func(c *Conn) bool { return line == "close "+c.Peer.Addr.String() })
				must(t, open[i].Close())
				ledgertest.ErrorIs(t, open[i].Close(), net.ErrClosed, "the second Close")
				open = slices.Delete(open, i, i+1)
			}
			got.WriteByte('\n')
		}
		for _, c := range open {
			must(t, c.Close())
		}
		ledgertest.Equal(t, []int{s.caps.count(), len(s.caps.clients)}, []int{0, 0}, "%s: connections and clients that are left", name)
		return got.String() + "\n"
	})
}

var comesLine = regexp.MustCompile(`^([0-9a-f.:]+)(?: x(\d+))?(?: key (\w+))?$`)
