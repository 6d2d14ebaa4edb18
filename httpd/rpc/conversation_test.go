package rpc

import (
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/budget"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

// TestConversations repeats the conversations in testdata. A file has scenes, each with a node of its own and the time of a bubble. A line is what is
// done, and the lines below it, with a "<", are all that is answered and told: go test -update writes them, and they are reviewed like code.
//
//	## NODE [: MANNER, MANNER]... begins a scene with one of nodes, and others that it asks with manners of testdata/manners
//	> METHOD PARAMS               calls a method; of the answer is written what is not the same in all
//	send METHOD PATH TYPE [BODY]  sends a request; of the answer are written the status, unusual headers and the body; a TYPE of - is none
//	post [BODY]                   sends a body to be answered with calls
//	NAME> METHOD PARAMS           calls a method over a WebSocket, which is opened when it is named first; NAME,NAME> over several
//	block SLOT [sigN] [ACCOUNT]... publishes a block with a transaction, <sigSLOT> or <sigN>
//	back SLOT [ACCOUNT]...        publishes the way back to a block
//	confirmed, final              has all be so
//	before LINE, after LINE       has this done before or after the ledger is asked for the next transaction
//	slow DURATION                 has the ledger take its time for each question, of two accounts of a list at most
//	each N LINE                   does what a line says so many times, with the number from 0 on in the place of $I
//	N> METHOD PARAMS              calls a method so many times at once; answers that are alike are written once
//	hundred METHOD PARAMS         calls a method a hundred times in a batch, likewise
//	sleep DURATION                lets time pass; how much an answer takes is written
//	refusals                      writes how many requests were refused for want of memory
//	others                        writes what other nodes were asked since, and what is thought of them
//	manner N MANNER               has the Nth of them have another manner
//	unavailable                   has the ledger answer nothing from here on
//
// An account is N=LAMPORTS/OWNER:DATA, where data that is left out is not known, and N=0 is closed; N~AMOUNT is token account N with another amount, or one of
// mint <20> that the wallet <4> has then.
// <N> is the key whose bytes are all N, <sigN> such a signature; $[TEXT*N] is the text N times. Of a long text its length and a checksum are
// written.
func TestConversations(t *testing.T) {
	asked := make(map[string]bool)
	ledgertest.Scenes(t, "testdata/*.txt", "## ", *update, func(t *testing.T, scene string) (played string) {
		bubbletest.Test(t, func(t *testing.T) { played = play(t, scene, asked) })
		return played
	})
	d, err := New(Config{Ledger: newFakeLedger()})
	must(t, err)
	for _, m := range d.methods[:len(d.methods)-1] {
		if !asked[m.name] {
			t.Errorf("no conversation asks %s", m.name)
		}
	}
}

// nodes are the nodes of scenes.
var nodes = map[string]func(*settings){
	"a node that holds all":    func(*settings) {},
	"a node that holds a part": func(s *settings) { s.lacks = true },
	"a node whose ledger has closed a mint": func(s *settings) {
		for _, k := range []ledger.Pubkey{scaled, native} {
			delete(s.Facts, k)
			delete(s.Held, k)
		}
	},
	"a node where others have the keys of mints": func(s *settings) {
		s.door.IndexMints = true
		delete(s.Facts, mint)
		delete(s.Facts, scaled)
		s.Put(ledger.Account{Pubkey: mint, Owner: ledger.TokenProgram, Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(make([]byte, 355))})
		s.Put(ledger.Account{Pubkey: scaled, Owner: ledger.SystemProgram, Lamports: 1, Known: ledger.FieldsShown})
	},
	"a node that moves on and has closed a mint": func(s *settings) {
		s.moves = true
		delete(s.Facts, native)
		delete(s.Held, native)
	},
	"a node that fetches": func(s *settings) {
		s.lacks, s.fetches = true, true
		delete(s.Facts, scaled)
		delete(s.Held, scaled)
	},
	"a node that fetches mints of which no tokens are held any more": func(s *settings) {
		s.lacks, s.fetches = true, true
		next := byte(60)
		s.fetched = func() {
			a := s.Held[testKey(32)]
			a.Token = &ledger.TokenAccount{Mint: testKey(next), Owner: wallet, Amount: uint64(next)}
			s.Put(a)
			s.Newest.Store(new(*s.Newest.Load()))
			next++
		}
		s.fetched()
	},
	"a node that asks others":   func(*settings) {},
	"a node that lists by mint": func(s *settings) { s.door.IndexMints = true },
	"a node with a hash":        func(s *settings) { s.door.GenesisHash, s.door.SlotsPerEpoch = testKey(5).String(), 8 },
	"a node whose memory is short": func(s *settings) {
		s.public.Memory, s.public.Metrics = budget.New(1<<20), metrics.NewSet()
		s.public.Memory.Sockets.Hold(600 << 10)
		s.public.Memory.Answers.Hold(200 << 10)
	},
	"a node with a megabyte":                  func(s *settings) { s.public.Memory, s.public.Metrics = budget.New(1<<20), metrics.NewSet() },
	"a node with half a megabyte for sockets": func(s *settings) { s.hub.Memory = budget.New(512 << 10) },
	"a node that recovers": func(s *settings) {
		s.err, s.State.NotReady = ledger.ErrRecovering, ledger.ErrRecovering
		s.State.Unhealthy = "recovering"
	},
	"a node that is behind": func(s *settings) {
		s.State.Unhealthy, s.State.SlotsBehind = "no block", ledger.Some[ledger.Slot](12)
	},
	"a node far ahead of its first block": func(s *settings) {
		head := *s.Newest.Load()
		for level := range head.Tips {
			head.Tips[level].Slot = 600_000
		}
		s.Newest.Store(&head)
	},
	"a node that is overloaded": func(s *settings) { s.err = ledger.ErrUnavailable },
	"a node that is stalled":    func(s *settings) { s.State.Unhealthy = "stalled" },
	"a node without heights": func(s *settings) {
		for _, b := range s.Chain {
			b.Height, b.Time = ledger.Opt[uint64]{}, ledger.Opt[int64]{}
		}
	},
	"a node that takes ten requests a minute": func(s *settings) { s.public.PerMinute = 10 },
	"a node that takes two requests a minute, and lists a mint that many hold": func(s *settings) {
		s.public.PerMinute, s.door.IndexMints = 2, true
		for n := range 50 {
			s.Put(ledger.Account{Pubkey: ledger.Pubkey{99, byte(n)}, Owner: ledger.TokenProgram, Lamports: 1, Known: ledger.FieldsShown | ledger.FieldToken,
				Token: &ledger.TokenAccount{Mint: mint, Owner: wallet, Amount: 1}})
		}
	},
	"a node without a log that keeps what it told last alone": func(s *settings) { s.hub.RecentBytes = 1 },
}

// conversation is a scene while it is played.
type conversation struct {
	*rig
	feed      *feed
	numbers   *metrics.Set
	sockets   []*socket
	upstreams []*fakeUpstream
	text      strings.Builder
}

// socket is a WebSocket of which all that comes is noted.
type socket struct {
	client
	name  string
	heard chan string
}

// play repeats a scene, whose first line is its node, and returns it with what was answered and told. It notes what was asked.
func play(t *testing.T, scene string, asked map[string]bool) string {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // until the cleaners of idle connections have slept out
	header, lines, _ := strings.Cut(strings.TrimRight(scene, "\n"), "\n")
	name, others, asks := strings.Cut(header, ": ")
	change := nodes[name]
	if change == nil {
		t.Fatalf("there is no node %q", name)
	}
	s := &settings{fakeLedger: newFakeLedger()}
	change(s)
	var manners []string
	if asks {
		manners = strings.Split(others, ", ")
		s.door.Forward = slices.Repeat([]string{"http://upstream"}, len(manners))
	}
	c := &conversation{numbers: s.public.Metrics}
	c.feed, c.rig = serveHub(t, s)
	c.upstreams = c.door.meet(t, manners...)
	fmt.Fprintf(&c.text, "## %s\n", header)
	for line := range strings.SplitSeq(lines, "\n") {
		if heardLine.MatchString(line) {
			continue
		}
		fmt.Fprintln(&c.text, line)
		if m := calledLine.FindStringSubmatch(line); m != nil {
			asked[m[1]] = true
		}
		c.do(line)
		c.hear()
	}
	return c.text.String() + "\n"
}

var (
	heardLine  = regexp.MustCompile(`^[\w,]*< `)
	calledLine = regexp.MustCompile(`^> (\w+)`)
	saidLine   = regexp.MustCompile(`^([\w,]*)> (\w+) (.*)$`)
	manyLine   = regexp.MustCompile(`^(\d+)> (\w+) (.*)$`)
	longText   = regexp.MustCompile(`"[^"]{1000,}"`)
	anAccount  = regexp.MustCompile(`^(\d+)(?:~(\d+)|=(\d+)(?:/(\w+))?(:.*)?)$`)
	replacer   = names()
)

// expand puts keys, signatures and repeated texts in their places.
func (c *conversation) expand(text string) string {
	return replacer.Replace(ledgertest.Repeated(c, text))
}

// do does what a line says.
func (c *conversation) do(line string) {
	c.Helper()
	words := append(strings.Fields(line), "", "")
	slot, _ := strconv.ParseUint(words[1], 10, 64)
	_, rest, _ := strings.Cut(line, " ")
	began := time.Now()
	defer func() {
		if took := time.Since(began); took > 0 && words[0] != "sleep" {
			fmt.Fprintf(&c.text, "time< %v\n", took)
		}
	}()
	if m := manyLine.FindStringSubmatch(line); m != nil {
		c.sayTogether(m[1], m[2], c.expand(m[3]))
		return
	}
	if m := saidLine.FindStringSubmatch(line); m != nil {
		c.say(m[1], m[2], c.expand(m[3]))
		return
	}
	switch words[0] {
	case "", "#":
	case "post":
		c.send("POST", "/", "application/json", c.expand(rest))
	case "send":
		parts := append(strings.SplitN(rest, " ", 4), "")
		c.send(parts[0], parts[1], strings.TrimPrefix(parts[2], "-"), c.expand(parts[3]))
	case "block":
		sig, changed := slot, words[2:]
		if text, named := strings.CutPrefix(changed[0], "sig"); named {
			sig, _ = strconv.ParseUint(text, 10, 8)
			changed = changed[1:]
		}
		c.feed.publish(testSignature(byte(sig)), ledger.BlockRecord, ledger.Slot(slot), 0, c.accounts(changed)...)
	case "back":
		from := c.ledger.Newest.Load().Tips[ledger.Processed].Slot
		c.feed.publish(ledger.Signature{}, ledger.RollbackRecord, ledger.Slot(slot), from, c.accounts(words[2:])...)
	case "confirmed":
		c.feed.reach(ledger.Confirmed)
	case "final":
		c.feed.reach(ledger.Finalized)
	case "each":
		for i := range slot {
			c.do(strings.ReplaceAll(strings.TrimPrefix(rest, words[1]+" "), "$I", strconv.FormatUint(i, 10)))
			synctest.Wait()
		}
	case "slow":
		d, err := time.ParseDuration(words[1])
		must(c, err)
		c.ledger.slow = d
	case "sleep":
		d, err := time.ParseDuration(words[1])
		must(c, err)
		time.Sleep(d)
	case "manner":
		c.upstreams[slot-1].manner = mannerOf(c, strings.TrimPrefix(rest, words[1]+" "))
	case "refusals":
		fmt.Fprintf(&c.text, "refusals< %s\n", refusals(c.numbers))
	case "others":
		c.describeOthers()
	case "hundred":
		method, params, _ := strings.Cut(rest, " ")
		one := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, c.expand(params))
		var batch []json.RawMessage
		must(c, json.Unmarshal([]byte(c.post("["+strings.Repeat(one+",", maxBatch-1)+one+"]")), &batch))
		var answers []string
		for _, answer := range batch {
			answers = append(answers, string(answer))
		}
		c.writeOnce(answers)
	case "unavailable":
		c.ledger.err = ledger.ErrUnavailable
	case "before", "after":
		c.ledger.asked = func() func() {
			c.ledger.asked = nil
			if words[0] == "after" {
				return func() { c.do(rest) }
			}
			c.do(rest)
			return func() {}
		}
	default:
		c.Fatalf("%s means nothing", line)
	}
}

// say calls a method over sockets, or without a name over HTTP.
func (c *conversation) say(to, method, params string) {
	c.Helper()
	if to == "" {
		fmt.Fprintf(&c.text, "< %s\n", short(c.call(method, params)))
		return
	}
	for name := range strings.SplitSeq(to, ",") {
		i := slices.IndexFunc(c.sockets, func(s *socket) bool { return s.name == name })
		if i < 0 {
			i = len(c.sockets)
			c.sockets = append(c.sockets, &socket{c.dial(), name, make(chan string, 1000)})
			go c.sockets[i].listen()
		}
		text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
		_ = c.sockets[i].WriteMessage(websocket.TextMessage, []byte(text)) // the socket may have ended
	}
}

// sayTogether calls a method so many times at once.
func (c *conversation) sayTogether(times, method, params string) {
	c.Helper()
	n, err := strconv.Atoi(times)
	must(c, err)
	answers := make([]string, n)
	var calls sync.WaitGroup
	for i := range answers {
		calls.Go(func() { answers[i] = c.call(method, params) })
	}
	calls.Wait()
	c.writeOnce(answers)
}

// writeOnce writes answers, those that are alike once, and how many there are of each.
func (c *conversation) writeOnce(answers []string) {
	times := make(map[string]int)
	for _, answer := range answers {
		times[short(answer)]++
	}
	for _, answer := range slices.Sorted(maps.Keys(times)) {
		fmt.Fprintf(&c.text, "< %d times %s\n", times[answer], answer)
	}
}

// describeOthers writes what the nodes that are asked were asked since, and what is thought of them.
func (c *conversation) describeOthers() {
	for i, u := range c.door.upstreams {
		o := c.upstreams[i]
		u.mu.Lock()
		fmt.Fprintf(&c.text, "others< %s: asked %d, %d at a time; %d failed, %d in a row", o.name, o.asked.Swap(0), o.top.Swap(0), u.failures.Load(), u.inARow)
		if left := time.Until(u.until); left > 0 {
			fmt.Fprintf(&c.text, ", left alone for %v", left)
		}
		u.mu.Unlock()
		fmt.Fprintln(&c.text)
	}
}

// listen notes what comes until the socket ends.
func (s *socket) listen() {
	for {
		_, text, err := s.ReadMessage()
		if end, is := err.(*websocket.CloseError); is {
			s.heard <- end.Error()
		}
		if err != nil {
			return
		}
		s.heard <- string(text)
	}
}

// hear writes what sockets were told, once for neighbours that were told the same.
func (c *conversation) hear() {
	synctest.Wait()
	var names []string
	var before []string
	flush := func() {
		for _, text := range before {
			fmt.Fprintf(&c.text, "%s< %s\n", strings.Join(names, ","), text)
		}
		names, before = nil, nil
	}
	for _, s := range c.sockets {
		var heard []string
		if count := len(s.heard); count > 20 { // the last three will do
			for range count - 3 {
				<-s.heard
			}
			heard = append(heard, fmt.Sprintf("%d messages, and then", count-3))
		}
		for range len(s.heard) {
			heard = append(heard, short(<-s.heard))
		}
		if !slices.Equal(heard, before) {
			flush()
		}
		names, before = append(names, s.name), heard
	}
	flush()
}

// short returns a text with the lengths of long texts in it.
func short(text string) string {
	return longText.ReplaceAllStringFunc(text, func(text string) string {
		return fmt.Sprintf(`"%d characters, %08x"`, len(text)-2, crc32.ChecksumIEEE([]byte(text)))
	})
}

// usual are the headers that are not written, by their names.
var usual = []struct{ name, value string }{
	{"Allow", ""}, {"Access-Control-Allow-Origin", "*"}, {"Access-Control-Allow-Headers", ""}, {"X-Ledger-Forwarded", ""}, {"Retry-After", ""}, {"X-Ledger-Slot", "30"}, {"X-RateLimit-Remaining", "2147483647"},
}

// send makes a request and writes what is answered.
func (c *conversation) send(method, path, kind, body string) {
	c.Helper()
	response, answer := c.rig.do(method, path, kind, body)
	fmt.Fprintf(&c.text, "< %d", response.StatusCode)
	for _, h := range usual {
		if value := response.Header.Get(h.name); value != h.value {
			fmt.Fprintf(&c.text, " %s: %s;", h.name, value)
		}
	}
	fmt.Fprintf(&c.text, " %s\n", short(answer))
}

// accounts returns those that words name.
func (c *conversation) accounts(words []string) (all []ledger.Account) {
	c.Helper()
	for _, word := range words {
		m := anAccount.FindStringSubmatch(word)
		if m == nil && word != "" {
			c.Fatalf("%q is no account", word)
		} else if m == nil {
			continue
		}
		number := func(i int) uint64 { n, _ := strconv.ParseUint(m[i], 10, 64); return n }
		key := testKey(byte(number(1)))
		switch {
		case m[2] != "":
			a, holds := c.ledger.Held[key], ledger.TokenAccount{Mint: mint, Owner: wallet}
			if a.Token != nil {
				holds = *a.Token
			} else {
				a = ledger.Account{Pubkey: key, Owner: ledger.TokenProgram, Lamports: 1, Known: ledger.FieldsAll &^ ledger.FieldMint}
			}
			holds.Amount, a.Token = number(2), &holds
			all = append(all, a)
		case m[3] == "0":
			all = append(all, ledger.Account{Pubkey: key})
		default:
			owner, err := ledger.ParsePubkey(c.expand("<" + m[4] + ">"))
			must(c, err)
			a := ledger.Account{Pubkey: key, Lamports: ledger.Lamports(number(3)), Owner: owner, Known: ledger.FieldsAll &^ ledger.FieldMint}
			if data, known := strings.CutPrefix(m[5], ":"); known {
				a.Known, a.Data = a.Known|ledger.FieldData, ledger.NewData([]byte(c.expand(data)))
			}
			all = append(all, a)
		}
	}
	return all
}
