package rpc

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
	"ledgerd/httpd"
	"ledgerd/httpd/encode"
)

// maxBatch is how many calls a batch may have.
const maxBatch = 100

// session is the parsed body of one exchange and the calls in it.
type session struct {
	door    *Door
	x       *httpd.Exchange
	parser  fastjson.Parser
	sent    []byte // the id of the present call, as it was sent
	one     [1]*fastjson.Value
	call    call                                                  // the present one
	outside *outside                                              // nil: no call is forwarded
	goesOn  func(dst []byte) (piece []byte, more bool, err error) // appends what follows of the answer to the present call; nil: it is whole
}

// release lets go of what belongs to the exchange.
func (s *session) release() {
	d := s.door
	s.door, s.x, s.outside, s.goesOn, s.call = nil, nil, nil, nil, call{}
	d.sessions.Put(s)
}

// parse returns the calls in a body, which are JSON of any kind, and whether they are a batch.
func (s *session) parse(body []byte) (calls []*fastjson.Value, isBatch bool, err error) {
	v, err := s.parser.ParseBytes(body) // which bounds the depth, and takes some for JSON that is none
	if err != nil || !utf8.Valid(body) || fastjson.ValidateBytes(body) != nil {
		return nil, false, &callError{code: codeParse, message: "Parse error: the body is no JSON, or nested deeper than 300 times"}
	}
	if v.Type() != fastjson.TypeArray {
		s.one[0] = v
		return s.one[:], false, nil
	}
	calls, _ = v.Array()
	if len(calls) == 0 || len(calls) > maxBatch {
		return nil, true, &callError{code: codeRequest, message: "Invalid request: a batch has from 1 to 100 calls"}
	}
	return calls, true, nil
}

// answer appends the answers of calls to dst. view is what a single call was answered from.
func (s *session) answer(dst []byte, calls []*fastjson.Value, isBatch bool) (body []byte, view ledger.View) {
	defer func() { // the exchange, which they use, does not end before them, even by a panic
		if s.outside != nil {
			s.outside.ends.Wait()
		}
	}()
	if isBatch {
		dst = append(dst, '[')
	}
	answers := 0
	for _, value := range calls {
		before := len(dst)
		if answers > 0 {
			dst = append(dst, ',')
		}
		begin := len(dst)
		s.call = call{session: s, isBatch: isBatch, query: ledger.Query{Client: s.x.Client()}}
		var f *forwarded
		dst, f = s.run(dst, value)
		switch {
		case f != nil:
			f.at = len(dst)
			s.outside.start(f)
		case len(dst) == begin: // a notification
			dst = dst[:before]
			continue
		}
		answers++
	}
	switch {
	case !isBatch:
		view = s.call.view
	case answers == 0:
		dst = dst[:0]
	default:
		dst = append(dst, ']')
	}
	if s.outside == nil {
		return dst, view
	}
	whole, passed := s.outside.merge(dst)
	if passed {
		s.x.Context().Response.Header.Set("X-Ledger-Forwarded", "1")
	}
	return whole, ledger.View{}
}

// run answers a call while no answer of an upstream takes memory of the exchange.
func (s *session) run(dst []byte, value *fastjson.Value) ([]byte, *forwarded) {
	kept := 0
	if s.outside != nil {
		s.outside.Lock()
		defer s.outside.Unlock()
		kept = s.outside.kept
	}
	dst, f := s.call.run(dst, value)
	s.x.Settle(dst, kept) // a call reserves the most that it may take, and so will the next one
	return dst, f
}

// call is one request of JSON-RPC.
type call struct {
	*session
	isBatch bool
	id      *fastjson.Value
	name    string
	all     *fastjson.Value // the parameters, of any kind; nil: there are none
	method  *method
	params  []*fastjson.Value
	wrong   error        // what is wrong with them, as far as they were read: the first thing
	query   ledger.Query // commitment, minContextSlot, and the head once one is fixed
	view    ledger.View  // what was answered from last
}

// run appends the answer of a call, nothing for a notification. Where an upstream has to answer, it returns what to ask instead.
func (c *call) run(dst []byte, value *fastjson.Value) ([]byte, *forwarded) {
	began := time.Now()
	begin := len(dst)
	err := c.read(value)
	if c.method != nil && c.id == nil {
		return dst, nil // a notification
	}
	if err == nil {
		dst = append(dst, `{"jsonrpc":"2.0","result":`...)
		dst, err = c.method.answer(c, dst)
	}
	if err != nil {
		failure := errorOf(err, c.view)
		if failure.elsewhere && len(c.door.upstreams) > 0 {
			return dst[:begin], c.forward(failure)
		}
		dst = appendError(dst[:begin], failure)
	}
	if c.method != nil {
		c.method.observe(err, began)
	}
	if c.goesOn != nil {
		return dst, nil
	}
	return c.appendID(dst), nil
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
		c.sent = id.MarshalTo(c.sent[:0]) // asked for its type, the parser changes a string
		switch id.Type() {
		case fastjson.TypeString, fastjson.TypeNumber, fastjson.TypeNull:
			if text := id.GetStringBytes(); bytes.IndexByte(c.sent, '\\') >= 0 && !isText(c.sent, text) {
				return "", &callError{code: codeParse, message: "Parse error: half a surrogate pair stands in the id"}
			}
			c.id = id
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
	c.name, c.all = string(text.GetStringBytes()), value.Get("params")
	params := given(c.all)
	if params != nil && params.Type() != fastjson.TypeArray {
		return c.name, badParams("params must be an array")
	}
	if params != nil {
		c.params, _ = params.Array()
	}
	return c.name, nil
}

// isText reports whether a string of JSON is that text. Half a surrogate pair has no text: parsers differ about it.
func isText(sent, text []byte) bool {
	var read string
	return json.Unmarshal(sent, &read) == nil && read == string(text)
}

// appendID ends an answer with the id of its call.
func (c *call) appendID(dst []byte) []byte {
	dst = append(dst, `,"id":`...)
	switch {
	case c.id == nil:
		dst = append(dst, `null`...)
	case c.id.Type() == fastjson.TypeString:
		dst = encode.AppendString(dst, string(c.id.GetStringBytes()))
	default:
		dst = c.id.MarshalTo(dst) // a number as it was sent
	}
	return append(dst, '}')
}
