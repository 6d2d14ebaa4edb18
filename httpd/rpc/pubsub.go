package rpc

import (
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
	"ledgerd/httpd"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/stream"
)

// subscriptions are what a client may ask for over a WebSocket, by name. All who ask for the same share one topic of the hub, and its number.
var subscriptions = map[string]func(*call, *stream.Socket) error{
	"accountSubscribe": (*call).accountSubscribe,
	"programSubscribe": (*call).programSubscribe,
	"slotSubscribe":    (*call).slotSubscribe,
	"rootSubscribe":    (*call).rootSubscribe,

	"accountUnsubscribe": (*call).unsubscribe,
	"programUnsubscribe": (*call).unsubscribe,
	"slotUnsubscribe":    (*call).unsubscribe,
	"rootUnsubscribe":    (*call).unsubscribe,
}

// upgrade makes an exchange a WebSocket.
func (d *Door) upgrade(x *httpd.Exchange) error {
	if d.config.Hub == nil {
		return errMethod
	}
	return x.Upgrade(func(ctx *fasthttp.RequestCtx, client ratelimit.Client) { d.config.Hub.Accept(ctx, client, d.talk) })
}

// talk answers a message.
func (d *Door) talk(socket *stream.Socket, text []byte) {
	s := d.sessions.Get().(*session)
	s.door = d
	defer s.release()
	calls, isBatch, err := s.parse(text)
	c := call{session: s}
	if err == nil && isBatch {
		err = &callError{code: codeRequest, message: "Invalid request: no batches over a WebSocket"}
	}
	var name string
	if err == nil {
		name, err = c.takeApart(calls[0])
	}
	if err == nil && c.id == nil {
		return // a notification
	}
	if err == nil {
		ask := subscriptions[name]
		if err = error(&callError{code: codeMethod, message: "Method not found"}); ask != nil {
			err = ask(&c, socket)
		}
	}
	if err != nil {
		socket.Answer(c.appendID(appendError(nil, errorOf(err, c.view))))
	}
}

// watch has the client told of a topic, whose key says all that it is about.
func (c *call) watch(socket *stream.Socket, key string, t stream.Topic) error {
	err := socket.Watch(key, t, func(number uint64) []byte {
		return c.appendID(appendUint([]byte(`{"jsonrpc":"2.0","result":`), number))
	})
	if errors.Is(err, stream.ErrManyTopics) {
		return &callError{code: codeInternal, message: "Internal error: Too many subscriptions. Subscription rejected."}
	}
	return err
}

// unsubscribe ends a subscription of any kind.
func (c *call) unsubscribe(socket *stream.Socket) error {
	number, err := numberOf(c.param(0), "the number of the subscription")
	if err != nil {
		return err
	}
	if !socket.Unwatch(number) {
		return &callError{code: codeParams, message: "Invalid subscription id."}
	}
	socket.Answer(c.appendID([]byte(`{"jsonrpc":"2.0","result":true`)))
	return nil
}

func (c *call) slotSubscribe(socket *stream.Socket) error {
	return c.watch(socket, "slot", stream.Topic{Append: func(dst []byte, number uint64, n *stream.Note) ([]byte, error) {
		dst = fmt.Appendf(dst, `{"jsonrpc":"2.0","method":"slotNotification","params":{"result":{"parent":%d,"root":%d,"slot":%d}`, n.Before, n.Root, n.Slot)
		return appendNumberOf(dst, number), nil
	}})
}

func (c *call) rootSubscribe(socket *stream.Socket) error {
	return c.watch(socket, "root", stream.Topic{Level: ledger.Finalized, Append: func(dst []byte, number uint64, n *stream.Note) ([]byte, error) {
		dst = appendUint(append(dst, `{"jsonrpc":"2.0","method":"rootNotification","params":{"result":`...), uint64(n.Slot))
		return appendNumberOf(dst, number), nil
	}})
}

// appendNumberOf ends a notification with the number of its subscription.
func appendNumberOf(dst []byte, number uint64) []byte {
	return append(appendUint(append(dst, `,"subscription":`...), number), `}}`...)
}

func (c *call) accountSubscribe(socket *stream.Socket) error {
	key, f, config, err := c.subject(asBinary)
	if err != nil {
		return err
	}
	if _, err := isSet(config, "enableReceivedNotification"); err != nil {
		return err
	}
	a, v, err := c.door.config.Ledger.Account(c.query, key)
	switch err = c.from(v, err); {
	case err == nil:
		err = f.canShow(&a)
	default:
		err = unlessAbsent(err, key)
	}
	if err != nil {
		return err
	}
	return c.watch(socket, fmt.Sprint("account ", c.query.Commitment, f.encoding, key), stream.Topic{
		Level: c.query.Commitment, Account: ledger.Some(key), Tokens: f.encoding == asParsed,
		Append: func(dst []byte, number uint64, n *stream.Note) ([]byte, error) {
			dst, err := f.appendNote(appendNoteHead(dst, "account", n), n)
			return appendNumberOf(append(dst, '}'), number), err
		},
	})
}

func (c *call) programSubscribe(socket *stream.Socket) error {
	program, f, config, err := c.subject(asBinary)
	if err != nil {
		return err
	}
	takes, err := selectionOf(member(config, "filters"))
	if err != nil {
		return err
	}
	some, _, v, err := c.door.config.Ledger.Program(c.query, program, ledger.Opt[ledger.Pubkey]{}, 1, nil)
	switch err = c.from(v, err); {
	case v.Lacks:
		return elsewhere(codeExcluded, "the accounts of program %s are not all held here", program)
	case errors.Is(err, ledger.ErrNotFound):
	case err != nil:
		return err
	case len(some) > 0 && takes.looks && some[0].Known&ledger.FieldData == 0:
		return elsewhere(codeExcluded, "the data of the accounts of program %s is not kept here: filters take --data", program)
	case len(some) > 0:
		if err := f.canShow(&some[0]); err != nil {
			return err
		}
	}
	key := fmt.Appendf(nil, "program %d %s %s ", c.query.Commitment, f.encoding, program)
	if filters := member(config, "filters"); filters != nil {
		key = filters.MarshalTo(key)
	}
	return c.watch(socket, string(key), stream.Topic{
		Level: c.query.Commitment, Program: ledger.Some(program), Tokens: f.encoding == asParsed,
		Append: func(dst []byte, number uint64, n *stream.Note) ([]byte, error) {
			if n.Account.Exists() && !takes.takes(n.Account, program) {
				return dst, nil
			}
			dst = append(appendNoteHead(dst, "program", n), `{"pubkey":"`...)
			dst = append(n.Account.Pubkey.AppendBase58(dst), `","account":`...)
			dst, err := f.appendNote(dst, n)
			return appendNumberOf(append(dst, `}}`...), number), err
		},
	})
}

// subject reads the parameters of a subscription of accounts. dataSlice does not apply to what is told.
func (c *call) subject(usual string) (key ledger.Pubkey, f form, config *fastjson.Value, err error) {
	if key, err = c.key(0, "pubkey"); err == nil {
		config, err = c.config(1)
	}
	if err == nil {
		f, err = formOf(config, usual)
	}
	if f.sliced = false; err == nil && member(config, "resumeFrom") != nil {
		err = &callError{code: codeResync, message: "resync required"} // what was missed is told on /api/ws/accounts alone
	}
	return key, f, config, err
}

// takes reports whether the filters take an account that belongs to the program.
func (s *selection) takes(a *ledger.Account, program ledger.Pubkey) bool {
	return !s.never && a.Owner == program && (!s.tokens || a.Token != nil) && (!s.looks || s.data.Match(a))
}

// canShow returns an error if what is known of an account, as it is now, is not enough to tell of it.
func (f *form) canShow(a *ledger.Account) error {
	_, err := f.appendNote(nil, &stream.Note{Account: a, Decimals: ledger.Some(uint8(0))})
	return err
}

// appendNoteHead appends what stands before the account that a note is about.
func appendNoteHead(dst []byte, kind string, n *stream.Note) []byte {
	return fmt.Appendf(dst, `{"jsonrpc":"2.0","method":"%sNotification","params":{"result":{"context":{"slot":%d,"seq":%d},"value":`, kind, n.Slot, n.Seq)
}

// appendNote appends the account that a note is about: zeroed if it is closed, and in base64 where its data is kept and cannot be shown parsed.
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
	if err != nil && f.encoding == asParsed && a.Known&ledger.FieldData != 0 {
		plain := form{encoding: asBase64}
		return plain.appendAccount(dst[:begin], a, known)
	}
	return dst, err
}
