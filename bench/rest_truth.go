package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

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

// verifyAccount says what is wrong with a response: it is not what was true at the slot that it says it is of.
func (t *truth) verifyAccount(index, status int, head, body []byte) error {
	if status != http.StatusOK {
		return fmt.Errorf("account %d: status %d: %.200q", index, status, body)
	}
	slot, err := strconv.ParseUint(string(load.Field(head, "X-Ledger-Slot")), 10, 64)
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

// verifyLists asks for every list once, and verifies it.
func (t *truth) verifyLists(ctx context.Context) error {
	for i := range feed.Programs {
		head, body, err := fetch(ctx, t.address, t.listPath(i))
		if err == nil {
			err = t.verifyList(i, http.StatusOK, nil, body)
		}
		if err != nil {
			return fmt.Errorf("list %d, %v: %w", i, head, err)
		}
	}
	return nil
}

// fetch returns the response to one request, whose status must be 200.
func fetch(ctx context.Context, address netip.AddrPort, path string) (head http.Header, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address.String()+path, nil)
	if err != nil {
		return nil, nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("GET %s is answered %s", path, response.Status)
	}
	body, err = io.ReadAll(response.Body)
	return response.Header, body, err
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

// answerOf asks for the first account, and returns the answer for those that are to give the same: without what every server
// writes in its own way.
func answerOf(ctx context.Context, s *restSubject) (answer peer.Answer, err error) {
	head, body, err := fetch(ctx, s.address, "/api/account/"+keyOf(0))
	answer.Body, answer.ContentType = string(body), head.Get("Content-Type")
	for _, name := range slices.Sorted(maps.Keys(head)) {
		if !slices.Contains([]string{"Date", "Content-Length", "Connection", "Content-Type"}, name) {
			answer.Fields = append(answer.Fields, peer.Field{Name: name, Value: head.Get(name)})
		}
	}
	return answer, err
}
