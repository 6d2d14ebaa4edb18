package rpc

import (
	"bytes"
	"errors"
	"time"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
)

const (
	// forwardTime is how long all upstreams together have for a call.
	forwardTime = 5 * time.Second
	// maxInFlight bounds the calls that upstreams are asked at a time: an answer may be long, and is held whole. Others wait, within their time.
	maxInFlight = 16
)

// forwarded is a call that upstreams are asked.
type forwarded struct {
	door    *Door
	request []byte
	id      []byte      // how its answer ends
	least   ledger.Slot // its minContextSlot
	failure *callError  // what the call is answered with if no upstream can be asked
	at      int         // where in the answers of its batch its own belongs
	answer  []byte
}

// forward returns what to ask an upstream instead of answering the call.
func (c *call) forward(failure *callError) *forwarded {
	c.method.asked.Add(1)
	f := &forwarded{door: c.door, request: c.raw(), id: c.appendID(nil), failure: failure, least: c.query.MinSlot}
	for _, p := range c.params { // a method that is not ours has its configuration anywhere
		if least := given(p.Get("minContextSlot")); least != nil && least.Type() == fastjson.TypeNumber {
			f.least = max(f.least, ledger.Slot(least.GetUint64()))
		}
	}
	return f
}

// ask asks one upstream after the other until one answers, within the time of the call.
func (f *forwarded) ask() {
	deadline := time.Now().Add(forwardTime)
	patience := time.NewTimer(forwardTime)
	defer patience.Stop()
	select {
	case f.door.inFlight <- struct{}{}:
		defer func() { <-f.door.inFlight }()
	case <-patience.C:
		f.fail(&callError{code: codeInternal, message: "Internal error: too many calls wait for other nodes"})
		return
	}
	var behind *callError
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
		if err == nil {
			f.answer = answer
			return
		}
		if late, ok := errors.AsType[*callError](err); ok {
			behind = late
		}
	}
	if behind != nil {
		f.fail(behind)
		return
	}
	f.door.lost.Add(1)
	f.fail(&callError{code: codeInternal, message: "Internal error: no other node answered; of this one: " + f.failure.message})
}

// fail makes the answer an error.
func (f *forwarded) fail(e *callError) { f.answer = append(appendError(nil, e), f.id...) }

// errNoAnswer says that what an upstream sent is no answer to the call.
var errNoAnswer = errors.New("the upstream node sent something else than an answer to the call")

// check returns the answer of an upstream without spaces around it, if it may be passed on: it has the id of the call, and is not older than
// minContextSlot.
func (f *forwarded) check(body []byte) ([]byte, error) {
	var parser fastjson.Parser
	v, err := parser.ParseBytes(body)
	if err != nil || fastjson.ValidateBytes(body) != nil || v.Type() != fastjson.TypeObject {
		return nil, errNoAnswer
	}
	id := v.Get("id")
	if id == nil || !bytes.Equal((&call{id: id}).appendID(nil), f.id) || v.Exists("result") == v.Exists("error") {
		return nil, errNoAnswer
	}
	switch v.GetInt("error", "code") {
	case codeUnhealthy:
		return nil, errNoAnswer
	case codeMinContextSlot:
		return nil, minContextSlot(ledger.Slot(v.GetUint64("error", "data", "contextSlot")))
	}
	if slot := v.Get("result", "context", "slot"); f.least > 0 && slot != nil && ledger.Slot(slot.GetUint64()) < f.least {
		return nil, minContextSlot(ledger.Slot(slot.GetUint64()))
	}
	return bytes.TrimSpace(body), nil
}
