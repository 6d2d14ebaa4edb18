package httpd

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// param is a query parameter the interface knows.
type param uint32

const (
	paramCommitment param = 1 << iota
	paramMinSlot
	paramWait
	paramLimit
	paramBefore
	paramAfter
	paramCursor
	paramParts        // include, of a block
	paramAccountParts // include, of accounts
	paramKeys
	paramOrder
	paramStatus
	paramFromSlot
	paramToSlot
	paramDetails // include, of the health
	paramDataSlice
	paramDataSize
	paramMemcmp // the only one that may be repeated

	// paramsRead apply to every read of ledger data.
	paramsRead = paramCommitment | paramMinSlot | paramWait
	// paramsData select accounts by their data.
	paramsData = paramDataSize | paramMemcmp
)

const (
	maxWait = 2000 // milliseconds
	maxKeys = 100
)

// params are the query parameters of one request, as values.
type params struct {
	query   ledger.Query
	limit   int
	in      ledger.TransactionRange // without its limit
	cursor  []byte                  // not yet matched with its list; nil: none
	parts   ledger.BlockParts       // that a block shows beside its record
	facts   bool                    // of token accounts and mints
	data    bool                    // of accounts
	slice   encode.Slice            // of their data
	details bool                    // of the health
	keys    []ledger.Pubkey

	room []byte // the decoded names and values, which the cursor points at
}

// reset makes ready for another request.
func (p *params) reset() { *p = params{keys: p.keys[:0], room: p.room[:0]} }

// parse reads the query string of a request to a route. Escapes must be well formed everywhere; a
// known parameter that is repeated, empty or malformed is an error. So is an unknown one where the
// ledger is read, because one that is misspelt must not be answered as if it were not there; those
// that begin with an underscore are for others, and ignored.
func (p *params) parse(to *route, query []byte) error {
	p.limit, p.parts, p.slice = to.limit.usual, ledger.NoTransactions, encode.WholeData
	if !escapesAreValid(query) {
		return errEscape
	}
	seen := param(0)
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		name, value, _ := bytes.Cut(pair, []byte{'='})
		name, value = p.decode(name), p.decode(value)
		i := slices.IndexFunc(parameters, func(q parameter) bool { return q.name == string(name) && q.is&to.params != 0 })
		switch {
		case i < 0 && (to.params&paramsRead == 0 || bytes.HasPrefix(name, []byte{'_'})):
			continue
		case i < 0:
			return errUnknown(to.params)
		case seen&parameters[i].is&^paramMemcmp != 0:
			return errRepeated
		case len(value) == 0:
			return errEmpty
		}
		seen |= parameters[i].is
		if err := parameters[i].set(p, value, to); err != nil {
			return err
		}
	}
	return unless(p.data || seen&paramDataSlice == 0, errSliceAlone)
}

// errUnknown names the parameters that there are.
func errUnknown(known param) error {
	var names []string
	for _, p := range parameters {
		if p.is&known != 0 {
			names = append(names, p.name)
		}
	}
	return paramError("there is no such query parameter here, but these: " + strings.Join(names, ", "))
}

// decode returns s with its escapes decoded and each plus sign a space.
func (p *params) decode(s []byte) []byte {
	at := len(p.room)
	p.room = fasthttp.AppendUnquotedArg(p.room, s)
	return p.room[at:]
}

// parameter is a query parameter: set parses its value.
type parameter struct {
	name string
	is   param
	set  func(p *params, value []byte, to *route) error
}

// parameters are all there are. Some share a name; no route knows two of these.
var parameters = []parameter{
	{"commitment", paramCommitment, func(p *params, value []byte, _ *route) error {
		var ok bool
		p.query.Commitment, ok = ledger.ParseCommitment(value)
		return unless(ok, errCommitment)
	}},
	{"min_slot", paramMinSlot, func(p *params, value []byte, _ *route) error {
		n, ok := parseDecimal(value)
		p.query.MinSlot = ledger.Slot(n)
		return unless(ok, errMinSlot)
	}},
	{"wait_ms", paramWait, func(p *params, value []byte, _ *route) error {
		n, ok := parseDecimal(value)
		p.query.Wait = time.Duration(min(n, maxWait)) * time.Millisecond
		return unless(ok && n <= maxWait, errWait)
	}},
	{"limit", paramLimit, func(p *params, value []byte, to *route) error {
		n, ok := parseDecimal(value)
		p.limit = int(min(n, uint64(to.limit.most)))
		return unless(ok && n >= 1 && n <= uint64(to.limit.most), to.limit.err)
	}},
	{"before", paramBefore, func(p *params, value []byte, _ *route) error {
		sig, err := ledger.ParseSignature(value)
		p.in.Before = ledger.Some(sig)
		return unless(err == nil, errBefore)
	}},
	{"after", paramAfter, func(p *params, value []byte, _ *route) error {
		sig, err := ledger.ParseSignature(value)
		p.in.After = ledger.Some(sig)
		return unless(err == nil, errAfter)
	}},
	{"cursor", paramCursor, func(p *params, value []byte, _ *route) error {
		p.cursor = value
		return nil
	}},
	{"include", paramParts, func(p *params, value []byte, _ *route) error {
		switch string(value) {
		case "signatures":
			p.parts = ledger.SignaturesOnly
		case "transactions":
			p.parts = ledger.WholeBlock
		default:
			return errParts
		}
		return nil
	}},
	{"include", paramAccountParts, func(p *params, value []byte, _ *route) error {
		for part := range bytes.SplitSeq(value, []byte{','}) {
			switch {
			case string(part) == "token" && !p.facts:
				p.facts = true
			case string(part) == "data" && !p.data:
				p.data = true
			default:
				return errAccountParts
			}
		}
		return nil
	}},
	{"data_slice", paramDataSlice, func(p *params, value []byte, _ *route) error {
		offset, length, _ := bytes.Cut(value, []byte{','})
		var ok, lengthOK bool
		p.slice.Offset, ok = parseDecimal(offset)
		p.slice.Length, lengthOK = parseDecimal(length)
		return unless(ok && lengthOK, errDataSlice)
	}},
	{"data_size", paramDataSize, func(p *params, value []byte, _ *route) error {
		n, ok := parseDecimal(value)
		p.where().Size = ledger.Some(n)
		return unless(ok, errDataSize)
	}},
	{"memcmp", paramMemcmp, func(p *params, value []byte, _ *route) error {
		offset, text, _ := bytes.Cut(value, []byte{':'})
		n, isNumber := parseDecimal(offset)
		part, isPart := ledger.ParseDataPart(n, text)
		f := p.where()
		f.Parts = append(f.Parts, part)
		return unless(isNumber && isPart && len(f.Parts) <= ledger.MaxDataParts, errMemcmp)
	}},
	{"include", paramDetails, func(p *params, value []byte, _ *route) error {
		p.details = string(value) == "details"
		return nil
	}},
	{"order", paramOrder, func(p *params, value []byte, _ *route) error {
		p.in.OldestFirst = string(value) == "oldest"
		return unless(p.in.OldestFirst || string(value) == "newest", errOrder)
	}},
	{"status", paramStatus, func(p *params, value []byte, _ *route) error {
		p.in.Success = ledger.Some(string(value) == "success")
		return unless(p.in.Success.Value || string(value) == "failed", errStatus)
	}},
	{"from_slot", paramFromSlot, func(p *params, value []byte, _ *route) error {
		n, ok := parseDecimal(value)
		p.in.FromSlot = ledger.Some(ledger.Slot(n))
		return unless(ok, errFromSlot)
	}},
	{"to_slot", paramToSlot, func(p *params, value []byte, _ *route) error {
		n, ok := parseDecimal(value)
		p.in.ToSlot = ledger.Some(ledger.Slot(n))
		return unless(ok, errToSlot)
	}},
	{"keys", paramKeys, func(p *params, value []byte, _ *route) error { return p.setKeys(value) }},
}

// where returns the filter of the query, which a shard may read after the request has ended.
func (p *params) where() *ledger.DataFilter {
	if p.query.Where == nil {
		p.query.Where = new(ledger.DataFilter)
	}
	return p.query.Where
}

func (p *params) setKeys(value []byte) error {
	for more := true; more; {
		var key []byte
		key, value, more = bytes.Cut(value, []byte{','})
		if len(p.keys) == maxKeys {
			return errKeyCount
		}
		k, err := ledger.ParsePubkey(key)
		if err != nil {
			return errKeys
		}
		p.keys = append(p.keys, k)
	}
	return nil
}

func unless(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}

// parseDecimal reads a plain decimal: digits only, no sign, no leading zeros, at most
// 2^64-1.
func parseDecimal[T string | []byte](s T) (uint64, bool) {
	n, err := strconv.ParseUint(string(s), 10, 64)
	return n, err == nil && (s[0] != '0' || len(s) == 1)
}
