package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

// list writes keys as the JSON list of a message.
func list(keys ...ledger.Pubkey) string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = k.String()
	}
	b, _ := json.Marshal(texts)
	return string(b)
}

// numbers names the accounts that frames are about, by the n of key, in order.
func numbers(t *testing.T, frames []string) string {
	t.Helper()
	var out []string
	for _, text := range frames {
		u := parse(t, text)
		if u.Type != "account_update" {
			out = append(out, u.Type)
			continue
		}
		k := mustKey(t, u.Pubkey)
		out = append(out, fmt.Sprint(int(k[0])<<16|int(k[1])<<8|int(k[2])))
	}
	return strings.Join(out, " ")
}

func TestSubscriptionsGrowAndShrink(t *testing.T) {
	k1, k2, k3 := list(key(1)), list(key(2)), list(key(3))
	everything := "1 2 3 4 5" // the last is a token account of a wallet
	wallet := key(6)
	type step struct{ say, answer, hears string }
	subscribed := func(pubkeys, programs int) string {
		return fmt.Sprintf(`{"type":"subscribed","id":null,"pubkeys":%d,"programs":%d,"slot":%%d,"seq":%%d}`, pubkeys, programs)
	}
	left := func(pubkeys, programs int) string {
		return fmt.Sprintf(`{"type":"unsubscribed","id":null,"pubkeys":%d,"programs":%d}`, pubkeys, programs)
	}
	failed := func(details string) string {
		return `{"type":"error","id":null,"error":"Invalid request parameters","details":"` + details + `"}`
	}
	subscribe := func(rest string) string { return `{"type":"subscribe"` + rest + `}` }
	unsubscribe := func(rest string) string { return `{"type":"unsubscribe"` + rest + `}` }
	tests := map[string]struct {
		query string
		steps []step
	}{
		"the first subscribe replaces everything": {"", []step{
			{subscribe(`,"pubkeys":` + k1), subscribed(1, 0), "1"},
			{subscribe(`,"pubkeys":` + k2), subscribed(2, 0), "1 2"},
		}},
		"an empty subscribe is everything": {"?mode=none", []step{
			{subscribe(``), subscribed(0, 0), everything},
		}},
		"two empty lists are everything": {"?pubkeys=" + key(1).String(), []step{
			{subscribe(`,"pubkeys":[],"programs":[]`), subscribed(0, 0), everything},
			{subscribe(`,"pubkeys":` + k3), subscribed(1, 0), "3"},
		}},
		"silence takes names": {"?mode=none", []step{
			{subscribe(`,"programs":` + list(programB)), subscribed(0, 1), "3 4"},
			{subscribe(`,"pubkeys":` + k3), subscribed(1, 1), "3 4"},
			{subscribe(`,"pubkeys":` + k1), subscribed(2, 1), "1 3 4"},
		}},
		"a name twice counts once": {"?mode=none", []step{
			{subscribe(`,"pubkeys":` + list(key(1), key(1))), subscribed(1, 0), "1"},
			{subscribe(`,"pubkeys":` + k1), subscribed(1, 0), "1"},
			{unsubscribe(`,"pubkeys":` + k1), left(0, 0), ""},
		}},
		"what is taken back is silent, the rest is not": {"?mode=none", []step{
			{subscribe(`,"pubkeys":` + list(key(1), key(2), key(3)) + `,"programs":` + list(programB)), subscribed(3, 1), "1 2 3 4"},
			{unsubscribe(`,"pubkeys":` + k1), left(2, 1), "2 3 4"},
			{unsubscribe(`,"pubkeys":` + k3), left(1, 1), "2 3 4"},
			{unsubscribe(`,"programs":` + list(programB)), left(1, 0), "2"},
			{unsubscribe(`,"pubkeys":` + list(key(9)) + `,"programs":` + list(programA)), left(1, 0), "2"},
			{unsubscribe(`,"pubkeys":` + k2), left(0, 0), ""},
			{subscribe(`,"pubkeys":` + k1), subscribed(1, 0), "1"},
		}},
		"all takes everything back": {"", []step{
			{unsubscribe(`,"all":true`), left(0, 0), ""},
			{subscribe(`,"pubkeys":` + k2), subscribed(1, 0), "2"},
			{unsubscribe(`,"all":true,"pubkeys":` + k1), left(0, 0), ""},
			{subscribe(``), subscribed(0, 0), everything},
		}},
		"nothing to take back": {"?mode=none&pubkeys=" + key(1).String(), []step{
			{unsubscribe(``), failed("name pubkeys, programs or wallets, or all"), "1"},
			{unsubscribe(`,"all":false`), failed("name pubkeys, programs or wallets, or all"), "1"},
			{unsubscribe(`,"pubkeys":[],"programs":[]`), failed("name pubkeys, programs or wallets, or all"), "1"},
		}},
		"no name to take back from everything": {"", []step{
			{unsubscribe(`,"pubkeys":` + k1), failed("everything is subscribed, and no name to take back: say all"), everything},
		}},
		"wallets": {"?mode=none", []step{
			{subscribe(`,"pubkeys":` + k3 + `,"wallets":[]`), subscribed(1, 0), "3"},
			{unsubscribe(`,"wallets":` + k1), withWallets(left(1, 0), 0), "3"},
			{subscribe(`,"wallets":` + k1), withWallets(subscribed(1, 0), 1), "1 3"},
			{subscribe(`,"wallets":` + list(key(1), wallet)), withWallets(subscribed(1, 0), 2), "1 3 5"},
			{subscribe(`,"programs":` + list(key(70))), withWallets(subscribed(1, 1), 2), "1 3 5"},
			{unsubscribe(`,"wallets":` + k1), withWallets(left(1, 1), 1), "3 5"},
			{unsubscribe(`,"all":true`), withWallets(left(0, 0), 0), ""},
			{unsubscribe(`,"all":true`), left(0, 0), ""},
		}},
		"a key, twice, and its program are one update": {"?pubkeys=" + key(3).String() + "," + key(3).String() + "&programs=" + programB.String(), []step{
			{unsubscribe(`,"pubkeys":` + k1), left(1, 1), "3 4"},
		}},
	}
	for name, tt := range tests {
		n := serve(t, nil)
		n.script.block(1)
		c := n.dial(tt.query)
		for i, s := range tt.steps {
			c.send("%s", s.say)
			want := s.answer
			if strings.Contains(want, "%d") {
				want = fmt.Sprintf(want, n.script.chain[i].tip.Slot, n.script.seq)
			}
			if got := c.next(); got != want {
				t.Errorf("%s, step %d: %s\n got %s\nwant %s", name, i, s.say, got, want)
			}
			amount := ledger.Lamports(i + 1)
			n.script.block(ledger.Slot(i+2), account(1, amount, programA), account(2, amount, programA),
				account(3, amount, programB), account(4, amount, programB), tokenAccount(5, mintA, wallet, uint64(amount)))
			if got := numbers(t, c.settle()); got != s.hears {
				t.Errorf("%s, step %d: %s\n hears %q, want %q", name, i, s.say, got, s.hears)
			}
		}
	}
}

func TestExtendedOnceOnStaysOn(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	c := n.dial("?mode=none")
	for i, step := range []struct {
		more     string
		extended bool
	}{{"", false}, {`,"extended":false`, false}, {`,"extended":true`, true}, {`,"extended":false`, true}} {
		slot, a := ledger.Slot(i+2), account(1, ledger.Lamports(i+1), programA)
		c.send(`{"type":"subscribe","pubkeys":%s%s}`, list(key(1)), step.more)
		c.next()
		n.script.block(slot, a)
		if step.extended {
			c.expect(extendedFrame(a, slot, ledger.Seq(i+1), "processed"), slotEnd(slot, ledger.Seq(i+1)))
		} else {
			c.expect(basicFrame(a, slot))
		}
	}
	c.send(`{"type":"unsubscribe","all":true}`)
	c.next()
	n.script.block(6, account(1, 5, programA))
	c.expect(slotEnd(6, 5)) // names are silent, and completeness is still told
	c.quiet()
}

func TestIDs(t *testing.T) {
	long := strings.Repeat("i", 64)
	const refused = "-"
	tests := map[string]string{ // id as sent: as answered
		`0`: `0`, `1`: `1`, `-5`: `-5`, `-0`: `0`,
		`9223372036854775807`:  `9223372036854775807`,
		`-9223372036854775808`: `-9223372036854775808`,
		`18446744073709551615`: `18446744073709551615`,
		`18446744073709551616`: refused,
		`-9223372036854775809`: refused,
		`1.0`:                  refused, `1.5`: refused, `1e3`: refused, `1E0`: refused,
		`null`: `null`, `true`: refused, `false`: refused, `{}`: refused, `[]`: refused, `[1]`: refused, `{"id":1}`: refused,
		`""`: `""`, `"a"`: `"a"`, `"` + long + `"`: `"` + long + `"`, `"` + long + `i"`: refused,
		`"Ä` + long[2:] + `"`: `"Ä` + long[2:] + `"`, `"Ä` + long[1:] + `"`: refused,
		`"\u0041\n\"\\"`: `"A\n\"\\"`, `"` + strings.Repeat(`\u0041`, 64) + `"`: `"` + strings.Repeat("A", 64) + `"`,
		`"` + strings.Repeat(`\u0041`, 65) + `"`: refused, `"12"`: `"12"`, `"` + strings.Repeat("i", 60_000) + `"`: refused,
	}
	n := serve(t, nil)
	n.script.block(1)
	for sent, want := range tests {
		c := n.dial("?mode=none")
		c.send(`{"type":"ping","id":%s}`, sent)
		got := c.next()
		if want == refused {
			if want := `{"type":"error","id":null,"error":"Invalid request parameters","details":"id must be an integer or a string of at most 64 bytes"}`; got != want {
				t.Errorf("id %s:\n got %s\nwant %s", sent, got, want)
			}
		} else if !strings.HasPrefix(got, `{"type":"pong","id":`+want+`,"slot":1,"seq":0,"timestamp":"`) {
			t.Errorf("id %s: got %s, want a pong with id %s", sent, got, want)
		}
	}
}

func TestBadMessagesAreAnsweredAndChangeNothing(t *testing.T) {
	const (
		message  = "a message is a JSON object with a type of subscribe, unsubscribe, resume or ping"
		id       = "id must be an integer or a string of at most 64 bytes"
		pubkeys  = "pubkeys must be a list of base58 public keys"
		programs = "programs must be a list of base58 public keys"
		fromSeq  = "from_seq must be a plain decimal"
		nothing  = "name pubkeys, programs or wallets, or all"
	)
	k := key(1).String()
	tests := []struct{ sent, id, details string }{
		{``, `null`, message},
		{`x`, `null`, message},
		{`null`, `null`, message},
		{`[]`, `null`, message},
		{`{"type":"ping"`, `null`, message},
		{`{"type":"ping"}{"type":"ping"}`, `null`, message},
		{"{\"type\":\"ping\"}\x00", `null`, message},
		{`{}`, `null`, message},
		{`{"id":5}`, `5`, message},
		{`{"type":null,"id":5}`, `5`, message},
		{`{"type":"Subscribe","id":5}`, `5`, message},
		{`{"type":"publish","id":"a"}`, `"a"`, message},
		{`{"type":1,"id":5}`, `5`, message},
		{`{"type":"subscribe","id":1.5,"pubkeys":["` + k + `"]}`, `null`, id},
		{`{"type":"subscribe","id":5,"pubkeys":"` + k + `"}`, `5`, message},
		{`{"type":"subscribe","id":5,"pubkeys":null}`, `5`, message},
		{`{"type":"subscribe","id":5,"pubkeys":[1]}`, `5`, message},
		{`{"type":"subscribe","id":5,"pubkeys":[null]}`, `5`, pubkeys},
		{`{"type":"subscribe","id":5,"pubkeys":["x"]}`, `5`, pubkeys},
		{`{"type":"subscribe","id":5,"pubkeys":["` + k + `,` + k + `"]}`, `5`, pubkeys},
		{`{"type":"subscribe","id":5,"pubkeys":["` + k + `","0"]}`, `5`, pubkeys},
		{`{"type":"subscribe","id":5,"snapshot":true,"pubkeys":["0"]}`, `5`, pubkeys},
		{`{"type":"subscribe","id":5,"programs":["` + k[1:] + `"]}`, `5`, programs},
		{`{"type":"subscribe","id":5,"programs":null}`, `5`, message},
		{`{"type":"subscribe","id":5,"wallets":null}`, `5`, message},
		{`{"type":"subscribe","id":5,"wallets":["x"]}`, `5`, "wallets must be a list of base58 public keys"},
		{`{"type":"subscribe","id":5,"pubkeys":["` + k + `"],"programs":["l"]}`, `5`, programs},
		{`{"type":"subscribe","id":5,"snapshot":"yes","pubkeys":["` + k + `"]}`, `5`, message},
		{`{"type":"subscribe","id":5,"extended":"true"}`, `5`, message},
		{`{"type":"unsubscribe","id":5}`, `5`, nothing},
		{`{"type":"unsubscribe","id":5,"all":"true"}`, `5`, message},
		{`{"type":"unsubscribe","id":5,"all":true,"pubkeys":["?"]}`, `5`, pubkeys},
		{`{"type":"unsubscribe","id":5,"programs":["?"]}`, `5`, programs},
		{`{"type":"resume","id":5}`, `5`, fromSeq},
		{`{"type":"resume","id":5,"from_seq":null}`, `5`, fromSeq},
		{`{"type":"resume","id":5,"from_seq":"1"}`, `5`, fromSeq},
		{`{"type":"resume","id":5,"from_seq":-1}`, `5`, fromSeq},
		{`{"type":"resume","id":5,"from_seq":1e3}`, `5`, fromSeq},
		{`{"type":"resume","id":5,"from_seq":18446744073709551616}`, `5`, fromSeq},
		{strings.Repeat(`{"a":`, 11_000), `null`, message},
		{`{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, `null`, message},
	}
	n := serve(t, nil)
	n.script.block(1)
	var c *client
	for i, tt := range tests {
		if i%20 == 0 { // a budget's worth
			c = n.dial("?pubkeys=" + key(1).String() + "&programs=" + programB.String())
		}
		c.send("%s", tt.sent)
		want := `{"type":"error","id":` + tt.id + `,"error":"Invalid request parameters","details":"` + tt.details + `"}`
		if got := c.next(); got != want {
			t.Errorf("%.200s:\n got %s\nwant %s", tt.sent, got, want)
		}
		slot := n.script.nextSlot()
		a := account(1, ledger.Lamports(slot), programA)
		n.script.block(slot, a, account(2, ledger.Lamports(slot), programA))
		c.expect(basicFrame(a, slot))
		c.send(`{"type":"unsubscribe","id":"left","pubkeys":%s}`, list(key(70)))
		c.expect(`{"type":"unsubscribed","id":"left","pubkeys":1,"programs":1}`)
	}
}

func TestPongTellsThePosition(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("?mode=none")
		pong := func(id string, slot, seq int) {
			n.Helper()
			time.Sleep(time.Second)
			c.send(`{"type":"ping","id":%s}`, id)
			now := time.Now().UTC().Format("2006-01-02T15:04:05Z")
			c.expect(fmt.Sprintf(`{"type":"pong","id":%s,"slot":%d,"seq":%d,"timestamp":"%s"}`, id, slot, seq, now))
		}
		pong("4", 0, 0)
		n.script.block(7, account(1, 1, programA), account(2, 1, programA))
		pong(`"x"`, 7, 2)
		n.script.block(9)
		pong("null", 9, 2)
	})
}
