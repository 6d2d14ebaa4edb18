package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/load"
	"ledgerd/bench/peer"
	"ledgerd/engine/ledger"
)

// truth is what ledgerd must answer of a ledger that was made up.
type truth struct {
	address netip.AddrPort
	ledger  feed.Config
}

func keyOf(index int) string { return feed.Key(index).String() }

// writeAccount appends the request for an account, as a common client writes it.
func (t *truth) writeAccount(dst []byte, index int) []byte {
	return load.AppendGet(dst, t.address.String(), "/api/account/"+keyOf(index), load.AnyCoding)
}

// writeList appends the request for a page of a program's accounts. Its answer is not to be compressed: the records
// are measured, and verified.
func (t *truth) writeList(dst []byte, index int) []byte {
	return load.AppendGet(dst, t.address.String(), t.listPath(index), load.Identity)
}

func (t *truth) listPath(index int) string {
	return fmt.Sprintf("/api/accounts/program/%s?limit=%d", feed.Program(index), restListPage)
}

var slotField = []byte("\r\nX-Ledger-Slot: ")

// verifyAccount says what is wrong with a response: it is not what was true at the slot that it says it is of.
func (t *truth) verifyAccount(index, status int, head, body []byte) error {
	if status != http.StatusOK {
		return fmt.Errorf("account %d: status %d: %.200q", index, status, body)
	}
	slot, err := strconv.ParseUint(string(load.Field(head, slotField)), 10, 64)
	if err != nil {
		return fmt.Errorf("account %d: the response names no slot: %.500q", index, head)
	}
	r := recordOf(index)
	r.Lamports = uint64(t.lamports(index, ledger.Slot(slot)))
	return same(body, recordText(r))
}

// verifyList says what is wrong with a page that is verified at all: longer ones than a read are not, but see lists.
func (t *truth) verifyList(index, status int, _, body []byte) error {
	owner := fmt.Appendf(nil, `"owner":"%s"`, feed.Program(index))
	if got := bytes.Count(body, owner); status != http.StatusOK || got != restListPage {
		return fmt.Errorf("status %d with %d accounts of the program instead of %d: %.200q", status, got, restListPage, body)
	}
	return nil
}

// lists asks for every list once, and verifies it.
func (t *truth) lists(ctx context.Context) error {
	for i := range feed.Programs {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.address.String()+t.listPath(i), nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		var body bytes.Buffer
		_, err = body.ReadFrom(response.Body)
		if err = errors.Join(err, response.Body.Close()); err == nil {
			err = t.verifyList(i, response.StatusCode, nil, body.Bytes())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyPeer returns what says what is wrong with a peer's response: it is not the account that was asked for, where the peer
// looks it up, else not the one answer.
func verifyPeer(answer string, looksUp bool) func(index, status int, head, body []byte) error {
	return func(index, status int, _, body []byte) error {
		want := answer
		if looksUp {
			want = recordText(recordOf(index))
		}
		if status != http.StatusOK {
			return fmt.Errorf("status %d", status)
		}
		return same(bytes.TrimSuffix(body, []byte("\r\n")), want)
	}
}

func same(body []byte, want string) error {
	if string(body) != want {
		return fmt.Errorf("%.500q instead of %.500q", body, want)
	}
	return nil
}

// lamports returns what the account of an index held at a slot: the number of the slot that updated it last.
func (t *truth) lamports(index int, at ledger.Slot) ledger.Slot {
	for s := at; s > feed.FirstSlot; s-- {
		if t.ledger.Has(s, index) {
			return s
		}
	}
	return feed.FirstSlot - 1
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

// answerOf asks for the first account, and returns the answer for those that are to give the same.
func answerOf(ctx context.Context, s *restSubject) (answer peer.Answer, err error) {
	l, err := load.New(load.Config{
		Address: s.address, Connections: 1, Script: load.NewScript(1, func(dst []byte, _ int) []byte { return s.write(dst, 0) }),
		Verify: func(_, status int, head, body []byte) error {
			answer = parseAnswer(string(head), string(body))
			return s.verify(0, status, head, body)
		},
	})
	if err != nil {
		return answer, err
	}
	defer l.Close()
	counts, err := l.Phase(ctx, time.Millisecond)
	if err == nil && counts.OK() == 0 {
		err = fmt.Errorf("%s does not answer: %v", s.name, counts.Errors)
	}
	return answer, errors.Join(err, counts.Wrong)
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
