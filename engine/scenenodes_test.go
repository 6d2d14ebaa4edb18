package engine

import (
	"fmt"
	"slices"
	"testing/synctest"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// clusterPart is what a node of a cluster has besides.
type clusterPart struct {
	name     string // "": the only node
	replica  bool   // it has no source
	member   *member
	standing string       // as it was told last
	head     *ledger.Head // that was remembered
}

func (c *clusterPart) prefix() string {
	if c.name == "" {
		return ""
	}
	return c.name + ": "
}

// as returns the node of a name. One that is new is set up as the one before it, and does not run yet.
func (s *scene) as(name string, replica bool) *scene {
	if i := slices.IndexFunc(s.nodes, func(n *scene) bool { return n.name == name }); i >= 0 {
		return s.nodes[i]
	}
	if s.log == nil {
		s.log, s.nodes = newSharedLedger(), nil
		s.log.info = s.info
	}
	n := newScene(s.T, s.stage)
	fetcher := n.config.Fetcher
	n.name, n.replica, n.info, n.config = name, replica, s.info, s.config
	if n.config.Fetcher != nil {
		n.config.Fetcher = fetcher
	}
	return n
}

// startMember runs the engine over the shared log.
func (s *scene) startMember(c Config) {
	var source ledger.Source
	if !s.replica {
		source = newScript(s.info)
	}
	n := startMember(s.T, s.log, source, c)
	s.n, s.member = n.subject, n.member
	if synctest.Wait(); s.n.Head() == nil { // as every node at its start
		s.standing, s.unhealthy = s.stands(), s.health()
	}
}

// tellStanding says where a node of a cluster stands, when that changed.
func (s *scene) tellStanding() {
	if s.log == nil || s.ended {
		return
	}
	if standing := s.stands(); standing != s.standing {
		s.standing = standing
		s.say("%s", standing)
	}
}

// stands tells where a node of a cluster stands.
func (s *scene) stands() string {
	standing := "shows nothing"
	if h := s.n.Head(); h != nil {
		tip := h.Tip(ledger.Processed)
		standing = fmt.Sprintf("stands at slot %d, record %d, update %d, of which slot %d is final", tip.Slot, tip.Version, tip.Seq, h.Tip(ledger.Finalized).Slot)
	}
	if s.log.writer == s.member {
		standing += ", and writes the log"
	}
	if s.member.resigned.Load() {
		standing += ", and resigned"
	}
	return standing
}

// nodeVerbs are what a scene can do with a node of a cluster.
var nodeVerbs = map[string]func(s *scene, words []string){
	// The node is to write the log, once it holds it.
	"leads":       func(s *scene, _ []string) { s.log.grant(s.member) },
	"cut-off":     func(s *scene, _ []string) { s.member.cutOff(true) },
	"reaches-log": func(s *scene, _ []string) { s.member.cutOff(false) },
	// What the node follows ends with an error, behind the next commit.
	"follow-ends": func(s *scene, words []string) { s.member.fails = named(s, endings, words[0]) },
	// The next commit that it follows is another one.
	"tampered": func(s *scene, words []string) {
		tamper := named(s, tampers, words[0])
		s.member.damage = func(c []*ledger.Record) []*ledger.Record { return append(c, tamper(c[0])...) }
	},
	"log": (*scene).harmLog,
	// Two nodes show the same, and published the same records as far as both did.
	"same": func(s *scene, words []string) {
		other := s.as(words[0], false)
		same(s.T, words[0], s.n.Engine, other.n.Engine)
		own, others := s.n.records(), other.n.records()
		for _, r := range own {
			if i := slices.IndexFunc(others, func(o *ledger.Record) bool { return o.Version == r.Version }); i >= 0 {
				ledgertest.Equal(s, encoded(others[i:i+1]), encoded([]*ledger.Record{r}), "record %d", r.Version)
			}
		}
	},
	"remember": func(s *scene, _ []string) { s.head = s.n.Head() },
	// Asks at the head that was remembered, and for what was published before.
	"ask-then": func(s *scene, words []string) {
		r := <-s.n.ask(ledger.Query{Head: s.head}, s.keys(words[0])[0])
		s.answer(words[0], r)
		s.say("the past: %v", s.n.Past(3)(s.Context(), func(*ledger.Publication) bool { return true }))
	},
	"counts": func(s *scene, _ []string) {
		s.say("it counts %d blocks, and whether the source speaks of finality: %v", s.n.Stats().Blocks, s.n.config.Dir.Statuses())
	},
}

// harmLog does something to the shared log.
func (s *scene) harmLog(words []string) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	switch words[0] {
	case "is-out-of-reach": // by who starts from now on
		l.unreachable = true
	case "is-lost": // by who writes it
		l.before = func(*member, []*ledger.Record) error { return errLost }
	case "is-cut-to":
		l.commits = l.commits[:s.number(words[1])]
	case "goes-to": // at the next commit, which is not taken
		next := s.as(words[1], false).member
		l.before = func(*member, []*ledger.Record) error {
			l.before = nil
			l.grantLocked(next)
			return ledger.ErrDeposed
		}
	default:
		s.Fatalf("%q is nothing that a log does", words)
	}
}

var endings = map[string]error{"purged": ledger.ErrPurged, "lost": errLost}

// tampers change the record that a commit begins with, or add others to it.
var tampers = map[string]func(*ledger.Record) (more []*ledger.Record){
	"state-hash": func(r *ledger.Record) []*ledger.Record { r.StateHash[0]++; return nil },
	"account":    func(r *ledger.Record) []*ledger.Record { r.Block.Accounts[0].Lamports++; return nil },
	"left-out":   func(r *ledger.Record) []*ledger.Record { r.Version++; return nil },
	"elsewhere":  func(r *ledger.Record) []*ledger.Record { r.Block.Slot, r.Slot = 90, 90; return nil },
	"repeated": func(r *ledger.Record) []*ledger.Record {
		again := *r
		again.Version++
		return []*ledger.Record{&again}
	},
}
