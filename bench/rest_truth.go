package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/engine/ledger"
)

const (
	restBlocks       = 40  // that are published before anybody asks
	restTransactions = 100 // of each block, where they are asked for
	restBatch        = 20  // accounts asked for at once
	restPage         = 100 // accounts of a program
)

// mixed chooses what else than an account is asked for, as a wallet and an explorer do.
func mixed(c *rand.Rand, index uint32) restAsk {
	switch share := c.IntN(100); {
	case share < 80:
		return restAsk{askAccount, index}
	case share < 88:
		return restAsk{askBalance, index}
	case share < 91:
		return restAsk{askBatch, index}
	case share < 95:
		return restAsk{kind: askLatest}
	case share < 99:
		return restAsk{askTransaction, uint32(c.IntN(restBlocks * restTransactions))}
	default:
		return restAsk{askProgram, index}
	}
}

// truth is what ledgerd must answer of a ledger that was made up.
type truth struct {
	address netip.AddrPort
	fresh   bool
	ledger  feed.Config
	page    int // records of a list
}

// write appends the request for something.
func (t *truth) write(dst []byte, a restAsk) []byte {
	var path string
	switch a.kind {
	case askBalance:
		path = "account/" + keyOf(int(a.index)) + "/balance"
	case askBatch:
		keys := make([]string, restBatch)
		for i := range keys {
			keys[i] = keyOf(t.batch(a, i))
		}
		path = "accounts?keys=" + strings.Join(keys, ",")
	case askLatest:
		path = "blocks/latest"
	case askTransaction:
		path = "transaction/" + t.signature(a).String()
	case askProgram:
		path = fmt.Sprintf("accounts/program/%s?limit=%d", feed.Program(int(a.index)), t.page)
	default:
		path = "account/" + keyOf(int(a.index))
	}
	return peer.Get(dst, t.address.String(), "/api/"+path, a.coding(), t.fresh)
}

func keyOf(index int) string { return feed.Key(index).String() }

// batch returns the index of one of several accounts that are asked for at once.
func (t *truth) batch(a restAsk, i int) int { return (int(a.index) + i) % t.ledger.Accounts }

func (t *truth) signature(a restAsk) ledger.Signature {
	return feed.Signature(t.transactionSlot(a), int(a.index)%restTransactions)
}

func (t *truth) transactionSlot(a restAsk) ledger.Slot {
	return feed.FirstSlot + 1 + ledger.Slot(a.index/restTransactions)
}

var slotField = []byte("\r\nX-Ledger-Slot: ")

// check says what is wrong with an answer: it is not what was true at the slot that it says it
// is of.
func (t *truth) check(a restAsk, status int, head, body []byte) error {
	want := 200
	if a.kind == askMissing {
		want = 404
	}
	if status != want {
		return fmt.Errorf("status %d instead of %d: %.200q", status, want, body)
	}
	slot, err := decimal(fieldValue(head, slotField))
	if err != nil {
		return fmt.Errorf("it names no slot: %.500q", head)
	}
	at := ledger.Slot(slot)
	switch a.kind {
	case askAccount:
		return same(body, t.record(int(a.index), at))
	case askBalance:
		return same(body, fmt.Sprintf(`{"pubkey":"%s","lamports":%d,"slot":%d}`, keyOf(int(a.index)), t.lamports(int(a.index), at), at))
	case askBatch:
		records := make([]string, restBatch)
		for i := range records {
			records[i] = t.record(t.batch(a, i), at)
		}
		return same(body, `{"accounts":[`+strings.Join(records, ",")+`]}`)
	case askLatest:
		return begins(body, fmt.Sprintf(`{"slot":%d,"blockhash":"%s",`, at, feed.Blockhash(at)))
	case askTransaction:
		return begins(body, fmt.Sprintf(`{"signature":"%s","slot":%d,`, t.signature(a), t.transactionSlot(a)))
	case askProgram:
		if got := bytes.Count(body, fmt.Appendf(nil, `"owner":"%s"`, feed.Program(int(a.index)))); got != t.page {
			return fmt.Errorf("%d accounts of the program instead of %d: %.200q", got, t.page, body)
		}
	}
	return nil
}

func same(body []byte, want string) error {
	if string(body) != want {
		return fmt.Errorf("%.500q instead of %.500q", body, want)
	}
	return nil
}

func begins(body []byte, want string) error {
	return same(body[:min(len(body), len(want))], want)
}

// lamports returns what the account of an index held at a slot: the last one that updated it.
func (t *truth) lamports(index int, at ledger.Slot) ledger.Slot {
	for s := at; s > feed.FirstSlot; s-- {
		if t.ledger.Has(s, index) {
			return s
		}
	}
	return feed.FirstSlot - 1
}

func (t *truth) record(index int, at ledger.Slot) string {
	r := recordOf(index)
	r.Lamports = uint64(t.lamports(index, at))
	return recordText(r)
}

// recordOf returns the account of an index as the base state has it.
func recordOf(index int) peer.AccountRecord {
	return peer.AccountRecord{
		Pubkey: keyOf(index), Lamports: uint64(feed.FirstSlot - 1), Owner: feed.Program(index).String(), RentEpoch: ^uint64(0),
	}
}

func recordText(r peer.AccountRecord) string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // text and numbers
	}
	return string(text)
}

// addressOf returns where a server listens that names itself by number.
func addressOf(base string) (netip.AddrPort, error) {
	at, err := url.Parse(base)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.ParseAddrPort(at.Host)
}

// ledgerdSubject is ledgerd as it is asked.
func (r *restRun) ledgerdSubject(name string, rig *rig) (*restSubject, *truth, error) {
	address, err := addressOf(rig.URL())
	if err != nil {
		return nil, nil, err
	}
	t := &truth{address: address, fresh: r.o.Fresh, ledger: rig.feed.Config(), page: min(restPage, rig.feed.Config().Accounts/feed.Programs)}
	s := &restSubject{
		name: name, address: address, write: t.write, check: t.check,
		cpu: func() (time.Duration, error) { return cpuOf(rig.Pid()) }, stop: rig.Stop,
	}
	r.prepare(s, t.ledger.Accounts)
	return s, t, nil
}

// peerSubject is a peer as it is asked.
func (r *restRun) peerSubject(name string, s peer.RESTServer, answer *peer.Answer) *restSubject {
	looksUp := name == "nethttp" || name == "redis" || name == "webdis"
	return &restSubject{
		name: name, address: s.Address(), native: s.Native(), stop: s.Stop,
		cpu:   func() (time.Duration, error) { return cpuOf(s.Pids()...) },
		write: func(dst []byte, a restAsk) []byte { return s.Request(dst, keyOf(int(a.index)), r.o.Fresh) },
		check: func(a restAsk, status int, _, body []byte) error {
			want := answer.Body
			if looksUp {
				want = recordText(recordOf(int(a.index)))
			}
			if status == 404 && looksUp && a.kind == askMissing {
				return nil
			}
			if status != 200 {
				return fmt.Errorf("status %d", status)
			}
			return same(bytes.TrimSuffix(body, lineEnd), want)
		},
	}
}

// answerOf asks for one account, and returns the answer for those that are to give the same.
func answerOf(s *restSubject) (answer peer.Answer, err error) {
	head, body, err := s.fetch(restAsk{kind: askAccount})
	return parseAnswer(string(head), string(body)), err
}

// fetch asks for something once, and sees that the answer is right.
func (s *restSubject) fetch(a restAsk) (head, body []byte, err error) {
	conn, err := net.DialTimeout("tcp", s.address.String(), loadPatience)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(loadPatience)); err != nil {
		return nil, nil, err
	}
	if _, err := conn.Write(s.write(nil, a)); err != nil {
		return nil, nil, err
	}
	var text []byte
	for room := make([]byte, loadRoom); ; {
		n, err := conn.Read(room)
		text = append(text, room[:n]...)
		f, wrong := frameHTTP(text)
		if wrong != nil {
			return nil, nil, wrong
		}
		if f.head > 0 && len(text) >= f.head+f.body {
			head, body = text[:f.head], text[f.head:]
			return head, body, s.check(a, f.status, head, body)
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// parseAnswer takes what every server writes in its own way out of a head.
func parseAnswer(head, body string) peer.Answer {
	a := peer.Answer{Body: body}
	for line := range strings.SplitSeq(head, "\r\n") {
		name, value, ok := strings.Cut(line, ": ")
		switch {
		case !ok || name == "Date" || name == "Content-Length" || name == "Connection":
		case name == "Content-Type":
			a.ContentType = value
		default:
			a.Fields = append(a.Fields, peer.Field{Name: name, Value: value})
		}
	}
	return a
}
