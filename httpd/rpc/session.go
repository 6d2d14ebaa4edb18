package rpc

import (
	"bytes"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
	"ledgerd/httpd"
)

// maxBatch is how many calls a batch may have.
const maxBatch = 100

const (
	// valueBytes is about what a value of JSON takes while it is parsed: the parser's memory grows in steps, and the steps before stay.
	valueBytes = 448
	// fewValues are parsed without being counted in the budget, and by a parser that is used again: a call about 100 accounts has some 120.
	fewValues = 300
	// maxSaidValues is how many values a message over a WebSocket may have: some more than four filters by arrays of bytes.
	maxSaidValues = 1024
)

// valuesIn returns about how many values there are in a text of JSON, or more.
func valuesIn(text []byte) (n int) {
	for _, before := range []string{",", ":", "[", "{"} {
		n += bytes.Count(text, []byte(before))
	}
	return n
}

// session is the parsed body of one exchange and the calls in it.
type session struct {
	door               *Door
	x                  *httpd.Exchange
	parser             fastjson.Parser
	isBatch, isLarge   bool                                                  // large: the parser is used once, and the tree of a body is counted in the budget
	sentID, sentParams []byte                                                // of the present call, as they were sent
	call               call                                                  // the present one
	forwarded          []*forwarded                                          // the calls that upstreams are asked
	goesOn             func(dst []byte) (piece []byte, more bool, err error) // appends what follows of the answer to the present call; nil: it is whole
}

// reserve makes sure of memory for the tree of a body that has many values.
func (s *session) reserve(body []byte) error {
	n := valuesIn(body)
	if s.isLarge = n > fewValues; !s.isLarge {
		return nil
	}
	s.x.Keep(n * valueBytes)
	return s.x.Reserve(n * valueBytes)
}

// forget lets go of the calls and their tree, if that is large.
func (s *session) forget() {
	if s.isLarge {
		s.parser, s.call, s.isLarge = fastjson.Parser{}, call{}, false
		if s.x != nil { // a message over a WebSocket has none
			s.x.Keep(0)
		}
	}
}

// release lets go of what belongs to the exchange, unless what follows of the answer does.
func (s *session) release() {
	if s.goesOn == nil {
		s.forget()
		d := s.door
		s.door, s.x, s.forwarded, s.call = nil, nil, nil, call{}
		d.sessions.Put(s)
	}
}

// parse returns the calls in a body, which are JSON of any kind.
func (s *session) parse(body []byte) ([]*fastjson.Value, error) {
	v, err := s.parser.ParseBytes(body) // which bounds the depth, and takes some for JSON that is none
	if err != nil || !utf8.Valid(body) || fastjson.ValidateBytes(body) != nil {
		return nil, &callError{code: codeParse, message: "Parse error: the body is no JSON, or nested deeper than 300 times"}
	}
	if s.isBatch = v.Type() == fastjson.TypeArray; !s.isBatch {
		return []*fastjson.Value{v}, nil
	}
	calls, _ := v.Array()
	if len(calls) == 0 || len(calls) > maxBatch {
		return nil, &callError{code: codeRequest, message: "Invalid request: a batch has from 1 to 100 calls"}
	}
	return calls, nil
}

// answer appends the answers of calls to dst. view is what a single call was answered from.
func (s *session) answer(dst []byte, calls []*fastjson.Value) (body []byte, view ledger.View) {
	if s.isBatch {
		dst = append(dst, '[')
	}
	answers := 0
	for _, value := range calls {
		before := len(dst)
		if answers > 0 {
			dst = append(dst, ',')
		}
		s.call = call{session: s, query: ledger.Query{Client: s.x.Client()}}
		var answered bool
		if dst, answered = s.call.run(dst, value); answered {
			answers++
		} else {
			dst = dst[:before]
		}
		s.x.Settle(dst) // a call reserves the most that it may take, and so will the next one
	}
	switch {
	case !s.isBatch:
		view = s.call.view
	case answers == 0:
		dst = dst[:0]
	default:
		dst = append(dst, ']')
	}
	if len(s.forwarded) == 0 {
		return dst, view
	}
	s.forget() // others may take their time
	s.x.Settle(dst)
	return s.askOthers(dst), ledger.View{}
}

// call is one request of JSON-RPC.
type call struct {
	*session
	id     []byte // as it was sent; nil: there is none
	name   string
	method *method
	params []*fastjson.Value
	wrong  error        // what is wrong with them, as far as they were read: the first thing
	query  ledger.Query // commitment, minContextSlot, and the head once one is fixed
	view   ledger.View  // what was answered from last
}

// run appends the answer of a call, unless an upstream has to answer. A notification is not answered.
func (c *call) run(dst []byte, value *fastjson.Value) (_ []byte, answered bool) {
	began := time.Now()
	begin := len(dst)
	err := c.read(value)
	if c.method != nil && c.id == nil {
		return dst, false // a notification
	}
	if err == nil {
		dst = append(dst, `{"jsonrpc":"2.0","result":`...)
		dst, err = c.method.answer(c, dst)
	}
	if err != nil {
		failure := errorOf(err, c.view)
		if failure.elsewhere && len(c.door.upstreams) > 0 {
			c.forward(failure, begin)
			return dst[:begin], true
		}
		dst = appendError(dst[:begin], failure)
	}
	if c.method != nil {
		c.method.observe(err, began)
	}
	if c.goesOn == nil {
		dst = c.appendID(dst)
	}
	return dst, true
}

// read takes a call apart, and finds its method.
func (c *call) read(value *fastjson.Value) error {
	name, err := c.takeApart(value)
	switch {
	case name == "" && err != nil: // there is none
		return err
	case c.door.byName[name] == nil:
		c.method = c.door.methods[len(c.door.methods)-1]
		return elsewhere(codeMethod, "Method not found")
	}
	if c.method = c.door.byName[name]; err == nil && len(c.params) > c.method.most {
		return badParams("there are at most %d parameters", c.method.most)
	}
	return err
}

// takeApart finds id, name and parameters of a call. With an error about the parameters it returns the name too.
func (c *call) takeApart(value *fastjson.Value) (name string, err error) {
	invalid := func(what string) error { return &callError{code: codeRequest, message: "Invalid request: " + what} }
	if value.Type() != fastjson.TypeObject {
		return "", invalid("a call is an object")
	}
	if id := value.Get("id"); id != nil {
		c.sentID = id.MarshalTo(c.sentID[:0]) // asked for its type, the parser changes a string
		switch id.Type() {
		case fastjson.TypeString, fastjson.TypeNumber, fastjson.TypeNull:
			c.id = c.sentID
		default:
			return "", invalid("an id is a string, a number or null")
		}
	}
	if version := value.Get("jsonrpc"); version == nil || version.Type() != fastjson.TypeString || string(version.GetStringBytes()) != "2.0" {
		return "", invalid(`jsonrpc must be "2.0"`)
	}
	text := value.Get("method")
	if text == nil || text.Type() != fastjson.TypeString {
		return "", invalid("method must be a string")
	}
	c.name, c.sentParams = string(text.GetStringBytes()), c.sentParams[:0]
	params := value.Get("params")
	if params != nil && len(c.door.upstreams) > 0 { // which may be sent them
		c.sentParams = params.MarshalTo(c.sentParams)
	}
	if params = given(params); params != nil && params.Type() != fastjson.TypeArray {
		return c.name, badParams("params must be an array")
	}
	if params != nil {
		c.params, _ = params.Array()
	}
	return c.name, nil
}

// appendID ends an answer with the id of its call.
func (c *call) appendID(dst []byte) []byte {
	dst = append(dst, `,"id":`...)
	if c.id == nil {
		dst = append(dst, `null`...)
	}
	return append(append(dst, c.id...), '}')
}
