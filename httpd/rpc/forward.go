package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/valyala/fastjson"
	"golang.org/x/sync/errgroup"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

const (
	// forwardTime is how long all upstreams together have for the calls of an exchange.
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

// forwarded is a call that upstreams are asked.
type forwarded struct {
	name    string // of the method
	request []byte
	id      string      // of the request, as JSON
	end     []byte      // how the answer ends: with the id of the client
	least   ledger.Slot // its minContextSlot
	failure *callError  // what the call is answered with if no upstream can be asked
	at      int         // where in the answers of its batch its own belongs
	answer  []byte
}

// forward has upstreams asked instead of answering the call, whose answer belongs at a place. The request is made anew of what was read, so that what
// an upstream does not understand is never the shape of the call.
func (c *call) forward(failure *callError, at int) {
	c.method.asked.Add(1)
	f := &forwarded{name: c.name, end: c.appendID(nil), failure: failure, least: c.query.MinSlot, at: at}
	f.id = strconv.FormatUint(c.door.asked.Add(1), 10)
	f.request = append(append(f.request, `{"jsonrpc":"2.0","id":`...), f.id...)
	f.request = encode.AppendString(append(f.request, `,"method":`...), c.name)
	if len(c.sentParams) > 0 {
		f.request = append(append(f.request, `,"params":`...), c.sentParams...)
	}
	f.request = append(f.request, '}')
	for _, p := range c.params { // a method that is not ours has its configuration anywhere
		if least := given(p.Get("minContextSlot")); least != nil && least.Type() == fastjson.TypeNumber {
			f.least = max(f.least, ledger.Slot(least.GetUint64()))
		}
	}
	c.forwarded = append(c.forwarded, f)
}

// askOthers has upstreams answer the calls of the exchange that are forwarded, some at a time, and puts their answers in their places among the local
// ones. The answer of a call that is alone is not copied.
func (s *session) askOthers(local []byte) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), forwardTime)
	defer cancel()
	var asking errgroup.Group
	asking.SetLimit(maxInFlightEach)
	var memory sync.Mutex // that of the exchange is taken by one at a time
	passed := false
	for _, f := range s.forwarded {
		asking.Go(func() error {
			answer, err := s.door.askOthers(ctx, f)
			memory.Lock()
			defer memory.Unlock()
			if err == nil {
				err = s.keep(answer)
			}
			if f.answer = answer; err != nil {
				f.answer = append(appendError(nil, errorOf(err, ledger.View{})), f.end...)
			}
			passed = passed || err == nil
			return nil
		})
	}
	_ = asking.Wait() // each has an answer
	if passed {
		s.x.Context().Response.Header.Set("X-Ledger-Forwarded", "1")
	}
	if !s.isBatch {
		return s.forwarded[0].answer
	}
	var parts [][]byte
	at := 0
	for _, f := range s.forwarded {
		parts = append(parts, local[at:f.at], f.answer)
		at = f.at
	}
	return slices.Concat(append(parts, local[at:])...)
}

// keep makes sure of memory for an answer of an upstream: in a batch for it and its place among the others.
func (s *session) keep(answer []byte) error {
	bytes := cap(answer)
	if s.isBatch {
		bytes += len(answer)
	}
	if bytes <= freeAnswerBytes {
		return nil
	}
	return s.x.Reserve(bytes)
}

// askOthers asks one upstream after the other until one answers, as long as there is time.
func (d *Door) askOthers(ctx context.Context, f *forwarded) ([]byte, error) {
	if d.inFlight.Acquire(ctx, 1) != nil {
		return nil, &callError{code: codeInternal, message: "Internal error: too many calls wait for other nodes"}
	}
	defer d.inFlight.Release(1)
	deadline, _ := ctx.Deadline()
	failure := f.failure
	for i, u := range d.upstreams {
		now := time.Now()
		left := deadline.Sub(now)
		if left <= 0 {
			break
		}
		end := now.Add(left / time.Duration(len(d.upstreams)-i))
		if !u.mayAsk(now, end) {
			continue
		}
		answer, err := u.ask(d, f, end)
		if err == nil && time.Now().Before(deadline) {
			return answer, nil
		}
		if reason, ok := errors.AsType[*callError](err); ok {
			failure = reason
		} else if failure == f.failure {
			failure = &callError{code: codeInternal, message: "Internal error: no other node answered; of this one: " + f.failure.message}
		}
	}
	d.lost.Add(1)
	return nil, failure
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
func (d *Door) check(f *forwarded, body []byte) ([]byte, error) {
	var answer struct{ ID, Result, Error part }
	if !utf8.Valid(body) || json.Unmarshal(body, &answer) != nil { // it would spoil the answers beside it, too
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
			d.genesis.Store(&genesisHash{hash, time.Now().Add(genesisTime)})
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
