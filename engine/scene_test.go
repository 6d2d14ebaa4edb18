package engine

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
	"ledgerd/snapshot/vfs/vfstest"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

// F4, F5, F6, F7, F8, F10, F11, F13, F14, F15, F16, F18, F21, F22, F24, F28, F29, F34, F46, F47, F48, F53, F54, G24: TestScenes repeats the scenes in testdata. Each has an engine of its own and the time of a bubble. A line is what is done, and the lines
// below it, with a "<", are all that comes of it: questions that are answered, what another node is asked for, what health says when
// that changes, and how the engine ends. A question that is not answered yet is answered below a later line. go test -update writes these lines, and they are reviewed like code.
//
//	## TEXT                         begins a scene
//	with SETTING [N]...             sets up the engine, before the first block: see settings
//	start                           starts it before the first block, which does so else
//	block NAME [on NAME] [is LEVEL] [ACCOUNT]...   shows a block, named by its slot or SLOT.FORK, on the one that was shown last
//	unseen NAME [on NAME]           makes a block without showing it
//	again NAME                      shows a block again
//	bare SLOT PARENT [LEVEL]        shows a block without the hash of its parent
//	base SLOT [ACCOUNT]...          shows accounts as they stand at the block of a slot
//	tells SLOT [ACCOUNT]...         shows accounts as of a slot, which the chain need not have reached
//	NAME STATUS                     says what became of a block
//	slot SLOT STATUS                says what became of the block of a slot
//	blocks SLOT [ACCOUNT]...        shows blocks up to a slot, all of which write the same; "sized N" before the accounts makes each count as N bytes
//	final N [every TIME]            shows N blocks, in which account 1 has as many lamports as the slot says, each on the one before, which is final then
//	until-paused                    shows such blocks, of which none becomes final, until ingest waits
//	until-full                      shows such blocks as long as ingest takes them at once, and says how many that are
//	end                             ends the input
//	latest [LEVEL], find SLOT       asks for the latest block, or that of a slot
//	transaction SLOT                asks for the transaction of a block that "final" showed
//	await [LEVEL] [min SLOT] [within TIME]   waits as a question does
//	told                            shows the updates that subscribers were told of since the last time
//	ask N [LEVEL] [min SLOT] [within TIME] [until TIME]   asks for account N
//	look N                          looks at account N as a list of accounts shows it
//	mint N                          looks at mint N
//	want N...                       wants accounts as a subscription does
//	node SLOT [ACCOUNT]...          has the other node stand at a slot, with these accounts changed
//	node DOES                       has it do something from here on: see manners
//	wait TIME                       lets time pass; the time "fold" is that after which versions are folded
//	memory short, memory enough     says whether there is memory for more accounts
//	stream                          has the source be a stream
//	restart, stop                   starts again after a power cut, or ends
//	figures                         shows what is counted
//	power-cut                       starts again on what was on the disk before it stopped
//	cancel                          has it stop, and waits for nothing
//	serve                           starts it without a source, on what the disk holds
//	disk DOES                       has the disk be full or fail, or be well again: see harm
//	holds                           shows what a power cut would leave on the disk
//	snapshots, history              shows what is counted of snapshots, and which blocks are held where
//	state, resume                   shows the state hash and the first slot, or where the source goes on
//	verify                          verifies the snapshots on the disk
//	exports                         shows what comes of an export of what the disk holds
//	follows-export                  stops, and goes on with another node, which follows an export of what the disk holds
//	shards-hold ACCOUNT...          has the shards hold what no record tells
//	shard-breaks N                  has the shard of account N panic
//	recent                          asks for the newest transactions
//	lists                           shows which lists may lack accounts, and what is said of accounts that are not held
//	source TELLS                    has the source tell of its connection: see tellOfSource
//	as NAME [replica]               goes on with a node of a cluster, which has the source too unless it is a replica; what comes of a line is told for all of them
//
// What only a node of a cluster does is in scenenodes_test.go.
//
// An account is N=LAMPORTS of the system program, N=LAMPORTS/OWNER of program N, with :DATA where its data is told; an OWNER of ? shows nothing but
// the lamports, sysvar is that program, and mint, mint+ and mint- are mints of Token-2022: not telling whether they are scaled, scaled, and not.
func TestScenes(t *testing.T) {
	ledgertest.Scenes(t, "testdata/*.txt", "## ", *update, func(t *testing.T, text string) (played string) {
		bubbletest.Test(t, func(t *testing.T) { played = play(t, text) })
		return played
	})
}

// stage is what the nodes of a scene share.
type stage struct {
	text   strings.Builder
	blocks map[string]*ledger.Block
	tip    *ledger.Block
	log    *sharedLedger // nil: there is one node, without a name
	nodes  []*scene
}

// scene is a scene while it is played, as far as one node is concerned.
type scene struct {
	*testing.T
	*stage
	clusterPart
	info   ledger.SourceInfo
	config Config
	owners []ledger.Pubkey // of the filter
	filter *ledger.Filter
	data   *ledger.DataPrograms

	n         *subject // nil before the first block
	disk      *vfstest.Memory
	kept      *vfstest.Memory // what it was once
	keptTip   *ledger.Block   // then
	faulty    *vfstest.Faulty // the same as disk
	release   func()          // ends the stall of the disk
	upstream  *upstream.Stats // that the source tells of; nil: it tells nothing
	node      *fakeNode
	short     atomic.Bool // of memory
	waiting   []question
	asked     int    // how many of the node's questions are written
	unhealthy string // what health said last
	degraded  string
	logged    bytes.Buffer // since the last start
	told      int          // how many records are written
	ended     bool
}

// question is one about an account that is not answered yet.
type question struct {
	name string
	c    <-chan reply
}

// play repeats a scene and returns it with what came of each line.
func play(t *testing.T, text string) string {
	t.Helper()
	s := newScene(t, &stage{blocks: make(map[string]*ledger.Block)})
	title, lines, _ := strings.Cut(strings.TrimRight(text, "\n"), "\n")
	fmt.Fprintf(&s.text, "## %s\n", title)
	for line := range strings.SplitSeq(lines, "\n") {
		if strings.HasPrefix(line, "< ") {
			continue
		}
		fmt.Fprintln(&s.text, line)
		if words := strings.Fields(line); len(words) > 1 && words[0] == "as" {
			s = s.as(words[1], len(words) > 2)
		} else {
			s.do(words)
		}
		for _, n := range s.nodes {
			n.tell()
		}
	}
	return s.text.String() + "\n"
}

// newScene adds a node, which does not run yet, to a stage.
func newScene(t *testing.T, on *stage) *scene {
	s := &scene{T: t, stage: on, info: partial(), disk: vfstest.NewMemory(), node: newFakeNode(100)}
	s.config = Config{Shards: 2, Fetcher: s.node, MayFetch: func() bool { return !s.short.Load() }}
	s.nodes = append(s.nodes, s)
	return s
}

// start runs the engine on what the disk holds.
func (s *scene) start() {
	if s.faulty == nil {
		s.faulty = vfstest.NewFaulty(s.disk, vfstest.Plan{})
	}
	c := onDisk(s, s.faulty, s.config)
	s.logged.Reset()
	c.Logger = slog.New(slog.NewTextHandler(&s.logged, nil))
	if s.ended = false; s.log != nil {
		s.startMember(c)
		return
	}
	must(s, c.Dir.Bind(&s.info, s.filter, s.data, false))
	ledgertest.Equal(s, New(c).Status().NotReady, ledger.ErrRecovering, "why it is not ready before it runs")
	s.n = startNode(s.T, s.info, c)
	if s.upstream != nil {
		s.n.source.trouble = s.upstream.Trouble
	}
	synctest.Wait()
}

// do does what a line says.
func (s *scene) do(words []string) {
	s.Helper()
	if len(words) == 0 || words[0] == "#" {
		return
	}
	verb, words := words[0], words[1:]
	switch verb {
	case "with":
		settings[words[0]](s, words[1:])
	case "start":
		s.start()
	case "block", "unseen":
		s.block(words[0], words[1:], verb == "block")
	case "bare":
		s.emit(&ledger.Block{
			Slot: s.number(words[0]), ParentSlot: s.number(words[1]), Blockhash: hash(1), Status: s.query(words[2:]).Commitment,
		})
	case "blocks":
		for last := s.number(words[0]); s.tip.Slot < last; {
			s.block(fmt.Sprint(s.tip.Slot+1), words[1:], true)
		}
	case "end":
		s.n.endInput()
	case "slot":
		s.emit(&ledger.SlotStatus{Slot: s.number(words[0]), Status: named(s, statuses, words[1])})
	case "latest":
		_, _, err := s.n.LatestBlock(s.query(words))
		s.say("the latest block: %v", err)
	case "find":
		_, _, err := s.n.Block(ledger.Query{}, s.number(words[0]))
		s.say("the block of slot %s: %v", words[0], err)
	case "await":
		begun, err := time.Now(), s.n.Await(s.query(words))
		s.say("waited %v: %v", time.Since(begun), err)
	case "told":
		records := s.n.records()
		for _, r := range records[s.told:] {
			for _, u := range r.Updates {
				s.say("told at slot %d: %s=%d", r.Slot, s.names([]ledger.Pubkey{u.Account.Pubkey}), u.Account.Lamports)
			}
		}
		s.told = len(records)
	case "base":
		slot := s.number(words[0])
		s.emit(&ledger.BaseState{Slot: slot, After: slot, Accounts: s.accounts(words[1:])})
	case "ask":
		s.waiting = append(s.waiting, question{words[0], s.n.ask(s.query(words[1:]), s.keys(words[0])[0])})
	case "look":
		accounts, v, err := s.n.Accounts(ledger.Query{}, s.keys(words...))
		must(s, err)
		s.answer(words[0], reply{account: accounts[0], view: v})
	case "mint":
		mints, _, err := s.n.Mints(ledger.Query{}, s.keys(words...))
		must(s, err)
		if mints[0] == nil {
			s.say("no mint %s", words[0])
		} else {
			s.say("mint %s has %d decimals, scaled: %v", words[0], mints[0].Decimals, mints[0].Scaled)
		}
	case "want":
		s.n.Want(s.keys(words...)...)
	case "node":
		s.instruct(words[0], s.accounts(words[1:]))
	case "wait":
		time.Sleep(s.duration(words[0]))
	case "memory":
		s.short.Store(words[0] == "short")
	case "stream":
		s.n.info.Store(&ledger.SourceInfo{Stream: true})
	case "restart":
		if !s.ended {
			s.n.mustStop()
		}
		s.disk, s.faulty = s.disk.Crash(0, 1), nil
		s.start()
	case "stop":
		s.n.close()
	case "figures":
		f := s.n.Stats().Fill
		s.say("found %d, missing %d, unavailable %d, in %d requests for %d keys, %d of them stale, %d failed; %d wait",
			f.Found, f.Missing, f.Unavailable, f.Fetches, f.Keys, f.Stale, f.Failures, f.Waiting)
	default:
		do := verbs[verb]
		if do == nil && s.log != nil {
			do = nodeVerbs[verb]
		}
		if do != nil {
			do(s, words)
		} else {
			s.emit(status(s.blocks[verb], named(s, statuses, words[0])))
		}
	}
}

var statuses = map[string]ledger.Status{
	"confirmed": ledger.StatusConfirmed, "finalized": ledger.StatusFinalized, "dead": ledger.StatusDead,
}

// emit shows an event, which may end the engine.
func (s *scene) emit(e ledger.Event) {
	if s.n == nil {
		s.start()
	}
	s.n.try(e)
}

// block makes a block, the first one a root, and shows it.
func (s *scene) block(name string, words []string, show bool) {
	s.Helper()
	number, fork, _ := strings.Cut(name, ".")
	slot, parent := s.number(number), s.tip
	branch, _ := strconv.Atoi(fork)
	if len(words) > 0 && words[0] == "on" {
		parent, words = s.blocks[words[1]], words[2:]
	}
	var claims ledger.Commitment
	if len(words) > 0 && words[0] == "is" {
		claims, words = s.query(words[1:2]).Commitment, words[2:]
	}
	size := 0
	if len(words) > 0 && words[0] == "sized" {
		size, words = int(s.number(words[1])), words[2:]
	}
	b := rootBlock(slot, s.accounts(words)...)
	if parent != nil {
		b = child(parent, slot, branch, b.Accounts...)
	}
	sized(b, size)
	b.Status = claims
	if s.blocks[name] = b; show {
		s.tip = b
		s.emit(b)
	}
}

// instruct has the other node stand at a slot, or do something.
func (s *scene) instruct(what string, accounts []ledger.AccountWrite) {
	s.Helper()
	if slot, err := strconv.ParseUint(what, 10, 64); err == nil {
		s.node.at(ledger.Slot(slot), accounts...)
	} else if what == "goes-on" {
		s.node.hold(0, nil)
	} else {
		manners[what](s, accounts)
	}
}

// say writes a line of what came.
func (s *scene) say(format string, args ...any) {
	fmt.Fprintf(&s.text, "< "+s.prefix()+format+"\n", args...)
}

// tell writes what came of a line, once nothing moves.
func (s *scene) tell() {
	if synctest.Wait(); s.n == nil {
		return
	}
	s.node.mu.Lock()
	var asked []string
	for _, keys := range s.node.asked[s.asked:] {
		asked = append(asked, s.names(keys))
	}
	s.asked = len(s.node.asked)
	s.node.mu.Unlock()
	for len(asked) > 0 {
		times := slices.IndexFunc(append(asked, ""), func(a string) bool { return a != asked[0] })
		s.say("the node is asked for %s%s", asked[0], map[bool]string{false: fmt.Sprintf(", %d times", times)}[times == 1])
		asked = asked[times:]
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(q question) bool {
		select {
		case r := <-q.c:
			r.account.Known &^= ledger.FieldData // which is told by lists alone
			s.answer(q.name, r)
			return true
		default:
			return false
		}
	})
	if !s.ended && s.n.hasEnded() {
		s.ended = true
		why, _, _ := strings.Cut(fmt.Sprint(s.n.err), "\ngoroutine ") // where a shard broke is another place each time
		s.say("the engine ended: %s", why)
	}
	s.tellStanding()
	if why := s.health(); why != s.unhealthy {
		s.unhealthy = why
		s.say("health: %s", cmp.Or(why, "well"))
	}
	if d := fileHash.ReplaceAllString(s.n.Status().Degraded, ""); d != s.degraded {
		s.degraded = d
		s.say("degraded: %s", cmp.Or(d, "in nothing"))
	}
}

// fileHash is what the name of a history file has of its hash, which is that of what the compressor made.
var fileHash = regexp.MustCompile(`-[0-9a-f]{16}\b`)

// lags is why a node is not well that takes what comes.
var lags = regexp.MustCompile(`^(no block for|starting: no block has come [^:]*: |starting: the node has not caught up|behind the shared log|ingest waits: the shared log)`)

// health returns why a node is not well, or not ready.
func (s *scene) health() string {
	status := s.n.Status()
	ledgertest.Equal(s, status.Lags, lags.MatchString(status.Unhealthy), "whether it lags, where health says %q", status.Unhealthy)
	if status.NotReady != nil {
		return fmt.Sprintf("%s; not ready: %v", status.Unhealthy, status.NotReady)
	}
	return status.Unhealthy
}

// answer writes what was answered of an account.
func (s *scene) answer(name string, r reply) {
	var upstream *ledger.UpstreamError
	if r.took > 0 {
		name += fmt.Sprintf(" after %v", r.took)
	}
	switch a := r.account; {
	case errors.As(r.err, &upstream):
		s.say("%s: unavailable: %v; to be asked again in %v", name, r.err, upstream.RetryAfter)
	case errors.Is(r.err, ledger.ErrNotFound):
		s.say("%s: not found: %v", name, r.err)
	case r.err != nil:
		s.say("%s: %v", name, r.err)
	default:
		known := "shown in part"
		if a.Unknown() == 0 {
			known = "of " + s.names([]ledger.Pubkey{a.Owner})
		}
		if a.Known&ledger.FieldData != 0 {
			known += fmt.Sprintf(" with data %q", a.Data.Bytes())
		}
		tip := r.view.Tip()
		s.say("%s: %d lamports, %s, at slot %d, version %d, update %d", name, a.Lamports, known, tip.Slot, tip.Version, tip.Seq)
	}
}

var programs = map[ledger.Pubkey]string{ledger.SystemProgram: "the system program", ledger.SysvarProgram: "sysvar"}

// names returns the numbers of keys.
func (s *scene) names(keys []ledger.Pubkey) string {
	var all []string
	for _, k := range keys {
		name := cmp.Or(programs[k], k.String())
		for n := range 100 {
			if key(n) == k {
				name = fmt.Sprint(n)
			}
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// query returns the query that words tell.
func (s *scene) query(words []string) (q ledger.Query) {
	s.Helper()
	for ; len(words) > 0; words = words[1:] {
		switch level, ok := ledger.ParseCommitment(words[0]); {
		case ok:
			q.Commitment = level
		case words[0] == "min":
			q.MinSlot, words = s.number(words[1]), words[1:]
		case words[0] == "within":
			q.Wait, words = s.duration(words[1]), words[1:]
		case words[0] == "until":
			q.Deadline, words = time.Now().Add(s.duration(words[1])), words[1:]
		default:
			s.Fatalf("%q says nothing of a question", words[0])
		}
	}
	return q
}

func (s *scene) number(word string) ledger.Slot {
	s.Helper()
	n, err := strconv.ParseUint(word, 10, 64)
	must(s, err)
	return ledger.Slot(n)
}

func (s *scene) duration(word string) time.Duration {
	s.Helper()
	if word == "fold" {
		return foldAfter
	}
	d, err := time.ParseDuration(word)
	must(s, err)
	return d
}

// keys returns the keys of the numbers that words tell.
func (s *scene) keys(words ...string) (all []ledger.Pubkey) {
	s.Helper()
	for _, word := range words {
		switch word {
		case "token":
			all = append(all, ledger.TokenProgram)
		case "token-2022":
			all = append(all, ledger.Token2022Program)
		default:
			all = append(all, key(int(s.number(word))))
		}
	}
	return all
}

var anAccount = regexp.MustCompile(`^(\d+)=(\d+)(?:/(\w+|\?)([+-]?))?(?::(\w*))?$`)

// accounts returns those that words name.
func (s *scene) accounts(words []string) (all []ledger.AccountWrite) {
	s.Helper()
	for _, word := range words {
		m := anAccount.FindStringSubmatch(word)
		if m == nil {
			s.Fatalf("%q is no account", word)
		}
		w := lamports(key(int(s.number(m[1]))), ledger.Lamports(s.number(m[2])))
		switch m[3] {
		case "":
		case "?":
			w.Owner, w.Known = ledger.Pubkey{}, 0
		case "sysvar":
			w.Owner = ledger.SysvarProgram
		case "mint":
			w.Owner, w.Mint = ledger.Token2022Program, &ledger.Mint{Decimals: 6}
			if m[4] != "" {
				w.Mint.Scaled = ledger.Some(m[4] == "+")
			}
		default:
			w.Owner = key(int(s.number(m[3])))
		}
		if strings.Contains(word, ":") {
			w.SetData([]byte(m[5]), s.data)
		}
		all = append(all, w)
	}
	return all
}
