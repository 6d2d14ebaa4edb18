package rpc

import (
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
	"ledgerd/httpd"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/stream"
)

// subscription is what a client may ask for over a WebSocket.
type subscription struct {
	most int // parameters that it takes
	ask  func(*call, *stream.Socket) error
}

// subscriptions are all there are, by name. All who ask for the same share one topic of the hub, and its number.
var subscriptions = map[string]subscription{
	"accountSubscribe":   {2, (*call).accountSubscribe},
	"programSubscribe":   {2, (*call).programSubscribe},
	"slotSubscribe":      {0, (*call).slotSubscribe},
	"rootSubscribe":      {0, (*call).rootSubscribe},
	"signatureSubscribe": {2, (*call).signatureSubscribe},

	"accountUnsubscribe":   {1, unsubscribe("account")},
	"programUnsubscribe":   {1, unsubscribe("program")},
	"slotUnsubscribe":      {1, unsubscribe("slot")},
	"rootUnsubscribe":      {1, unsubscribe("root")},
	"signatureUnsubscribe": {1, unsubscribe("signature")},
}

// upgrade makes an exchange a WebSocket.
func (d *Door) upgrade(x *httpd.Exchange) error {
	return x.Upgrade(func(ctx *fasthttp.RequestCtx, client ratelimit.Client) error {
		return d.config.Hub.Accept(ctx, client, d.talk)
	})
}

// talk answers a message.
func (d *Door) talk(socket *stream.Socket, text []byte) {
	s := d.sessions.Get().(*session)
	s.door = d
	defer s.release()
	c := call{session: s}
	var calls []*fastjson.Value
	err := error(&callError{code: codeRequest, message: "Invalid request: a message over a WebSocket has at most 1024 values"})
	n := valuesIn(text)
	if s.isLarge = n > fewValues; n <= maxSaidValues {
		calls, err = s.parse(text)
	}
	if err == nil && s.isBatch {
		err = &callError{code: codeRequest, message: "Invalid request: no batches over a WebSocket"}
	}
	var name string
	if err == nil {
		name, err = c.takeApart(calls[0])
	}
	if c.id == nil && (err == nil || name != "") {
		return // a notification, be something wrong with its parameters
	}
	if err == nil {
		switch one, known := subscriptions[name]; {
		case !known:
			err = &callError{code: codeMethod, message: "Method not found"}
		case len(c.params) > one.most:
			err = badParams("there are at most %d parameters", one.most)
		default:
			err = one.ask(&c, socket)
		}
	}
	if err != nil {
		answer := c.appendID(appendError(nil, errorOf(err, c.view)))
		s.forget() // it may take its time
		socket.Refuse(answer)
	}
}

// subscribed returns the answer that a subscription has a number.
func (c *call) subscribed(number uint64) []byte {
	return c.appendID(encode.AppendNumber(nil, `{"jsonrpc":"2.0","result":`, number))
}

// unsubscribe returns what ends a subscription of a kind.
func unsubscribe(kind string) func(*call, *stream.Socket) error {
	return func(c *call, socket *stream.Socket) error {
		number := c.number(c.param(0), "the number of the subscription")
		if c.wrong != nil {
			return c.wrong
		}
		answer := []byte(`{"jsonrpc":"2.0","result":true`)
		if !socket.Unwatch(kind, number) { // answered at once: kit takes back each signature that it was told
			answer = appendError(nil, &callError{code: codeParams, message: "Invalid subscription id."})
		}
		socket.Answer(c.appendID(answer))
		return nil
	}
}

func (c *call) slotSubscribe(socket *stream.Socket) error {
	return socket.Watch("slot", stream.Topic{Kind: "slot", Append: func(dst []byte, number uint64, n *stream.Note) []byte {
		dst = fmt.Appendf(dst, `{"jsonrpc":"2.0","method":"slotNotification","params":{"result":{"parent":%d,"root":%d,"slot":%d}`, n.Parent, n.Root, n.Slot)
		return appendNumberOf(dst, number)
	}}, fromNow, c.subscribed)
}

func (c *call) rootSubscribe(socket *stream.Socket) error {
	return socket.Watch("root", stream.Topic{Kind: "root", Level: ledger.Finalized, Append: func(dst []byte, number uint64, n *stream.Note) []byte {
		dst = encode.AppendNumber(dst, `{"jsonrpc":"2.0","method":"rootNotification","params":{"result":`, n.Slot)
		return appendNumberOf(dst, number)
	}}, fromNow, c.subscribed)
}

// fromNow is where subscriptions begin that cannot be resumed.
var fromNow ledger.Opt[ledger.Seq]

// appendNumberOf ends a notification with the number of its subscription.
func appendNumberOf(dst []byte, number uint64) []byte {
	return append(encode.AppendNumber(dst, `,"subscription":`, number), `}}`...)
}

func (c *call) accountSubscribe(socket *stream.Socket) error {
	s, _ := c.subject("pubkey")
	accounts, err := c.accountsAt([]ledger.Pubkey{s.key})
	if err == nil && accounts[0].Exists() {
		err = s.canShow(&accounts[0])
	}
	if err != nil {
		return err
	}
	return socket.Watch("account "+s.id, stream.Topic{
		Kind: "account", Level: c.query.Commitment, Account: ledger.Some(s.key), Tokens: s.encoding == asParsed, Takes: s.takes, Append: s.teller("account"),
	}, s.seen, c.subscribed)
}

func (c *call) programSubscribe(socket *stream.Socket) error {
	s, config := c.subject("programId")
	takes := c.readSelection(member(config, "filters"))
	withContext, _ := c.isSet(config, "withContext"), c.isSet(config, "sortResults") // they always have it, and nothing is sorted
	if c.wrong != nil {
		return c.wrong
	}
	if err := socket.PayLookup(judged); err != nil {
		return err
	}
	some, _, v, err := c.door.config.Ledger.Program(c.query, s.key, ledger.Opt[ledger.Pubkey]{}, judged, nil)
	switch err = c.from(v, err); {
	case v.Lacks:
		return elsewhere(codeExcluded, "the accounts of program %s are not all held here", s.key)
	case err != nil && !errors.Is(err, ledger.ErrNotFound):
		return err
	}
	for i := range some {
		a := &some[i]
		if takes.looks && a.Known&ledger.FieldData == 0 {
			return elsewhere(codeExcluded, "the data of the accounts of program %s is not kept here: filters take --data", s.key)
		}
		if takes.takes(&ledger.Update{Account: *a}) {
			if err := s.canShow(a); err != nil {
				return err
			}
			break
		}
	}
	t := stream.Topic{
		Kind: "program", Level: c.query.Commitment, Program: ledger.Some(s.key), Tokens: s.encoding == asParsed, Takes: s.takes, Append: s.teller("program"),
	}
	if takes.looks || takes.tokens {
		t.Takes = takes.takes
	}
	return socket.Watch(string(takes.appendKey(fmt.Appendf(nil, "program %s %t ", s.id, withContext))), t, s.seen, c.subscribed)
}

// judged is how many accounts of a program are looked at for one that is taken and tells whether such accounts can be shown.
const judged = 100

// subject is what a subscription of accounts is about.
type subject struct {
	key ledger.Pubkey // of the account, or of the program
	form
	id    string                    // the same for all who give the same parameters: dataSlice is a part of it, and does not apply to what is told
	takes func(*ledger.Update) bool // nil without a dataSlice
	seen  ledger.Opt[ledger.Seq]    // the update after which the client was told nothing, if it was told something before: what it has missed comes first
}

// subject reads the parameters of a subscription of accounts, by a key with a name, and returns its configuration too.
func (c *call) subject(name string) (s subject, config *fastjson.Value) {
	s.key, s.form, config = c.shown(name, asBinary)
	s.id = fmt.Sprint(s.key, c.query.Commitment, s.encoding)
	if s.slice != encode.WholeData {
		s.id += fmt.Sprint(s.slice)
		s.slice, s.takes = encode.WholeData, takesAll
	}
	if from := member(config, "resumeFrom"); from != nil {
		s.seen = ledger.Some(ledger.Seq(c.number(from, "resumeFrom")))
	}
	return s, config
}

// takesAll takes any update. A client may have only some topics that are asked what they take, and of a busy account it could have any number else,
// each with another dataSlice and encoded by itself.
func takesAll(*ledger.Update) bool { return true }

// canShow returns an error if what is known of an account, as it is now, is not enough to tell of it. Kept data can be shown in base64 at least: none of
// it is encoded to know that.
func (f *form) canShow(a *ledger.Account) error {
	if a.Known&ledger.FieldData != 0 {
		f = &form{asBase64, encode.Slice{}}
	}
	_, err := f.appendNote(nil, &stream.Note{Account: a, Decimals: ledger.Some(uint8(0))})
	return err
}

// teller returns what appends the notifications of a subscription of a kind. They name the account if it is one of a program. Of an account
// that cannot be shown they say why.
func (f *form) teller(kind string) func([]byte, uint64, *stream.Note) []byte {
	return func(dst []byte, number uint64, n *stream.Note) []byte {
		begin := len(dst)
		dst = fmt.Appendf(dst, `{"jsonrpc":"2.0","method":"%sNotification","params":{"result":{"context":{"slot":%d,"seq":%d},"value":`, kind, n.Slot, n.Seq)
		end := `}`
		if kind == "program" {
			dst = append(encode.AppendKey(dst, `{"pubkey":`, &n.Account.Pubkey), `,"account":`...)
			end = `}}`
		}
		dst, err := f.appendNote(dst, n)
		if err != nil {
			why := *errorOf(err, ledger.View{})
			why.data = fmt.Sprintf(`{"pubkey":%q,"slot":%d,"seq":%d}`, n.Account.Pubkey, n.Slot, n.Seq)
			dst = fmt.Appendf(dst[:begin], `{"jsonrpc":"2.0","method":"%sNotification","params":{"error":`, kind)
			dst, end = appendFault(dst, &why), ""
		}
		return appendNumberOf(append(dst, end...), number)
	}
}

// appendNote appends the account that a note is about: zeroed if it is closed, and in base64 where its data is kept and cannot be shown in
// the encoding that was asked for.
func (f *form) appendNote(dst []byte, n *stream.Note) ([]byte, error) {
	a, known := n.Account, facts{}
	if !a.Exists() {
		a = &ledger.Account{Pubkey: a.Pubkey, Known: ledger.FieldsShown | ledger.FieldData}
	}
	if n.Decimals.Known {
		known.held = &ledger.Mint{Decimals: n.Decimals.Value}
	}
	begin := len(dst)
	dst, err := f.appendAccount(dst, a, known)
	if err != nil && a.Known&ledger.FieldData != 0 {
		plain := form{asBase64, encode.WholeData}
		return plain.appendAccount(dst[:begin], a, known)
	}
	return dst, err
}
