package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
)

var must = ledgertest.Must

// fakeCall is a call and where its answer goes.
type fakeCall struct {
	http.ResponseWriter
	*nodetest.Call
	node *fakeNode
}

// slot returns a parameter that is a slot.
func (c *fakeCall) slot(i int) (slot ledger.Slot) {
	_ = json.Unmarshal(c.Params[i], &slot)
	return slot
}

// write answers by a result or an error.
func (c *fakeCall) write(member string) bool {
	fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%s,%s}`, c.ID, member)
	return true
}

// answer answers a call, or returns false.
type answer func(c *fakeCall) bool

// says answers by a status and a body.
func says(status int, body string) answer {
	return func(c *fakeCall) bool {
		c.WriteHeader(status)
		fmt.Fprint(c, body)
		return true
	}
}

// with puts a header's name and value, if there are any, in front of an answer.
func with(header string, a answer) answer {
	return func(c *fakeCall) bool {
		if name, value, ok := strings.Cut(header, " "); ok {
			c.Header().Set(name, value)
		}
		return a(c)
	}
}

// gives answers by a result, fails by the code of an error.
func gives(result string) answer {
	return func(c *fakeCall) bool { return c.write(`"result":` + result) }
}

func fails(code int) answer {
	return func(c *fakeCall) bool {
		return c.write(fmt.Sprintf(`"error":{"code":%d,"message":"https://secret"}`, code))
	}
}

// on answers calls of one method.
func on(method string, a answer) answer {
	return func(c *fakeCall) bool { return c.Method == method && a(c) }
}

// times answers the first so many calls.
func times(n int, a answer) answer {
	return func(c *fakeCall) bool {
		n--
		return n >= 0 && a(c)
	}
}

// faultOf returns what a line has the node do.
func (s *scene) faultOf(line string) answer {
	where, text, _ := strings.Cut(line, ": ")
	a := answerOf(text)
	if first, ok := strings.CutPrefix(where, "first "); ok {
		var n string
		n, where, _ = strings.Cut(first, " ")
		a = times(int(number(n)), a)
	}
	method, what, some := strings.Cut(where, " ")
	return func(c *fakeCall) bool {
		switch {
		case method != "all" && method != c.Method:
			return false
		case some && method == "getSlot":
			return c.Options.Commitment == what && a(c)
		case some:
			return c.slot(0) == number(what) && a(c)
		}
		return a(c)
	}
}

// early has a node call final what is confirmed.
func early(a answer) answer {
	return func(c *fakeCall) bool {
		c.node.finalized = c.node.confirmed
		return c.Method == "getBlock" && c.Options.Commitment == "finalized" && c.slot(0)+32 > c.node.confirmed && a(c)
	}
}

func answerOf(text string) answer {
	kind, rest, _ := strings.Cut(text, " ")
	words := strings.Fields(rest)
	switch kind {
	case "status":
		status, header, _ := strings.Cut(rest, " ")
		return with(header, says(int(number(status)), ""))
	case "text":
		return says(200, rest)
	case "result":
		return gives(rest)
	case "late":
		d, err := time.ParseDuration(words[0])
		if err != nil {
			panic(err)
		}
		_, text, _ := strings.Cut(rest, " ")
		later := answerOf(text)
		return func(c *fakeCall) bool {
			c.node.unlocked(func() { time.Sleep(d) })
			return later(c)
		}
	case "another":
		calls := 0
		return func(c *fakeCall) bool {
			calls++
			return answerOf(fmt.Sprintf("block %s/call%d on %s", words[0], calls, words[2]))(c)
		}
	case "hang":
		return hangsUp
	case "block":
		b, parent := resumePoint(words[0]), resumePoint(words[2])
		return gives((&fakeBlock{slot: b.Slot, parent: parent.Slot, hash: b.Blockhash, previous: parent.Blockhash}).json())
	}
	code, _ := strconv.Atoi(kind)
	return with(rest, fails(code))
}

// F27: whatever a node answers, accounts are whole or the error is one line.
func FuzzAccountsAnswer(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":5},"value":[null,{"lamports":1,"owner":"11111111111111111111111111111111","executable":false,"rentEpoch":0,"space":2,"data":["AAA=","base64"]}]}}`), false)
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"context":{"slot":5},"value":[{"lamports":1,"owner":"TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb","space":200,"data":["","base64"]},{"data":"","lamports":0}]}}`), true)
	keys := []ledger.Pubkey{keyOf(1), keyOf(2)}
	f.Fuzz(func(t *testing.T, text []byte, whole bool) {
		list, err := parse[accountList](text, "getMultipleAccounts", 1)
		checkText(t, err)
		if list == nil {
			return
		}
		state, err := (&client{config: new(Config)}).readAccounts(list, keys, whole)
		checkText(t, err)
		if err == nil && len(state.Accounts) != len(keys) {
			t.Errorf("%d accounts for %d keys", len(state.Accounts), len(keys))
		}
		for _, w := range state.Accounts {
			if w.Lamports != 0 && w.Known&ledger.FieldOwner == 0 {
				t.Errorf("an account without an owner: %+v", w)
			}
		}
	})
}

// checkText fails if an error is more than a line of ours.
func checkText(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if text := err.Error(); len(text) > 200 || bytes.ContainsAny([]byte(text), "\n\"") || !json.Valid([]byte(`"`+text+`"`)) {
		t.Errorf("the error is %q", text)
	}
}
