package stream

import (
	"cmp"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/budget"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/stream/frame"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// G6, G14, G17, G18, F37, F39, F40, F41, F45, F47: TestTranscripts repeats the conversations in testdata. A file has scenes, each with a node of its own and
// the time of a bubble. A line is what is done, and the lines below it, with a "<", are all that clients
// hear of it: they are written by go test -update and reviewed like code.
//
//	== NAME [SETTING]...             begins a scene: oldest=SEQ gives the hub a log to resume from, others change its Config
//	dial NAME QUERY [| HEADER]...    connects a client
//	deaf NAME QUERY, hear NAME       connects one that reads nothing; has it read
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
//	publish                          publishes what is staged
//	then LINE                        has the next question to the ledger do this first; or be answered with an error:
//	                                 then unavailable, then fault; or panic
//	repeat TIMES LINE                does what a line says so many times
//	spend DURATION                   charges the client for so much work
//	work                             writes how much work the client may do
//	leave BYTES                      has others take the memory for sockets but for these
//	sleep DURATION
//	mints [unavailable or fault]     writes which mints the ledger was asked for since, and how it fails from here on
//	metrics PREFIX                   writes the metrics that begin so
//
// An account is N=LAMPORTS and the letter of its owner, if that is known, and then perhaps :DATA or :DATA*TIMES, or N=AMOUNT, the letter of a mint, / and the
// number of a wallet; N..M are many. $N is key N, $ and a letter one of those in letters, $[TEXT*N] the text N times, and
// $<N..M TEXT> many keys with the text between them. Of a long text only its length is written.
func TestTranscripts(t *testing.T) {
	ledgertest.Scenes(t, "testdata/*.txt", "== ", *update, func(t *testing.T, scene string) (played string) {
		lines := strings.Split(strings.TrimSpace(scene), "\n")
		inMemory(t, settings(strings.Fields(lines[0])), func(n *node) {
			tr := &transcript{node: n, names: map[string]string{}}
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
func settings(fields []string) func(*Config) {
	return func(c *Config) {
		for _, field := range fields {
			name, value, _ := strings.Cut(field, "=")
			n, _ := strconv.Atoi(value)
			switch name {
			case "oldest":
				c.History = &fakeHistory{oldest: ledger.Seq(n)}
			case "recent":
				c.RecentBytes = n
			case "ring":
				c.RingBytes = n
			case "outbox":
				c.OutboxBytes = n
			case "memory":
				c.Memory = budget.New(int64(n))
			case "conns":
				c.MaxConns = n
			case "share":
				c.MaxConnsPerClient = n
			case "origins":
				c.Origins = strings.Split(value, ",")
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
	text    strings.Builder
}

// listening is a client whose frames are noted as they come.
type listening struct {
	*client
	name  string
	heard chan string
}

var (
	heardLine = regexp.MustCompile(`^\w+< |^$`)
	keyName   = regexp.MustCompile(`\$(\d+|[A-Z])`)
	plainText = regexp.MustCompile(`"[0-9A-Za-z+/=]*"`)
	keyRange  = regexp.MustCompile(`\$<(\d+)\.\.(\d+) (.*?)>`)
	repeated  = regexp.MustCompile(`\$\[(.+?)\*(\d+)\]`)
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
	line = repeated.ReplaceAllStringFunc(line, func(all string) string {
		parts := repeated.FindStringSubmatch(all)
		times, _ := strconv.Atoi(parts[2])
		one, err := strconv.Unquote("`" + parts[1] + "`")
		if strings.HasPrefix(parts[1], `\`) {
			one, err = strconv.Unquote(`"` + parts[1] + `"`)
		}
		must(tr, err)
		return strings.Repeat(one, times)
	})
	line = keyRange.ReplaceAllStringFunc(line, func(all string) string {
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
	case "dial", "deaf":
		here := tr.join(words[1], strings.Split(strings.TrimSpace(strings.SplitN(line, " ", 3)[2]), " | "))
		if words[0] == "dial" && here != nil {
			go here.listen()
		}
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
	case "then":
		tr.then = append(tr.then, strings.Join(words[1:], " "))
	case "repeat":
		for range slot(1) {
			tr.do(strings.Join(words[2:], " "))
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
	header := response.Header
	here.heard <- fmt.Sprint(response.StatusCode, header["Content-Type"], header["Retry-After"], " ", string(body))
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
			_, _ = c.conn.Write(closeOf(payload[:2])) // which the server may not wait for
		}
	}
}
