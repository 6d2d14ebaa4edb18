package rpc

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

const (
	// forwardTime is how long all upstreams together have for a call.
	forwardTime = 5 * time.Second
	// maxInFlight bounds the calls that upstreams are asked at a time: an answer may be long, and is held whole. Others wait, within their time.
	maxInFlight = 16
	// maxInFlightEach is how many of them may be of one exchange, so that others find a turn.
	maxInFlightEach = 4
	// genesisTime is how long the genesis hash of an upstream is answered: it does not change, but the first to tell it may have told another one.
	genesisTime = time.Hour
	// freeAnswerBytes is the longest answer that takes nothing from the budget, like those that this node makes itself.
	freeAnswerBytes = 16 << 10
)

// outside is what the calls of an exchange that are forwarded share. Its lock is held by whoever takes memory of the exchange.
type outside struct {
	sync.Mutex
	door   *Door
	memory interface{ Reserve(bytes int) error }
	kept   int           // bytes of it that answers of upstreams have taken
	turns  chan struct{} // holds one for each call that an upstream is asked
	calls  []*forwarded
	ends   sync.WaitGroup
}

func newOutside(d *Door, memory interface{ Reserve(bytes int) error }) *outside {
	return &outside{door: d, memory: memory, turns: make(chan struct{}, maxInFlightEach)}
}

// start begins to ask for a call.
func (o *outside) start(f *forwarded) {
	o.calls = append(o.calls, f)
	o.ends.Go(f.ask)
}

// merge waits for the answers of upstreams and puts them in their places among the local ones. The answer of a single call is not copied.
func (o *outside) merge(local []byte) (whole []byte, passed bool) {
	o.ends.Wait()
	if len(local) == 0 {
		return o.calls[0].answer, o.calls[0].passed
	}
	size := len(local)
	for _, f := range o.calls {
		size += len(f.answer)
	}
	whole = make([]byte, 0, size)
	at := 0
	for _, f := range o.calls {
		whole = append(whole, local[at:f.at]...)
		whole = append(whole, f.answer...)
		at, passed = f.at, passed || f.passed
	}
	return append(whole, local[at:]...), passed
}

// forwarded is a call that upstreams are asked.
type forwarded struct {
	*outside
	name    string // of the method
	request []byte
	id      string      // of the request, as JSON
	end     []byte      // how the answer ends: with the id of the client
	least   ledger.Slot // its minContextSlot
	failure *callError  // what the call is answered with if no upstream can be asked
	isBatch bool
	at      int // where in the answers of its batch its own belongs
	answer  []byte
	passed  bool // the answer is that of an upstream
}

// forward returns what to ask an upstream instead of answering the call. The request is made anew from what was read, so that what an upstream
// does not understand is never the shape of the call.
func (c *call) forward(failure *callError) *forwarded {
	c.method.asked.Add(1)
	if c.outside == nil {
		c.outside = newOutside(c.door, c.x)
	}
	f := &forwarded{outside: c.outside, name: c.name, end: c.appendID(nil), failure: failure, least: c.query.MinSlot, isBatch: c.isBatch}
	f.id = strconv.FormatUint(c.door.asked.Add(1), 10)
	f.request = append(append(f.request, `{"jsonrpc":"2.0","id":`...), f.id...)
	f.request = encode.AppendString(append(f.request, `,"method":`...), c.name)
	if c.all != nil {
		f.request = appendValue(append(f.request, `,"params":`...), c.all)
	}
	f.request = append(f.request, '}')
	for _, p := range c.params { // a method that is not ours has its configuration anywhere
		if least := given(p.Get("minContextSlot")); least != nil && least.Type() == fastjson.TypeNumber {
			f.least = max(f.least, ledger.Slot(least.GetUint64()))
		}
	}
	return f
}

// appendValue appends a value as JSON. The parser's own way writes strings as Go does, which is not always JSON.
func appendValue(dst []byte, v *fastjson.Value) []byte {
	var list encode.List
	switch v.Type() {
	case fastjson.TypeString:
		return encode.AppendString(dst, string(v.GetStringBytes()))
	case fastjson.TypeArray:
		dst = append(dst, '[')
		for _, one := range v.GetArray() {
			dst = appendValue(list.Next(dst), one)
		}
		return append(dst, ']')
	case fastjson.TypeObject:
		dst = append(dst, '{')
		v.GetObject().Visit(func(name []byte, one *fastjson.Value) {
			dst = appendValue(append(encode.AppendString(list.Next(dst), string(name)), ':'), one)
		})
		return append(dst, '}')
	}
	return v.MarshalTo(dst) // a number as it was sent
}

// ask asks one upstream after the other until one answers, within the time of the call.
func (f *forwarded) ask() {
	deadline := time.Now().Add(forwardTime)
	patience := time.NewTimer(forwardTime)
	defer patience.Stop()
	for _, turns := range []chan struct{}{f.turns, f.door.inFlight} { // that of the exchange first: who waits for it takes none of the door's
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-patience.C:
			f.fail(&callError{code: codeInternal, message: "Internal error: too many calls wait for other nodes"})
			return
		}
	}
	failure := f.failure
	for i, u := range f.door.upstreams {
		now := time.Now()
		left := deadline.Sub(now)
		if left <= 0 {
			break
		}
		if u.isAlone(now) {
			continue
		}
		answer, err := u.ask(f, now.Add(left/time.Duration(len(f.door.upstreams)-i)))
		if err == nil && time.Now().Before(deadline) {
			f.keep(answer)
			return
		}
		if reason, ok := errors.AsType[*callError](err); ok {
			failure = reason
		} else if failure == f.failure {
			failure = &callError{code: codeInternal, message: "Internal error: no other node answered; of this one: " + f.failure.message}
		}
	}
	f.door.lost.Add(1)
	f.fail(failure)
}

// fail makes the answer an error.
func (f *forwarded) fail(e *callError) { f.answer = append(appendError(nil, e), f.end...) }

// keep makes the answer that of an upstream, if there is memory for it: in a batch for it and its place among the others.
func (f *forwarded) keep(answer []byte) {
	bytes := cap(answer)
	if f.isBatch {
		bytes += len(answer)
	}
	if bytes > freeAnswerBytes {
		f.Lock()
		err := f.memory.Reserve(bytes)
		if err == nil {
			f.kept += bytes
		}
		f.Unlock()
		if err != nil {
			f.fail(errorOf(err, ledger.View{}))
			return
		}
	}
	f.answer, f.passed = answer, true
}

// errNoAnswer says that what an upstream sent is no answer to the call.
var errNoAnswer = errors.New("the upstream node sent something else than an answer to the call")

// part is a value in a text of JSON, as it stands there: a tree of an answer takes a hundred times its bytes, and a copy as many again.
type part []byte

// UnmarshalJSON is given a piece of the text that is unmarshalled, which encoding/json does not use again.
func (p *part) UnmarshalJSON(text []byte) error {
	*p = text
	return nil
}

// number returns the whole number that a value is.
func (p part) number() (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(p), 10, 64)
	return n, err == nil
}

// check makes the answer to the client of that of an upstream, in the same bytes, if it may be passed on: it is that to the request, and not older
// than minContextSlot. An error may have no id: a node that finds a call malformed does not tell one.
func (f *forwarded) check(body []byte) ([]byte, error) {
	var answer struct{ ID, Result, Error part }
	if json.Unmarshal(body, &answer) != nil {
		return nil, errNoAnswer
	}
	named := string(answer.ID) == f.id
	switch {
	case answer.Result != nil && answer.Error == nil && named:
		var result struct{ Context struct{ Slot part } }
		_ = json.Unmarshal(answer.Result, &result) // most results have no context
		if slot, known := result.Context.Slot.number(); known && slot < uint64(f.least) {
			return nil, minContextSlot(ledger.Slot(slot))
		}
		var hash ledger.Hash
		if f.name == "getGenesisHash" && json.Unmarshal(answer.Result, &hash) == nil && hash != (ledger.Hash{}) {
			f.door.genesis.Store(&genesisHash{hash, time.Now().Add(genesisTime)})
		}
		return f.rebuild(body, `{"jsonrpc":"2.0","result":`, answer.Result), nil
	case answer.Error != nil && answer.Result == nil && (named || answer.ID == nil || string(answer.ID) == "null"):
		var failure struct {
			Code part
			Data struct{ ContextSlot part }
		}
		_ = json.Unmarshal(answer.Error, &failure) // some errors have other data
		code, err := strconv.Atoi(string(failure.Code))
		switch {
		case err != nil || code == codeUnhealthy:
			return nil, errNoAnswer
		case code == codeMinContextSlot:
			slot, _ := failure.Data.ContextSlot.number()
			return nil, minContextSlot(ledger.Slot(slot))
		}
		return f.rebuild(body, `{"jsonrpc":"2.0","error":`, answer.Error), nil
	}
	return nil, errNoAnswer
}

// rebuild returns the answer to the client whose value is a part of body, in whose bytes it is made.
func (f *forwarded) rebuild(body []byte, begin string, value []byte) []byte {
	answer := slices.Grow(append(body[:0], value...), len(begin)+len(f.end))
	return slices.Insert(append(answer, f.end...), 0, []byte(begin)...)
}
