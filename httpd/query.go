package httpd

import (
	"bytes"
	"math"
	"time"

	"ledgerd/engine/ledger"
)

// param is a query parameter the interface knows.
type param uint16

const (
	paramCommitment param = 1 << iota
	paramMinSlot
	paramWait
	paramLimit
	paramBefore
	paramAfter
	paramCursor
	paramInclude
	paramKeys

	// paramsRead apply to every read of ledger data.
	paramsRead = paramCommitment | paramMinSlot | paramWait
)

// routeParams are the parameters each route knows; all others are ignored.
var routeParams = [routes]param{
	routeLatestBlock: paramsRead,
	routeBlock:       paramsRead | paramInclude,
	routeTransaction: paramsRead,
	routeRecent:      paramsRead | paramLimit | paramBefore | paramAfter,
	routeAccount:     paramsRead,
	routeBalance:     paramsRead,
	routeTokens:      paramsRead | paramLimit | paramCursor,
	routeProgram:     paramsRead | paramLimit | paramCursor,
	routeAccounts:    paramsRead | paramKeys,
}

// The bounds of the parameters.
const (
	maxWait            = 2000 // milliseconds
	defaultRecentLimit = 100
	maxRecentLimit     = 1000
	defaultListLimit   = 1000
	maxListLimit       = 10000
	maxKeys            = 100
)

// include says what a block shows beside its record.
type include uint8

const (
	includeNothing include = iota
	includeSignatures
	includeTransactions
)

// parts returns how much of a block that takes.
func (i include) parts() ledger.BlockParts {
	switch i {
	case includeSignatures:
		return ledger.SignaturesOnly
	case includeTransactions:
		return ledger.WholeBlock
	default:
		return ledger.NoTransactions
	}
}

// params are the query parameters of one request, as values.
type params struct {
	query         ledger.Query
	limit         int // 0: not given
	before, after ledger.Opt[ledger.Signature]
	cursor        []byte // not yet matched with its list
	include       include
	keys          []ledger.Pubkey
}

// parseQuery reads the query string of a request to a route into p, whose keys are
// reused. Escapes must be well formed everywhere; a known parameter that is repeated,
// empty or malformed is an error; unknown ones are ignored. scratch is room to decode in,
// which the cursor may keep pointing at: it is returned, and valid as long as p is.
func (p *params) parseQuery(to route, query, scratch []byte) ([]byte, error) {
	known, seen := routeParams[to], param(0)
	scratch = scratch[:0]
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		name, value, _ := bytes.Cut(pair, []byte{'='})
		var ok bool
		if name, scratch, ok = decodeQuery(scratch, name); !ok {
			return scratch, errEscape
		}
		if value, scratch, ok = decodeQuery(scratch, value); !ok {
			return scratch, errEscape
		}
		which := paramNamed(name) & known
		switch {
		case which == 0:
			continue
		case seen&which != 0:
			return scratch, errRepeated
		case len(value) == 0:
			return scratch, errEmpty
		}
		seen |= which
		if err := p.set(which, value, to); err != nil {
			return scratch, err
		}
	}
	return scratch, nil
}

// decodeQuery returns s with its escapes decoded and each plus sign a space. What it has
// to decode it appends to scratch.
func decodeQuery(scratch, s []byte) (decoded, longer []byte, ok bool) {
	if bytes.IndexByte(s, '%') < 0 && bytes.IndexByte(s, '+') < 0 {
		return s, scratch, true
	}
	start := len(scratch)
	for plus := 0; plus >= 0; {
		part := s
		if plus = bytes.IndexByte(s, '+'); plus >= 0 {
			part, s = s[:plus], s[plus+1:]
		}
		if scratch, ok = decodeEscapes(scratch, part); !ok {
			return nil, scratch, false
		}
		if plus >= 0 {
			scratch = append(scratch, ' ')
		}
	}
	return scratch[start:], scratch, true
}

func paramNamed(name []byte) param {
	switch string(name) {
	case "commitment":
		return paramCommitment
	case "min_slot":
		return paramMinSlot
	case "wait_ms":
		return paramWait
	case "limit":
		return paramLimit
	case "before":
		return paramBefore
	case "after":
		return paramAfter
	case "cursor":
		return paramCursor
	case "include":
		return paramInclude
	case "keys":
		return paramKeys
	}
	return 0
}

// set parses the value of one parameter.
func (p *params) set(which param, value []byte, to route) error {
	var n uint64
	var err error
	var ok bool
	switch which {
	case paramCommitment:
		p.query.Commitment, ok = ledger.ParseCommitment(value)
		return unless(ok, errCommitment)
	case paramMinSlot:
		n, ok = parseDecimal(value)
		p.query.MinSlot = ledger.Slot(n)
		return unless(ok, errMinSlot)
	case paramWait:
		n, ok = parseDecimal(value)
		p.query.Wait = time.Duration(min(n, maxWait)) * time.Millisecond
		return unless(ok && n <= maxWait, errWait)
	case paramLimit:
		n, ok = parseDecimal(value)
		p.limit = int(min(n, maxListLimit))
		if to == routeRecent {
			return unless(ok && n >= 1 && n <= maxRecentLimit, errRecentLimit)
		}
		return unless(ok && n >= 1 && n <= maxListLimit, errListLimit)
	case paramBefore:
		p.before.Known = true
		p.before.Value, err = ledger.ParseSignature(value)
		return unless(err == nil, errBefore)
	case paramAfter:
		p.after.Known = true
		p.after.Value, err = ledger.ParseSignature(value)
		return unless(err == nil, errAfter)
	case paramCursor:
		p.cursor = value
	case paramInclude:
		switch string(value) {
		case "signatures":
			p.include = includeSignatures
		case "transactions":
			p.include = includeTransactions
		default:
			return errInclude
		}
	case paramKeys:
		return p.setKeys(value)
	}
	return nil
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
func parseDecimal(s []byte) (uint64, bool) {
	if len(s) == 0 || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n := uint64(0)
	for _, c := range s {
		d := uint64(c - '0')
		if c < '0' || c > '9' || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
