package rpc

import (
	"encoding/base64"
	"strconv"

	"github.com/valyala/fastjson"

	"ledgerd/engine/base58"
	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// maxBase58Bytes is how much data is shown in base58, whose time is quadratic.
const maxBase58Bytes = 128

// Encodings of account data.
const (
	asBinary = "binary" // base58 without its name, of old
	asBase58 = "base58"
	asBase64 = "base64"
	asZstd   = "base64+zstd"
	asParsed = "jsonParsed"
)

// form is how a call wants account data.
type form struct {
	encoding string
	slice    encode.Slice
}

// readForm reads encoding and dataSlice of a configuration.
func (c *call) readForm(config *fastjson.Value, usual string) (f form) {
	f.encoding = c.word(member(config, "encoding"), "encoding", usual, asBinary, asBase58, asBase64, asZstd, asParsed)
	slice := member(config, "dataSlice")
	switch f.slice = encode.WholeData; {
	case slice == nil:
	case slice.Type() != fastjson.TypeObject:
		c.bad("dataSlice must be an object")
	default:
		f.slice = encode.Slice{Offset: c.number(slice.Get("offset"), "offset of dataSlice"), Length: c.number(slice.Get("length"), "length of dataSlice")}
	}
	return f
}

// facts are what a form may need besides an account.
type facts struct {
	own  *ledger.Mint // of the account itself, nil: it is no mint, or nothing is known of it
	held *ledger.Mint // of the mint of a token account, nil: nothing is known of it; or noMint
}

// appendAccount appends an account. Its owner must be known.
func (f *form) appendAccount(dst []byte, a *ledger.Account, known facts) (_ []byte, err error) {
	if a.Unknown() != 0 {
		return dst, elsewhere(codeExcluded, "the source has not shown the owner, the executable flag or the rent epoch of account %s", a.Pubkey)
	}
	dst = encode.AppendNumber(dst, `{"lamports":`, a.Lamports)
	dst = encode.AppendKey(dst, `,"owner":`, &a.Owner)
	dst = strconv.AppendBool(append(dst, `,"executable":`...), a.Executable)
	dst = encode.AppendNumber(dst, `,"rentEpoch":`, a.RentEpoch)
	if space, known := spaceOf(a, known.own); known {
		dst = encode.AppendNumber(dst, `,"space":`, space)
	}
	dst = append(dst, `,"data":`...)
	if f.encoding == asParsed && ledger.IsTokenProgram(a.Owner) && (a.Token != nil && known.held != noMint || known.own != nil) {
		dst, err = appendParsed(dst, a, known)
	} else {
		dst, err = f.appendData(dst, a)
	}
	return append(dst, '}'), err
}

// spaceOf returns how long the data of an account is. Without the data, that follows from the layouts of the first token program.
func spaceOf(a *ledger.Account, own *ledger.Mint) (space uint64, known bool) {
	switch {
	case a.Known&ledger.FieldData != 0:
		return uint64(a.Data.Len()), true
	case a.Owner != ledger.TokenProgram:
		return 0, false
	case a.Token != nil:
		return tokenAccountBytes, true
	case own != nil:
		return mintBytes, true
	}
	return 0, false
}

// textBytes returns what the text of an account takes at most. Of base58 more than a little is refused.
func (f *form) textBytes(a *ledger.Account) int {
	if f.encoding == asBinary || f.encoding == asBase58 {
		return accountBytes
	}
	return accountBytes + f.slice.TextBytes(a)
}

// appendData appends the data of an account, or the part of it that is wanted.
func (f *form) appendData(dst []byte, a *ledger.Account) ([]byte, error) {
	if a.Known&ledger.FieldData == 0 && f.slice.Length > 0 {
		return dst, elsewhere(codeExcluded, "the data of account %s is not kept here: it takes --data of its program, or a dataSlice of length 0", a.Pubkey)
	}
	data := f.slice.Of(a.Data.Bytes())
	name := f.encoding
	switch name {
	case asParsed:
		name = asBase64
	case asBinary, asBase58:
		if len(data) > maxBase58Bytes {
			return dst, &callError{code: codeRequest, message: "Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding."}
		}
	case asZstd:
		data = encode.AppendCompressed(nil, data, encode.Zstd)
	}
	if name == asBinary {
		return append(base58.Append(append(dst, '"'), data), '"'), nil
	}
	dst = append(dst, `["`...)
	if name == asBase58 {
		dst = base58.Append(dst, data)
	} else {
		dst = base64.StdEncoding.AppendEncode(dst, data)
	}
	return append(append(append(dst, `","`...), name...), `"]`...), nil
}

// programName returns what parsed data calls a token program.
func programName(program ledger.Pubkey) string {
	if program == ledger.Token2022Program {
		return "spl-token-2022"
	}
	return "spl-token"
}
