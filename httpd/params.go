package httpd

import (
	"bytes"
	"cmp"
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
		if !parameters[i].set(p, value, to) {
			return cmp.Or(parameters[i].err, to.limit.err)
		}
	}
	if len(p.keys) > maxKeys { // which a query has room for anyway
		return errKeyCount
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

// parameter is a query parameter.
type parameter struct {
	name string
	is   param
	err  error // says what it must be; nil: the route does
	set  func(p *params, value []byte, to *route) bool
}

// parameters are all there are. Some share a name; no route knows two of these.
var parameters = []parameter{
	{"commitment", paramCommitment, errCommitment, func(p *params, value []byte, _ *route) (ok bool) {
		p.query.Commitment, ok = ledger.ParseCommitment(value)
		return ok
	}},
	{"min_slot", paramMinSlot, errMinSlot, func(p *params, value []byte, _ *route) bool { return setNumber(&p.query.MinSlot, value) }},
	{"wait_ms", paramWait, errWait, func(p *params, value []byte, _ *route) bool {
		n, ok := parseDecimal(value)
		p.query.Wait = time.Duration(min(n, maxWait)) * time.Millisecond
		return ok && n <= maxWait
	}},
	{"limit", paramLimit, nil, func(p *params, value []byte, to *route) bool {
		n, ok := parseDecimal(value)
		p.limit = int(min(n, uint64(to.limit.most)))
		return ok && n >= 1 && n <= uint64(to.limit.most)
	}},
	{"before", paramBefore, errBefore, func(p *params, value []byte, _ *route) bool { return setSignature(&p.in.Before, value) }},
	{"after", paramAfter, errAfter, func(p *params, value []byte, _ *route) bool { return setSignature(&p.in.After, value) }},
	{"cursor", paramCursor, nil, func(p *params, value []byte, _ *route) bool {
		p.cursor = value
		return true
	}},
	{"include", paramParts, errParts, func(p *params, value []byte, _ *route) (ok bool) {
		p.parts, ok = blockParts[string(value)]
		return ok
	}},
	{"include", paramAccountParts, errAccountParts, func(p *params, value []byte, _ *route) bool {
		for part := range bytes.SplitSeq(value, []byte{','}) {
			switch {
			case string(part) == "token" && !p.facts:
				p.facts = true
			case string(part) == "data" && !p.data:
				p.data = true
			default:
				return false
			}
		}
		return true
	}},
	{"data_slice", paramDataSlice, errDataSlice, func(p *params, value []byte, _ *route) bool {
		offset, length, _ := bytes.Cut(value, []byte{','})
		return setNumber(&p.slice.Offset, offset) && setNumber(&p.slice.Length, length)
	}},
	{"data_size", paramDataSize, errDataSize, func(p *params, value []byte, _ *route) bool { return setOptional(&p.where().Size, value) }},
	{"memcmp", paramMemcmp, errMemcmp, func(p *params, value []byte, _ *route) bool {
		offset, text, _ := bytes.Cut(value, []byte{':'})
		n, isNumber := parseDecimal(offset)
		part, isPart := ledger.ParseDataPart(n, text)
		f := p.where()
		f.Parts = append(f.Parts, part)
		return isNumber && isPart && len(f.Parts) <= ledger.MaxDataParts
	}},
	{"include", paramDetails, nil, func(p *params, value []byte, _ *route) bool {
		p.details = string(value) == "details"
		return true
	}},
	{"order", paramOrder, errOrder, func(p *params, value []byte, _ *route) bool {
		p.in.OldestFirst = string(value) == "oldest"
		return p.in.OldestFirst || string(value) == "newest"
	}},
	{"status", paramStatus, errStatus, func(p *params, value []byte, _ *route) bool {
		p.in.Success = ledger.Some(string(value) == "success")
		return p.in.Success.Value || string(value) == "failed"
	}},
	{"from_slot", paramFromSlot, errFromSlot, func(p *params, value []byte, _ *route) bool { return setOptional(&p.in.FromSlot, value) }},
	{"to_slot", paramToSlot, errToSlot, func(p *params, value []byte, _ *route) bool { return setOptional(&p.in.ToSlot, value) }},
	{"keys", paramKeys, errKeys, func(p *params, value []byte, _ *route) bool {
		for key := range bytes.SplitSeq(value, []byte{','}) {
			k, err := ledger.ParsePubkey(key)
			if err != nil {
				return false
			}
			p.keys = append(p.keys, k)
		}
		return true
	}},
}

// blockParts are what include may say of a block.
var blockParts = map[string]ledger.BlockParts{"signatures": ledger.SignaturesOnly, "transactions": ledger.WholeBlock}

func setNumber[T ~uint64](to *T, value []byte) bool {
	n, ok := parseDecimal(value)
	*to = T(n)
	return ok
}

func setOptional[T ~uint64](to *ledger.Opt[T], value []byte) bool {
	to.Known = true
	return setNumber(&to.Value, value)
}

func setSignature(to *ledger.Opt[ledger.Signature], value []byte) bool {
	sig, err := ledger.ParseSignature(value)
	*to = ledger.Some(sig)
	return err == nil
}

// where returns the filter of the query, which a shard may read after the request has ended.
func (p *params) where() *ledger.DataFilter {
	if p.query.Where == nil {
		p.query.Where = new(ledger.DataFilter)
	}
	return p.query.Where
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
