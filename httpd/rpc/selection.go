package rpc

import (
	"encoding/base64"
	"fmt"
	"math"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
)

// maxFilters is how many filters a call may have, as in Agave.
const maxFilters = 4

// selection are the filters of a call. All must take an account.
type selection struct {
	data   ledger.DataFilter
	looks  bool // at the data
	tokens bool // takes initialized token accounts alone
	never  bool // takes nothing: it wants two lengths
}

// readSelection reads filters.
func (c *call) readSelection(filters *fastjson.Value) *selection {
	s := new(selection)
	if filters == nil {
		return s
	}
	for _, f := range c.list(filters, maxFilters, "filters") {
		c.readFilter(s, f)
	}
	return s
}

// takes reports whether the filters take an account of the program as an update leaves it, or took it before the update that closes it.
func (s *selection) takes(u *ledger.Update) bool {
	a := &u.Account
	switch {
	case s.never:
		return false
	case !a.Exists():
		return (!s.tokens || u.WalletBefore.Known) && (!s.looks || u.DataBefore.Known && s.data.MatchData(u.DataBefore.Value))
	}
	return (!s.tokens || a.Token != nil) && (!s.looks || s.data.Match(a))
}

// appendKey appends what is the same for the same filters, in the order in which they were given.
func (s *selection) appendKey(dst []byte) []byte {
	dst = fmt.Append(dst, s.never, s.tokens, s.data.Size)
	for _, p := range s.data.Parts {
		dst = fmt.Appendf(dst, " %d %d %s", p.Offset, len(p.Bytes), p.Bytes)
	}
	return dst
}

// readFilter adds one filter to a selection.
func (c *call) readFilter(s *selection, f *fastjson.Value) {
	size, part, state := f.Get("dataSize"), f.Get("memcmp"), f.Get("tokenAccountState")
	switch {
	case f.Type() == fastjson.TypeString && string(f.GetStringBytes()) == "tokenAccountState":
		s.tokens = true
	case size != nil && (part != nil || state != nil), part != nil && state != nil:
		c.bad("a filter is one of dataSize, memcmp and tokenAccountState")
	case size != nil:
		n := c.number(size, "dataSize")
		s.never = s.never || s.data.Size.Known && s.data.Size.Value != n
		s.data.Size, s.looks = ledger.Some(n), true
	case state != nil && (given(state) == nil || state.Type() == fastjson.TypeTrue):
		s.tokens = true
	case part == nil || part.Type() != fastjson.TypeObject:
		c.bad("a filter is dataSize, memcmp or tokenAccountState")
	default:
		s.data.Parts, s.looks = append(s.data.Parts, c.readPart(part)), true
	}
}

// readPart reads the memcmp of a filter.
func (c *call) readPart(v *fastjson.Value) (p ledger.DataPart) {
	p.Offset = c.number(v.Get("offset"), "offset of memcmp")
	encoding, text, ok := c.word(member(v, "encoding"), "encoding", asBase58, asBase58, asBase64, "bytes"), given(v.Get("bytes")), true
	switch {
	case text == nil:
		ok = false
	case text.Type() == fastjson.TypeArray:
		for _, b := range text.GetArray() {
			n, err := b.Uint()
			ok = ok && err == nil && n <= math.MaxUint8
			p.Bytes = append(p.Bytes, byte(n))
		}
	case text.Type() != fastjson.TypeString:
		ok = false
	case encoding == asBase64:
		var err error
		p.Bytes, err = base64.StdEncoding.DecodeString(string(text.GetStringBytes()))
		ok = err == nil
	case len(text.GetStringBytes()) > 0:
		p, ok = ledger.ParseDataPart(p.Offset, text.GetStringBytes())
	}
	if !ok || len(p.Bytes) > ledger.MaxPartBytes {
		c.bad("bytes of memcmp must be at most 128 bytes, in base58, in base64 where encoding says so, or as an array of numbers")
	}
	return p
}
