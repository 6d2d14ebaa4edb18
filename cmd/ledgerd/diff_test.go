package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// A node that hangs before its state or amid it is given up.
func TestDiffGivesUpANodeThatHangs(t *testing.T) {
	t.Parallel()
	for _, hangsAt := range []string{"/state", "/state?accounts"} {
		node := func(hash string) string {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if hangsAt != "/state" {
					fmt.Fprintf(w, `{"slot":1,"blockhash":"b","state_hash":%q}`+"\n", hash)
					_ = http.NewResponseController(w).Flush() // or the error tells
				}
				if r.URL.String() == hangsAt {
					<-r.Context().Done()
				}
			}))
			t.Cleanup(s.Close)
			return s.URL
		}
		c := &diffCommand{A: node("1"), B: node("2"), Wait: time.Hour, silence: 200 * time.Millisecond}
		ledgertest.ErrorSays(t, c.Run(t.Context(), &streams{io.Discard, io.Discard}), "nothing came for 200ms", "a node that hangs at %s", hangsAt)
	}
}

// Of nodes that are never at one slot at a time the states at one slot are compared, and nothing else, however often they cannot answer.
func TestDiffComparesOneSlot(t *testing.T) {
	t.Parallel()
	for behind := range uint64(4) {
		var asked atomic.Uint64
		asked.Store(100)
		node := func(slot func() uint64, last string) string {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1)%3 == 0 { // somebody else is sent all accounts, or it has just been started
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				at := slot()
				fmt.Fprintf(w, `{"slot":%d,"blockhash":"b%[1]d","state_hash":"%[1]d %[2]s"}`+"\n", at, last)
				if r.URL.Query().Has("accounts") {
					fmt.Fprintf(w, `{"accounts":[{"pubkey":"11111111111111111111111111111111","lamports":%d}]}`+"\n", at)
					fmt.Fprintf(w, `{"accounts":[{"pubkey":"%s","lamports":1}]}`+"\n", last)
				}
			}))
			t.Cleanup(s.Close)
			return s.URL
		}
		one, two := toolKey("one").String(), toolKey("two").String()
		ahead := node(func() uint64 { return asked.Load() / 5 }, one)
		late := node(func() uint64 { return asked.Load()/5 - behind }, two)
		equal := node(func() uint64 { return asked.Load()/5 - behind }, one)
		for _, pair := range [][]string{{ahead, late}, {late, ahead}} {
			out := toolSays(t, exitFailure, "the nodes differ\n", "diff", pair[0], pair[1])
			ledgertest.Equal(t, strings.Count(out, `","lamports":1}`), 2, "%d slots behind, and in %s", behind, out)
		}
		if out := toolSays(t, exitOK, "", "diff", equal, ahead); !strings.HasPrefix(out, "equal at slot ") {
			t.Errorf("it prints %s", out)
		}
	}
}
