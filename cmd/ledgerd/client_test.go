package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
	clientlib "ledgerd/httpd/client"
)

// questions are a node whose ledger moves no more, and what to ask it for.
type questions struct {
	*victim
	client                                 *clientlib.Client // it hides that of the victim
	tip                                    uint64
	signature, key, wallet, cursor, nobody string
	mint                                   string // that key holds
	text                                   string // all of them as JSON, for programs
}

func askable(t *testing.T) *questions {
	t.Helper()
	v := launch(t, "--data-dir", t.TempDir(), "--source", "sim:seed=3,accounts=300,tps=400,slot_time=0,slots=60", "--index-mints").ready()
	v.ending()
	c, err := clientlib.New(v.base, clientlib.Options{})
	must(t, err)
	recent, err := c.Recent(t.Context(), clientlib.RecentPage{Limit: 1}, clientlib.Read{})
	must(t, err)
	list, err := c.Program(t.Context(), tokenProgram, clientlib.Page{Limit: 10}, clientlib.Read{Tokens: true})
	must(t, err)
	all := list.Value.Accounts
	held := all[slices.IndexFunc(all, func(a clientlib.Account) bool { return a.Token != nil })]
	q := &questions{
		victim: v, client: c, tip: recent.Slot, signature: recent.Value.Transactions[0].Signature,
		key: held.Pubkey, wallet: held.Token.Owner, mint: held.Token.Mint, cursor: *list.Value.NextCursor, nobody: toolKey("nobody").String(),
	}
	text, err := json.Marshal(map[string]any{
		"slot": q.tip, "signature": q.signature, "key": q.key, "wallet": q.wallet, "mint": q.mint,
		"program": tokenProgram, "cursor": q.cursor, "nobody": q.nobody,
	})
	must(t, err)
	q.text = string(text)
	return q
}

// node returns the node's address without the path of the interface.
func (q *questions) node() string { return strings.TrimSuffix(q.base, "/api") }

// clientCall is what a client made of an answer: the status and what was decoded, and where the client says so, the slot and when to
// come again.
type clientCall struct {
	Path             string
	Status           int
	Slot, RetryAfter *uint64
	Value            json.RawMessage
}

// printed returns the calls that a program printed, one a line.
func (q *questions) printed(lines []byte) (calls []clientCall) {
	q.Helper()
	for line := range bytes.Lines(lines) {
		var c clientCall
		if err := json.Unmarshal(line, &c); err != nil {
			q.Fatalf("%v in %s", err, line)
		}
		calls = append(calls, c)
	}
	return calls
}

// called returns a call of the Go client; at says of which path it was.
func called[T any](a clientlib.Answer[T], err error) (c clientCall) {
	var refused *clientlib.StatusError
	value := any(a.Value)
	switch {
	case errors.As(err, &refused):
		retry := uint64(refused.RetryAfter / time.Second)
		c.Status, c.RetryAfter = refused.Status, &retry
		value = map[string]string{"error": refused.Text, "details": refused.Details}
	case err != nil:
		value = err.Error()
	default:
		c.Status, c.Slot = http.StatusOK, &a.Slot
	}
	c.Value, _ = json.Marshal(value) // what cannot be written differs from the answer
	return c
}

func (c clientCall) at(path string, words ...any) clientCall {
	c.Path = fmt.Sprintf(path, words...)
	return c
}

var (
	momentary = regexp.MustCompile(`"(timestamp|uptime)":"[^"]*"`) // what health and status say of the time of the answer
	variable  = regexp.MustCompile(`\{\w+\}`)
)

// check holds what a client made of answers against the answers. Every path with records must be among them.
func (q *questions) check(calls []clientCall) {
	q.Helper()
	for _, c := range calls {
		got := q.get(c.Path)
		value, body := string(c.Value), got.body
		if c.Path == "/health" || c.Path == "/status" {
			value, body = momentary.ReplaceAllString(value, `"$1":""`), momentary.ReplaceAllString(body, `"$1":""`)
		}
		retry, _ := strconv.ParseUint(got.header.Get("Retry-After"), 10, 64)
		if c.Status != got.status || !hasAllOf(exactly(q.TB, value), exactly(q.TB, body)) {
			q.Errorf("%s: the client has %d %s\nthe node answers %d %s", c.Path, c.Status, value, got.status, body)
		}
		if c.Slot != nil && *c.Slot != q.tip || c.RetryAfter != nil && *c.RetryAfter != retry {
			q.Errorf("%s: the client has slot %v and is to come again in %v s", c.Path, c.Slot, c.RetryAfter)
		}
	}
	var document struct{ Paths map[string]any }
	must(q, json.Unmarshal([]byte(q.get("/openapi.json").body), &document))
	for path := range document.Paths {
		like := regexp.MustCompile("^" + variable.ReplaceAllString(path, `[^/?]+`) + `(\?|$)`)
		asked := slices.ContainsFunc(calls, func(c clientCall) bool { return like.MatchString(c.Path) })
		if !asked && !slices.Contains([]string{"/metrics", "/openapi.json", "/ws/accounts"}, path) {
			q.Errorf("%s is not asked for", path)
		}
	}
}

// exactly returns a JSON value with the digits of its numbers.
func exactly(t testing.TB, text string) (value any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// hasAllOf reports whether a JSON value has all that another one has. It may have more fields, and the null of a field that is absent.
func hasAllOf(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && hasAllOf(fields[name], value)
		}
		return ok
	case []any:
		list, ok := got.([]any)
		ok = ok && len(list) == len(want)
		for i := range want {
			ok = ok && hasAllOf(list[i], want[i])
		}
		return ok
	}
	return reflect.DeepEqual(got, want)
}

// The records of the Go client are what the node answers, on every endpoint, and its errors are the node's refusals.
func TestClientReadsWhatTheNodeAnswers(t *testing.T) {
	t.Parallel()
	q, ctx := askable(t), t.Context()
	c, read, tokens, later := q.client, clientlib.Read{MinSlot: q.tip}, clientlib.Read{Tokens: true}, q.tip+1
	before, page := clientlib.RecentPage{Before: q.signature, Limit: 3}, clientlib.Page{Limit: 1, Cursor: q.cursor}
	data := clientlib.Read{Tokens: true, Data: true, Slice: &clientlib.Slice{Offset: 2, Length: 3}}
	filtered := clientlib.Page{Where: &clientlib.DataFilter{Size: new(uint64(165)), Parts: []clientlib.DataPart{{Offset: 0, Bytes: "2g"}, {Offset: 64, Bytes: "11"}}}}
	calls := []clientCall{
		called(c.Health(ctx)).at("/health"),
		called(c.Status(ctx)).at("/status"),
		called(c.LatestBlock(ctx, clientlib.Read{Commitment: clientlib.Processed})).at("/blocks/latest"),
		called(c.LatestBlock(ctx, clientlib.Read{MinSlot: later})).at("/blocks/latest?min_slot=%d", later),
		called(c.Block(ctx, q.tip, "transactions", read)).at("/blocks/%d?include=transactions", q.tip),
		called(c.Transaction(ctx, q.signature, read)).at("/transaction/%s", q.signature),
		called(c.Recent(ctx, before, read)).at("/transactions/recent?limit=3&before=%s", q.signature),
		called(c.Account(ctx, q.key, tokens)).at("/account/%s?include=token", q.key),
		called(c.Account(ctx, q.key, data)).at("/account/%s?include=token,data&data_slice=2,3", q.key),
		called(c.Account(ctx, "nonsense", read)).at("/account/nonsense"),
		called(c.Account(ctx, q.nobody, read)).at("/account/%s", q.nobody),
		called(c.Transactions(ctx, q.key, clientlib.HistoryPage{RecentPage: before, Order: "oldest", Status: "success", FromSlot: new(uint64), ToSlot: &q.tip}, read)).
			at("/account/%s/transactions?limit=3&before=%s&order=oldest&status=success&from_slot=0&to_slot=%d", q.key, q.signature, q.tip),
		called(c.Transactions(ctx, tokenProgram, clientlib.HistoryPage{}, read)).at("/account/%s/transactions", tokenProgram),
		called(c.Balance(ctx, q.key, read)).at("/account/%s/balance", q.key),
		called(c.Tokens(ctx, q.wallet, clientlib.Page{}, read)).at("/account/%s/tokens", q.wallet),
		called(c.Holders(ctx, q.mint, 0, read)).at("/account/%s/holders", q.mint),
		called(c.Holders(ctx, q.mint, 2, read)).at("/account/%s/holders?limit=2", q.mint),
		called(c.Program(ctx, tokenProgram, page, read)).at("/accounts/program/%s?limit=1&cursor=%s", tokenProgram, q.cursor),
		called(c.Program(ctx, tokenProgram, filtered, clientlib.Read{Data: true})).at("/accounts/program/%s?include=data&data_size=165&memcmp=0:2g&memcmp=64:11", tokenProgram),
		called(c.Accounts(ctx, []string{q.key, q.nobody}, read)).at("/accounts?keys=%s,%s", q.key, q.nobody),
	}
	for _, id := range simPrograms {
		first := called(c.Program(ctx, id, clientlib.Page{Limit: 100}, tokens))
		calls = append(calls, first.at("/accounts/program/%s?include=token&limit=100", id))
	}
	q.check(calls)
	if b := c.Budget(); b.Limit != 0 || b.Remaining == 0 || b.Reset.IsZero() {
		t.Errorf("without limits the budget is %+v", b)
	}
}

// whole returns what a list of the client yields.
func whole[T any](t *testing.T, list iter.Seq2[T, error]) (records []T) {
	t.Helper()
	for record, err := range list {
		must(t, err)
		records = append(records, record)
	}
	return records
}

// A list that the Go client walks over in pages of one is the list in one page, either way round; it ends where the caller does, or with an
// error. A transaction is there as soon as it has the level, and waited for no longer than the caller does.
func TestClientWalksOverLists(t *testing.T) {
	t.Parallel()
	q, ctx := askable(t), t.Context()
	tokens, err := q.client.Tokens(ctx, q.wallet, clientlib.Page{}, clientlib.Read{})
	must(t, err)
	ledgertest.Equal(t, whole(t, q.client.AllTokens(ctx, q.wallet, clientlib.Page{Limit: 1}, clientlib.Read{})), tokens.Value.Tokens, "tokens")
	owned, err := q.client.Program(ctx, simPrograms[0], clientlib.Page{Limit: 1000}, clientlib.Read{})
	must(t, err)
	ledgertest.Equal(t, whole(t, q.client.AllProgramAccounts(ctx, simPrograms[0], clientlib.Page{Limit: 100}, clientlib.Read{})), owned.Value.Accounts, "accounts")
	history, err := q.client.Transactions(ctx, q.wallet, clientlib.HistoryPage{RecentPage: clientlib.RecentPage{Limit: 1000}}, clientlib.Read{})
	must(t, err)
	one := clientlib.HistoryPage{RecentPage: clientlib.RecentPage{Limit: 1}}
	ledgertest.Equal(t, whole(t, q.client.AllTransactions(ctx, q.wallet, one, clientlib.Read{})), history.Value.Transactions, "newest first")
	one.Order = "oldest"
	slices.Reverse(history.Value.Transactions)
	ledgertest.Equal(t, whole(t, q.client.AllTransactions(ctx, q.wallet, one, clientlib.Read{})), history.Value.Transactions, "oldest first")
	for range q.client.AllTokens(ctx, q.wallet, clientlib.Page{Limit: 1}, clientlib.Read{}) {
		break
	}
	for _, err := range q.client.AllTokens(ctx, "nonsense", clientlib.Page{}, clientlib.Read{}) {
		ledgertest.ErrorSays(t, err, "status 400", "a wallet that is none")
	}
	held, err := q.client.WaitFor(ctx, q.signature, clientlib.Processed)
	must(t, err)
	ledgertest.Equal(t, held.Value.Signature, q.signature, "the transaction")
	short, stop := context.WithTimeout(ctx, 10*time.Millisecond)
	defer stop()
	_, err = q.client.WaitFor(short, strings.Repeat("1", 64), clientlib.Processed)
	ledgertest.ErrorIs(t, err, context.DeadlineExceeded, "a transaction that never comes")
}

// What answers without waiting, as something between does, is asked some ten times a second; a time to come again that has passed is none.
func TestClientAsksAgainOnlySoOften(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "-1")
		w.WriteHeader(map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusNotFound}[r.URL.Path == "/api/status"])
	}))
	t.Cleanup(between.Close)
	c, err := clientlib.New(between.URL, clientlib.Options{})
	must(t, err)
	_, err = c.Status(t.Context())
	ledgertest.ErrorSays(t, err, "status 503", "a node that is away")
	short, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer stop()
	_, err = c.WaitFor(short, "signature", clientlib.Finalized)
	ledgertest.ErrorIs(t, err, context.DeadlineExceeded, "a transaction that never comes")
	if asked.Load() > 10 {
		t.Errorf("%d questions in half a second", asked.Load())
	}
}
