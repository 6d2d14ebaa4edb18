package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	clientlib "ledgerd/httpd/client"
)

// holdsAll checks that a record of the client library has every field that the node answers, with its value.
func holdsAll(t *testing.T, address string, record any) {
	t.Helper()
	status, body := get(t, address)
	if status != http.StatusOK {
		t.Fatalf("%s: status %d, %s", address, status, body)
	}
	again, err := json.Marshal(record)
	must(t, err)
	if want, got := exactly(t, string(body)), exactly(t, string(again)); !hasAllOf(got, want) {
		t.Errorf("%s:\nthe client has %s\nthe node answers %s", address, again, body)
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

// The records of the Go client are what the node answers, on every endpoint.
func TestClientReadsWhatTheNodeAnswers(t *testing.T) {
	t.Parallel()
	r := start(t, "--data-dir", t.TempDir(), "--source", "sim:seed=3,accounts=300,tps=400,slot_time=0,slots=60")
	r.ending(t)
	c, err := clientlib.New(r.base, clientlib.Options{})
	must(t, err)
	ctx := t.Context()
	latest, err := c.LatestBlock(ctx, clientlib.Read{Commitment: clientlib.Processed})
	if err != nil || latest.Slot != latest.Value.Slot {
		t.Fatalf("the newest block: %v, %+v", err, latest)
	}
	holdsAll(t, r.base+"/blocks/latest", latest.Value)
	read, tokens := clientlib.Read{MinSlot: latest.Slot}, clientlib.Read{Tokens: true}
	block := called(c.Block(ctx, latest.Slot, "transactions", read)).in(t, r.base+"/blocks/"+strconv.FormatUint(latest.Slot, 10)+"?include=transactions")
	signature := block.Records[0].Signature
	called(c.Transaction(ctx, signature, read)).in(t, r.base+"/transaction/"+signature)
	called(c.Recent(ctx, clientlib.RecentPage{Before: signature, Limit: 3}, read)).in(t, r.base+"/transactions/recent?limit=3&before="+signature)
	wallets := map[string]bool{}
	for _, id := range simPrograms {
		first := called(c.Program(ctx, id, clientlib.Page{Limit: 100}, tokens)).in(t, r.base+"/accounts/program/"+id+"?include=token&limit=100")
		for _, a := range first.Accounts {
			if a.Token != nil {
				wallets[a.Token.Owner] = true
			}
		}
		if cursor := first.NextCursor; cursor != nil {
			called(c.Program(ctx, id, clientlib.Page{Limit: 1, Cursor: *cursor}, read)).in(t, r.base+"/accounts/program/"+id+"?limit=1&cursor="+*cursor)
		}
	}
	nobody := toolKey("nobody").String()
	for wallet := range wallets {
		held := called(c.Tokens(ctx, wallet, clientlib.Page{}, read)).in(t, r.base+"/account/"+wallet+"/tokens")
		key := held.Tokens[0].TokenAccount
		called(c.Account(ctx, key, tokens)).in(t, r.base+"/account/"+key+"?include=token")
		called(c.Balance(ctx, key, read)).in(t, r.base+"/account/"+key+"/balance")
		called(c.Accounts(ctx, []string{key, nobody}, read)).in(t, r.base+"/accounts?keys="+key+","+nobody)
	}
	health, err := c.Health(ctx)
	status, err2 := c.Status(ctx)
	if err := errors.Join(err, err2); err != nil || health.Value.Status != "ok" || status.Value.Node.ID == "" || len(wallets) == 0 {
		t.Errorf("%v, health %+v, status %+v, %d wallets with tokens", err, health, status, len(wallets))
	}
	for what, want := range map[string]int{"nonsense": http.StatusBadRequest, nobody: http.StatusNotFound} {
		var refused *clientlib.StatusError
		if _, err := c.Account(ctx, what, read); !errors.As(err, &refused) || refused.Status != want || refused.Details == "" {
			t.Errorf("account %s: %v, want status %d", what, err, want)
		}
	}
	var refused *clientlib.StatusError
	if _, err := c.LatestBlock(ctx, clientlib.Read{MinSlot: latest.Slot + 1}); !errors.As(err, &refused) || refused.RetryAfter == 0 {
		t.Errorf("a later slot: %v, want 503 and when to come again", err)
	}
	if b := c.Budget(); b.Limit != 0 || b.Remaining == 0 || b.Reset.IsZero() {
		t.Errorf("without limits the budget is %+v", b)
	}
}

// outcome is what a call of the Go client returned.
type outcome[T any] struct {
	answer clientlib.Answer[T]
	err    error
}

func called[T any](a clientlib.Answer[T], err error) outcome[T] { return outcome[T]{a, err} }

// in returns the record, which must be what the node answers at an address.
func (o outcome[T]) in(t *testing.T, address string) T {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	holdsAll(t, address, o.answer.Value)
	return o.answer.Value
}
