package httpd

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
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
	facts   bool                    // of token accounts and mints
	data    bool                    // of accounts
	slice   encode.Slice            // of their data
	details bool                    // of the health
	sliced  bool                    // the data is, perhaps though none is asked for
	keys    []ledger.Pubkey
}

// reset makes ready for another request.
func (p *params) reset() { *p = params{keys: p.keys[:0]} }

// parse reads the query of a request to a route, which it points into. Escapes must be well formed everywhere, and parameters few; a
// known parameter that is repeated, empty or malformed is an error. So is an unknown one where the
// ledger is read, because one that is misspelt must not be answered as if it were not there; those
// that begin with an underscore are for others, and ignored.
func (p *params) parse(to *route, u *fasthttp.URI) error {
	p.limit, p.slice = to.limit.usual, encode.WholeData
	if err := checkQuery(u.QueryString()); err != nil {
		return err
	}
	seen := uint64(0) // a bit for each parameter of the route
	for name, value := range u.QueryArgs().All() {
		i := slices.IndexFunc(to.params, func(q *parameter) bool { return q.name == string(name) })
		switch {
		case i < 0 && (!slices.Contains(to.params, paramMinSlot) || bytes.HasPrefix(name, []byte{'_'})):
			continue
		case i < 0:
			return errUnknown(to.params)
		case seen&(1<<i) != 0 && to.params[i] != paramMemcmp: // the only one that may be repeated
			return errRepeated
		case len(value) == 0:
			return errEmpty
		}
		seen |= 1 << i
		if known := to.params[i]; !known.set(p, value, to) {
			return badRequest(known.name + " must be " + cmp.Or(known.must, fmt.Sprintf("a plain decimal number from 1 to %d", to.limit.most)))
		}
	}
	if len(p.keys) > maxKeys { // which a query has room for anyway
		return errKeyCount
	}
	return unless(p.data || !p.sliced, errSliceAlone)
}

// errUnknown names the parameters that there are.
func errUnknown(known []*parameter) error {
	var names []string
	for _, p := range known {
		names = append(names, p.name)
	}
	return badRequest("there is no such query parameter here, but these: " + strings.Join(names, ", "))
}

// parameter is a query parameter.
type parameter struct {
	name string
	must string // says what it must be; empty: the limits of the route do
	set  func(p *params, value []byte, to *route) bool
}

const (
	plainDecimal  = "a plain decimal number below 2^64"
	textSignature = "a signature: the base58 of exactly 64 bytes"
)

// These are all parameters there are. Some share a name; no route knows two of these.
var (
	paramCommitment = &parameter{"commitment", "processed, confirmed or finalized", func(p *params, value []byte, _ *route) (ok bool) {
		p.query.Commitment, ok = ledger.ParseCommitment(value)
		return ok
	}}
	paramMinSlot = &parameter{"min_slot", plainDecimal, func(p *params, value []byte, _ *route) bool { return setNumber(&p.query.MinSlot, value) }}
	paramWait    = &parameter{"wait_ms", "a plain decimal number from 0 to 2000", func(p *params, value []byte, _ *route) bool {
		n, ok := parseDecimal(value)
		p.query.Wait = time.Duration(min(n, maxWait)) * time.Millisecond
		return ok && n <= maxWait
	}}
	paramLimit = &parameter{"limit", "", func(p *params, value []byte, to *route) bool {
		n, ok := parseDecimal(value)
		p.limit = int(min(n, uint64(to.limit.most)))
		return ok && n >= 1 && n <= uint64(to.limit.most)
	}}
	paramBefore = &parameter{"before", textSignature, func(p *params, value []byte, _ *route) bool { return setSignature(&p.in.Before, value) }}
	paramAfter  = &parameter{"after", textSignature, func(p *params, value []byte, _ *route) bool { return setSignature(&p.in.After, value) }}
	paramCursor = &parameter{"cursor", "", func(p *params, value []byte, _ *route) bool {
		p.cursor = value
		return true
	}}
	paramParts = &parameter{"include", "signatures or transactions", func(p *params, value []byte, _ *route) (ok bool) {
		p.query.Parts, ok = blockParts[string(value)]
		return ok
	}}
	paramAccountParts = &parameter{"include", "token, data or both with a comma between them", func(p *params, value []byte, _ *route) bool {
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
	}}
	paramDetails = &parameter{"include", "", func(p *params, value []byte, _ *route) bool {
		p.details = string(value) == "details"
		return true
	}}
	paramDataSlice = &parameter{"data_slice", "OFFSET,LENGTH: two plain decimal numbers below 2^64", func(p *params, value []byte, _ *route) bool {
		p.sliced = true
		offset, length, _ := bytes.Cut(value, []byte{','})
		return setNumber(&p.slice.Offset, offset) && setNumber(&p.slice.Length, length)
	}}
	paramDataSize = &parameter{"data_size", plainDecimal, func(p *params, value []byte, _ *route) bool { return setOptional(&p.where().Size, value) }}
	paramMemcmp   = &parameter{"memcmp", "OFFSET:BASE58, a plain decimal number and 1 to 128 bytes, and be given at most 4 times", func(p *params, value []byte, _ *route) bool {
		offset, text, _ := bytes.Cut(value, []byte{':'})
		n, isNumber := parseDecimal(offset)
		part, isPart := ledger.ParseDataPart(n, text)
		f := p.where()
		f.Parts = append(f.Parts, part)
		return isNumber && isPart && len(f.Parts) <= ledger.MaxDataParts
	}}
	paramOrder = &parameter{"order", "newest or oldest", func(p *params, value []byte, _ *route) bool {
		p.in.OldestFirst = string(value) == "oldest"
		return p.in.OldestFirst || string(value) == "newest"
	}}
	paramStatus = &parameter{"status", "success or failed", func(p *params, value []byte, _ *route) bool {
		p.in.Success = ledger.Some(string(value) == "success")
		return p.in.Success.Value || string(value) == "failed"
	}}
	paramFromSlot = &parameter{"from_slot", plainDecimal, func(p *params, value []byte, _ *route) bool { return setOptional(&p.in.FromSlot, value) }}
	paramToSlot   = &parameter{"to_slot", plainDecimal, func(p *params, value []byte, _ *route) bool { return setOptional(&p.in.ToSlot, value) }}
	paramKeys     = &parameter{"keys", "a comma-separated list of pubkeys: each the base58 of exactly 32 bytes", func(p *params, value []byte, _ *route) bool {
		for key := range bytes.SplitSeq(value, []byte{','}) {
			k, err := ledger.ParsePubkey(key)
			if err != nil {
				return false
			}
			p.keys = append(p.keys, k)
		}
		return true
	}}
)

// reads returns the parameters of each read of ledger data, and more.
func reads(more ...*parameter) []*parameter {
	return append([]*parameter{paramCommitment, paramMinSlot, paramWait}, more...)
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
