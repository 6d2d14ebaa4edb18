package stream

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/budget"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/stream/frame"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// G4, G5, G6, G14, G17, G18, F30, F31, F32, F37, F39, F40, F41, F45, F47, F48: TestTranscripts repeats the conversations in testdata. A file has scenes,
// each with a node of its own and
// the time of a bubble. A line is what is done, and the lines below it, with a "<", are all that clients
// hear of it: they are written by go test -update and reviewed like code.
//
//	== NAME [SETTING]...             begins a scene: oldest=SEQ gives the hub a log to resume from, others change its Config
//	dial NAME QUERY [| HEADER]...    connects a client
//	deaf NAME QUERY, hear NAME       connects one that reads nothing; has it read
//	mute NAME QUERY                  connects one that answers no close frame
//	thin NAME BYTES QUERY            likewise, and it reads no more than so many bytes each tenth of a second
//	take NAME COUNT bytes or frames  has one that is deaf read so much
//	chat NAME                        has a client ping every 50 ms until its connection ends
//	socket NAME                      writes whether the server has closed or reset a connection
//	asks QUERY                       asks whether a handshake would be refused
//	exempt, counted                  what the clients are that are connected after it
//	from ADDRESS                     where they come from
//	key SOCKETS, revoke              has them have a key with so many sockets; revokes it
//	NAME> MESSAGE                    sends a text
//	frame NAME BYTE [PAYLOAD]        sends a frame with this first byte; raw sends bytes
//	cut NAME OPCODE SIZE PAYLOAD     sends a message in fragments of this size
//	close NAME, drop NAME            ends a connection with a close frame, or without one
//	fail NAME                        has everything that is written to a client panic
//	block SLOT [ACCOUNT]...          publishes a block; append only stages it
//	back SLOT, reach LEVEL SLOT      stage a rollback to a slot and that a slot has reached a level
//	publish                          publishes what is staged; enqueue does not wait until it is delivered
//	earlier LINE                     does what a line says before the hub was there; restart tells it of what that has come to
//	log fails, log ends BLOCKS       has the log be unreadable, or hold no more than the first publications
//	let READINGS, let all            lets so many readings of the log go on where they wait
//	reads                            writes after which numbers the log was read
//	logged                           writes what the hub has logged
//	stop DURATION                    stops the hub, and writes what came of it when it is done
//	wanted                           writes which accounts were wanted since, for their data
//	watch KEY, unwatch               has a socket with a topic of an account, which ends
//	delivered                        writes how long the deliveries took since
//	left                             writes what the hub holds for connections: bytes and all else
//	then LINE                        has the next question to the ledger do this first; or be answered with an error:
//	                                 then unavailable, then fault; or panic
//	repeat TIMES LINE [; LINE]...    does what lines say so many times
//	spend DURATION                   charges the client for so much work
//	work                             writes how much work the client may do
//	leave BYTES                      has others take the memory for sockets but for these
//	sleep DURATION
//	mints [unavailable or fault]     writes which mints the ledger was asked for since, and how it fails from here on; with wait it answers
//	                                 nothing until go
//	metrics PREFIX                   writes the metrics that begin so
//
// A SLOT of + is the next one. An account is N=LAMPORTS and the letter of its owner, if that is known, and then perhaps :DATA or :DATA*TIMES, or N=AMOUNT, the letter of a mint, / and the
// number of a wallet; N..M are many. $N is key N, $ and a letter one of those in letters, $[TEXT*N] the text N times, and
// $<N..M TEXT> many keys with the text between them. Of a long text only its length is written.
func TestTranscripts(t *testing.T) {
	ledgertest.Scenes(t, "testdata/*.txt", "== ", *update, func(t *testing.T, scene string) (played string) {
		lines := strings.Split(strings.TrimSpace(scene), "\n")
		tr := &transcript{names: map[string]string{}, delivered: make(chan time.Duration, 1<<16)}
		inMemory(t, tr.settings(strings.Fields(lines[0])), func(n *node) {
			tr.node = n
			n.hub.config.Logger = slog.New(slog.NewTextHandler(&tr.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == "time" || a.Key == "stack" {
					return slog.Attr{}
				}
				return a
			}}))
			for _, field := range strings.Fields(lines[0]) {
				_, _ = fmt.Sscanf(field, "past=%d", &n.hub.pastBytes)
				_, _ = fmt.Sscanf(field, "conns=%d", &n.hub.seats.total)
				_, _ = fmt.Sscanf(field, "share=%d", &n.hub.seats.perClient)
				if origins, set := strings.CutPrefix(field, "origins="); set {
					n.hub.SetOrigins(strings.Split(origins, ","))
				}
			}
			for letter := range letters {
				tr.named(letter)
			}
			n.ledger.asked = tr.question
			for _, line := range lines[1:] {
				if !heardLine.MatchString(line) {
					tr.play(line)
				}
			}
			played = "== " + lines[0] + "\n" + tr.text.String() + "\n"
		})
		return played
	})
}

// settings returns what a scene wants of the configuration.
func (tr *transcript) settings(fields []string) func(*Config) {
	return func(c *Config) {
		c.Want = func(keys ...ledger.Pubkey) { tr.wanted = append(tr.wanted, keys...) }
		c.OnDelivered = func(d time.Duration) { tr.delivered <- d }
		for _, field := range fields {
			name, value, _ := strings.Cut(field, "=")
			n, _ := strconv.Atoi(value)
			switch name {
			case "oldest":
				c.History = &fakeHistory{oldest: ledger.Seq(n)}
			case "log":
				c.History = map[string]History{"slow": &fakeHistory{gate: make(chan struct{})}, "faulty": faultyHistory{}}[value]
			case "recent":
				c.RecentBytes = n
			case "ring":
				c.RingBytes = n
			case "outbox":
				c.OutboxBytes = n
			case "memory":
				c.Memory = budget.New(int64(n))
			}
		}
	}
}

// transcript is a scene while it is played.
type transcript struct {
	*node
	clients []*listening
	then    []string          // what the next questions to the ledger do
	names   map[string]string // of the keys that were used: how transcripts name them, by their text
	log     bytes.Buffer
	wanted  []ledger.Pubkey
	watcher *Socket
	// delivered are the times that deliveries took.
	delivered chan time.Duration
	text      strings.Builder
}

// listening is a client whose frames are noted as they come.
type listening struct {
	*client
	name  string
	mute  bool // it answers no close frame
	heard chan string
}

// faultyHistory has a fault that shows while a connection is taken in.
type faultyHistory struct{ History }

func (faultyHistory) Oldest() ledger.Seq { panic("a fault") }

// thinLine is a connection that carries so many bytes each tenth of a second.
type thinLine struct {
	net.Conn
	bytes int
}

func (l thinLine) Read(b []byte) (int, error) {
	time.Sleep(101 * time.Millisecond) // at no moment at which something else is due
	return l.Conn.Read(b[:min(len(b), l.bytes)])
}

var (
	heardLine = regexp.MustCompile(`^\w+< |^$`)
	keyName   = regexp.MustCompile(`\$(\d+|[A-Z])`)
	plainText = regexp.MustCompile(`"[0-9A-Za-z+/=]*"`)
	keyRange  = regexp.MustCompile(`\$<(\d+)\.\.(\d+) (.*?)>`)
	anAccount = regexp.MustCompile(`^(\d+)(?:\.\.(\d+))?=(\d+)([A-Z]?)(?:/(\d+))?(:(\w*)(?:\*(\d+))?)?$`)
)

// letters are the keys that have a letter: programs, and mints.
var letters = map[string]ledger.Pubkey{
	"A": programA, "B": programB, "S": ledger.SystemProgram, "T": ledger.TokenProgram, "M": mintA, "N": mintB,
}

// named returns the key with a name.
func (tr *transcript) named(name string) ledger.Pubkey {
	k, ok := letters[name]
	if !ok {
		number, err := strconv.Atoi(name)
		must(tr, err)
		k = key(number)
	}
	tr.names[k.String()] = "$" + name
	return k
}

// expand puts keys and repeated texts in their places.
func (tr *transcript) expand(line string) string {
	line = keyRange.ReplaceAllStringFunc(ledgertest.Repeated(tr, line), func(all string) string {
		parts := keyRange.FindStringSubmatch(all)
		first, _ := strconv.Atoi(parts[1])
		last, _ := strconv.Atoi(parts[2])
		var keys []string
		for n := first; n <= last; n++ {
			keys = append(keys, tr.named(strconv.Itoa(n)).String())
		}
		return strings.Join(keys, parts[3])
	})
	return keyName.ReplaceAllStringFunc(line, func(name string) string { return tr.named(name[1:]).String() })
}

// play does what a line says, and writes it with all that is heard of it.
func (tr *transcript) play(line string) {
	fmt.Fprintln(&tr.text, line)
	if !strings.HasPrefix(line, "#") {
		tr.do(line)
	}
	synctest.Wait()
	for _, c := range tr.clients {
		c.write(tr)
	}
}

// write writes what was heard. Of many frames it writes the first, the last, and a checksum of the others.
func (c *listening) write(tr *transcript) {
	const most = 30
	sum, count := crc32.NewIEEE(), len(c.heard)
	for i := range count {
		said := plainText.ReplaceAllStringFunc(<-c.heard, func(text string) string {
			switch name := tr.names[strings.Trim(text, `"`)]; {
			case name != "":
				return `"` + name + `"`
			case len(text) >= 202:
				return fmt.Sprintf(`"%d characters"`, len(text)-2)
			}
			return text
		})
		switch said = strings.TrimSpace(said); {
		case count <= most || i < 2 || i >= count-2:
			fmt.Fprintf(&tr.text, "%s< %s\n", c.name, said)
		case i < count-3:
			_, _ = io.WriteString(sum, said+"\n")
		default:
			_, _ = io.WriteString(sum, said+"\n")
			fmt.Fprintf(&tr.text, "%s< and %d more, whose checksum is %08x\n", c.name, count-4, sum.Sum32())
		}
	}
}

func (tr *transcript) do(line string) {
	tr.Helper()
	words := strings.Fields(line)
	slot := func(i int) ledger.Slot {
		if words[i] == "+" {
			return tr.script.nextSlot()
		}
		n, err := strconv.Atoi(words[i])
		must(tr, err)
		return ledger.Slot(n)
	}
	if name, frames := tr.frames(line); name != "" {
		c := tr.find(name)
		for _, one := range frames {
			_, _ = c.conn.Write(one) // the connection may have ended
		}
		return
	}
	switch words[0] {
	case "dial", "deaf", "mute", "thin":
		bytes := 0
		if words[0] == "thin" {
			bytes, line = int(slot(2)), strings.Replace(line, " "+words[2], "", 1)
		}
		here := tr.join(words[1], strings.Split(strings.TrimSpace(strings.SplitN(line, " ", 3)[2]), " | "))
		if bytes > 0 {
			here.r = bufio.NewReader(thinLine{here.conn, bytes})
		}
		if words[0] != "deaf" && here != nil {
			here.mute = words[0] != "dial"
			go here.listen()
		}
	case "take":
		if c := tr.find(words[1]); words[3] == "bytes" {
			_, err := io.CopyN(io.Discard, c.conn, int64(slot(2)))
			must(tr, err)
		} else {
			for range slot(2) {
				c.heard <- c.next()
			}
		}
	case "chat":
		c := tr.find(words[1])
		go func() {
			for err := error(nil); err == nil; time.Sleep(time.Second / budgetPerSecond) {
				_, err = c.conn.Write(ping(""))
			}
		}()
	case "socket":
		is, near := "open", tr.find(words[1]).near()
		select {
		case <-near.closed:
			is = map[bool]string{true: "reset", false: "closed"}[near.resets.Load()]
		default:
		}
		fmt.Fprintf(&tr.text, "socket< %s\n", is)
	case "asks":
		ctx := new(fasthttp.RequestCtx)
		ctx.Request.SetRequestURI("/" + words[1])
		fmt.Fprintf(&tr.text, "asks< %v\n", tr.hub.WouldRefuse(ctx, tr.client))
	case "hear":
		go tr.find(words[1]).listen()
	case "exempt", "counted":
		tr.client.Exempt = words[0] == "exempt"
	case "from":
		tr.client.Key = netip.MustParseAddr(words[1])
	case "key":
		tr.client = ratelimit.Client{Key: netip.IPv6Unspecified().WithZone("key:1"), Sockets: int(slot(1)), Revoked: new(atomic.Bool)}
	case "revoke":
		tr.client.Revoked.Store(true)
		tr.hub.EndRevoked()
	case "close":
		tr.find(words[1]).close(codeOf(1000, ""))
	case "drop":
		_ = tr.find(words[1]).conn.Close()
	case "fail":
		tr.find(words[1]).near().faulty.Store(true)
	case "append", "block":
		var changed []ledger.Account
		for _, word := range words[2:] {
			changed = append(changed, tr.accounts(word)...)
		}
		tr.script.append(slot(1), changed...)
		if words[0] == "block" {
			tr.script.publish()
		}
	case "back":
		tr.script.rollBack(slot(1))
	case "reach":
		level, _ := ledger.ParseCommitment([]byte(words[1]))
		tr.script.reach(level, slot(2))
	case "publish":
		tr.script.publish()
	case "enqueue":
		if tr.script.publishNow(); tr.hub.isDelivering() {
			fmt.Fprintln(&tr.text, "enqueue< another goroutine delivers")
		}
	case "earlier":
		tr.script.hub = New(Config{Ledger: tr.ledger})
		tr.do(strings.Join(words[1:], " "))
		tr.script.hub = tr.hub
	case "restart":
		tr.hub.Publish(&ledger.Publication{Head: tr.script.history.all[len(tr.script.history.all)-1].Head})
	case "log":
		if words[1] == "fails" {
			tr.script.history.err = errors.New("a fault")
		} else {
			tr.script.history.all = tr.script.history.all[:slot(2)]
		}
	case "let":
		if words[1] == "all" {
			close(tr.script.history.gate)
			break
		}
		for range slot(1) {
			synctest.Wait() // all that can stand in line
			tr.script.history.gate <- struct{}{}
		}
	case "reads":
		fmt.Fprintf(&tr.text, "reads< %d\n", tr.script.history.reads)
	case "logged":
		for one := range strings.Lines(tr.log.String()) {
			fmt.Fprintf(&tr.text, "logged< %s", one)
		}
		tr.log.Reset()
	case "stop":
		stops := &listening{name: "stop", heard: make(chan string, 1)}
		tr.clients = append(tr.clients, stops)
		d, _ := time.ParseDuration(words[1])
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), d)
			defer cancel()
			began := time.Now()
			err := tr.hub.Shutdown(ctx)
			stops.heard <- fmt.Sprintf("after %v: %v", time.Since(began), err)
		}()
	case "wanted":
		slices.SortFunc(tr.wanted, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
		for _, k := range slices.Compact(tr.wanted) {
			fmt.Fprintf(&tr.text, "wanted< %s\n", tr.names[k.String()])
		}
		tr.wanted = nil
	case "watch":
		tr.watcher = tr.hub.newSocket(&seat{newPeer(ratelimit.Client{}), func() {}}, nil)
		topic := Topic{Account: ledger.Some(tr.named(words[1][1:])), Append: func(dst []byte, _ uint64, _ *Note) []byte { return dst }}
		must(tr, tr.watcher.Watch("", topic, ledger.Opt[ledger.Seq]{}, func(uint64) []byte { return nil }))
	case "unwatch":
		tr.watcher.depart()
	case "delivered":
		var took []time.Duration
		for range len(tr.delivered) {
			took = append(took, <-tr.delivered)
		}
		fmt.Fprintf(&tr.text, "delivered< %v\n", took)
	case "left":
		fmt.Fprintf(&tr.text, "left< %s\n", tr.leftovers())
	case "then":
		tr.then = append(tr.then, strings.Join(words[1:], " "))
	case "repeat":
		for range slot(1) {
			for one := range strings.SplitSeq(strings.Join(words[2:], " "), " ; ") {
				tr.do(one)
				synctest.Wait()
			}
		}
	case "spend":
		d, _ := time.ParseDuration(words[1])
		tr.budget().work.charge(d)
	case "work":
		fmt.Fprintf(&tr.text, "work< %v\n", tr.budget().work.left())
	case "leave":
		taken := int(tr.hub.config.Memory.Limit()*7/8-tr.hub.memory.Used()) - int(slot(1))
		tr.hub.memory.Hold(taken)
		tr.Cleanup(func() { tr.hub.memory.Hold(-taken) })
	case "sleep":
		d, _ := time.ParseDuration(words[1])
		time.Sleep(d)
	case "mints":
		tr.ledger.mu.Lock()
		defer tr.ledger.mu.Unlock()
		switch words[len(words)-1] {
		case "wait":
			tr.ledger.mintsGo = make(chan struct{})
		case "go":
			close(tr.ledger.mintsGo)
		}
		tr.ledger.mintsErr = map[string]error{"unavailable": ledger.ErrUnavailable, "fault": errors.New("a fault")}[words[len(words)-1]]
		for _, asked := range tr.ledger.askedFor {
			fmt.Fprintf(&tr.text, "mints< %s\n", strings.NewReplacer(mintA.String(), "$M", mintB.String(), "$N").Replace(fmt.Sprint(asked)))
		}
		tr.ledger.askedFor = nil
	case "metrics":
		for one := range strings.SplitSeq(tr.metrics(), "\n") {
			if strings.HasPrefix(one, words[1]) {
				fmt.Fprintf(&tr.text, "metrics< %s\n", one)
			}
		}
	default:
		tr.Fatalf("%s means nothing", line)
	}
}

// accounts returns what a word of a block says.
func (tr *transcript) accounts(word string) (all []ledger.Account) {
	m := anAccount.FindStringSubmatch(word)
	if m == nil {
		tr.Fatalf("%q is no account", word)
	}
	first, _ := strconv.Atoi(m[1])
	last, _ := strconv.Atoi(cmp.Or(m[2], m[1]))
	amount, _ := strconv.ParseUint(m[3], 10, 64)
	for n := first; n <= last; n++ {
		tr.named(strconv.Itoa(n))
		switch {
		case m[5] != "":
			all = append(all, tokenAccount(n, tr.named(m[4]), tr.named(m[5]), amount))
		case m[4] == "" && amount > 0:
			all = append(all, ledger.Account{Pubkey: key(n), Lamports: ledger.Lamports(amount)})
		default:
			all = append(all, account(n, ledger.Lamports(amount), letters[m[4]]))
		}
		if m[6] != "" {
			a, times := &all[len(all)-1], 1
			if m[8] != "" {
				times, _ = strconv.Atoi(m[8])
			}
			a.Known, a.Data = a.Known|ledger.FieldData, ledger.NewData([]byte(strings.Repeat(m[7], times)))
		}
	}
	return all
}

// question is what the ledger does before it answers.
func (tr *transcript) question() error {
	if len(tr.then) == 0 {
		return nil
	}
	next := tr.then[0]
	tr.then = tr.then[1:]
	switch next {
	case "unavailable":
		return ledger.ErrUnavailable
	case "fault":
		return errors.New("a broken invariant")
	case "panic":
		panic("a fault")
	case "answer":
		return nil
	}
	tr.do(next)
	return nil
}

// frames returns what a line has a client send, and which one; "" for none.
func (tr *transcript) frames(line string) (client string, frames [][]byte) {
	if name, message, says := strings.Cut(line, ">"); says && !strings.Contains(name, " ") {
		return name, [][]byte{text(tr.expand(strings.TrimPrefix(message, " ")))}
	}
	words := append(strings.Fields(line), "", "", "", "")
	first, _ := strconv.ParseUint(words[2], 16, 8)
	size, _ := strconv.Atoi(words[3])
	from := func(n int) string { return tr.expand(strings.TrimSpace(strings.Join(words[n:], " "))) }
	switch words[0] {
	case "raw":
		return words[1], [][]byte{[]byte(from(2))}
	case "frame":
		return words[1], [][]byte{frameBytes(byte(first), from(3))}
	case "cut":
		return words[1], fragments(frame.Opcode(first), size, from(4))
	}
	return "", nil
}

func (tr *transcript) find(name string) *listening {
	for _, c := range tr.clients {
		if c.name == name {
			return c
		}
	}
	tr.Fatalf("no client has the name %q", name)
	return nil
}

// join connects a client, which is returned if it may listen. words are its query and its headers.
func (tr *transcript) join(name string, words []string) *listening {
	response, c := tr.handshake(tr.expand(strings.TrimSuffix(words[0], "-")), words[1:]...)
	here := &listening{client: c, name: name, heard: make(chan string, 1<<15)}
	tr.clients = append(tr.clients, here)
	if response.StatusCode == http.StatusSwitchingProtocols {
		return here
	}
	body, err := io.ReadAll(response.Body)
	must(tr, err)
	here.heard <- fmt.Sprint(response.StatusCode, " ", string(body))
	return nil
}

// listen notes what comes until the connection ends.
func (c *listening) listen() {
	for {
		op, payload, err := c.read()
		switch {
		case err != nil:
			c.heard <- "end"
			return
		case op == websocket.TextMessage:
			c.heard <- payload
		case op == websocket.PingMessage || op == websocket.PongMessage:
			c.heard <- strings.TrimSpace(map[frame.Opcode]string{9: "ping ", 10: "pong "}[op] + payload)
		case op == websocket.CloseMessage:
			c.heard <- fmt.Sprintf("close %d %s", binary.BigEndian.Uint16([]byte(payload)), payload[2:])
			if !c.mute {
				_, _ = c.conn.Write(closeOf(payload[:2])) // which the server may not wait for
			}
		}
	}
}
