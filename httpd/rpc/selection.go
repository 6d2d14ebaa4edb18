package rpc

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"

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

// selectionOf reads filters.
func selectionOf(filters *fastjson.Value) (*selection, error) {
	s := new(selection)
	if filters == nil {
		return s, nil
	}
	if filters.Type() != fastjson.TypeArray {
		return nil, badParams("filters must be an array")
	}
	all, _ := filters.Array()
	if len(all) > maxFilters {
		return nil, badParams("there may be %d filters at most", maxFilters)
	}
	for _, f := range all {
		if err := s.add(f); err != nil {
			return nil, err
		}
	}
	return s, nil
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

// appendKey appends what is the same for all spellings of the same filters.
func (s *selection) appendKey(dst []byte) []byte {
	if s.never {
		return append(dst, "never"...)
	}
	parts := slices.SortedFunc(slices.Values(s.data.Parts), func(a, b ledger.DataPart) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), bytes.Compare(a.Bytes, b.Bytes))
	})
	dst = fmt.Append(dst, s.tokens, s.data.Size)
	for i, p := range parts {
		if i == 0 || p.Offset != parts[i-1].Offset || !bytes.Equal(p.Bytes, parts[i-1].Bytes) {
			dst = fmt.Appendf(dst, " %d %d %s", p.Offset, len(p.Bytes), p.Bytes)
		}
	}
	return dst
}

// add reads one filter.
func (s *selection) add(f *fastjson.Value) error {
	switch {
	case f.Type() == fastjson.TypeString && string(f.GetStringBytes()) == "tokenAccountState":
		s.tokens = true
		return nil
	case f.Type() != fastjson.TypeObject:
		return badParams("a filter is dataSize, memcmp or tokenAccountState")
	}
	kinds := 0
	for _, kind := range []string{"dataSize", "memcmp", "tokenAccountState"} {
		if f.Exists(kind) {
			kinds++
		}
	}
	if kinds > 1 {
		return badParams("a filter is one of dataSize, memcmp and tokenAccountState")
	}
	if size := f.Get("dataSize"); size != nil {
		n, err := numberOf(size, "dataSize")
		s.never = s.never || s.data.Size.Known && s.data.Size.Value != n
		s.data.Size, s.looks = ledger.Some(n), true
		return err
	}
	if f.Exists("tokenAccountState") {
		s.tokens = true
		return nil
	}
	part, err := partOf(f.Get("memcmp"))
	s.data.Parts, s.looks = append(s.data.Parts, part), true
	return err
}

// partOf reads the memcmp of a filter.
func partOf(v *fastjson.Value) (p ledger.DataPart, err error) {
	if v == nil || v.Type() != fastjson.TypeObject {
		return p, badParams("a filter is dataSize, memcmp or tokenAccountState")
	}
	if p.Offset, err = numberOf(v.Get("offset"), "offset of memcmp"); err != nil {
		return p, err
	}
	encoding, err := word(v, "encoding", asBase58, asBase58, asBase64, "bytes")
	if err != nil {
		return p, err
	}
	bad := badParams("bytes of memcmp must be at most 128 bytes, in base58, in base64 where encoding says so, or as an array of numbers")
	switch text := given(v.Get("bytes")); {
	case text == nil:
		return p, bad
	case text.Type() == fastjson.TypeArray:
		for _, b := range text.GetArray() {
			n, err := numberOf(b, "bytes of memcmp")
			if err != nil || n > 255 {
				return p, bad
			}
			p.Bytes = append(p.Bytes, byte(n))
		}
	case text.Type() != fastjson.TypeString:
		return p, bad
	case encoding == asBase64:
		if p.Bytes, err = base64.StdEncoding.DecodeString(string(text.GetStringBytes())); err != nil {
			return p, bad
		}
	case len(text.GetStringBytes()) > 0:
		var ok bool
		if p, ok = ledger.ParseDataPart(p.Offset, text.GetStringBytes()); !ok {
			return p, bad
		}
	}
	if len(p.Bytes) > ledger.MaxPartBytes {
		return p, bad
	}
	return p, nil
}
