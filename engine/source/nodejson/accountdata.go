package nodejson

import (
	"bytes"
	"encoding/base64"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/base58"
	"ledgerd/engine/ledger"
)

const maxDataBytes = ledger.MaxDataBytes

var (
	errDataForm    = errors.New("data is neither text with its encoding, nor a list of bytes, nor parsed")
	errDataTooLong = errors.New("data is longer than any account's")
)

// DataDecoder decodes account data. Its zero value is ready; it must be closed.
type DataDecoder struct {
	// Held are the programs whose accounts are told with their data; nil: none.
	Held *ledger.DataPrograms

	zstd *zstd.Decoder // made when first needed
}

// Close frees what the decoder holds.
func (d *DataDecoder) Close() {
	if d.zstd != nil {
		d.zstd.Close()
	}
}

// Decode returns account data from its JSON: a pair of text and encoding, a list of bytes, or a bare text in an encoding,
// which is base58 of old nodes.
func (d *DataDecoder) Decode(data jsontext.Value, bare string) (raw []byte, err error) {
	var text, encoding string
	isText, ok := bytes.Contains(data, []byte{'"'}), false
	if isText {
		text, encoding, ok = encodedText(data, bare)
	} else {
		raw, ok = appendNumbers([]byte{}, data, 8)
	}
	switch {
	case !ok:
		return nil, errDataForm
	case encoding == "base64+zstd":
		if raw, err = decodeText("data", text, "base64"); err == nil {
			raw, err = d.unpack(raw)
		}
		if err != nil {
			err = fieldError("data", "is not base64+zstd")
		}
	case isText:
		raw, err = decodeText("data", text, encoding)
	}
	if err == nil && len(raw) > maxDataBytes {
		err = errDataTooLong
	}
	return raw, err
}

// encodedText returns a text of JSON and the name of its encoding: a bare one is given, else both are a pair.
func encodedText(b jsontext.Value, bare string) (text, encoding string, ok bool) {
	if b[0] == '"' {
		return text, bare, Unmarshal(b, &text) == nil
	}
	var pair []*string
	if Unmarshal(b, &pair) != nil || len(pair) != 2 || pair[0] == nil || pair[1] == nil {
		return "", "", false
	}
	return *pair[0], *pair[1], true
}

// decodeText returns what a text says in an encoding; the subject names it in errors.
func decodeText(subject, text, encoding string) (raw []byte, err error) {
	switch encoding {
	case "base64":
		raw, err = base64.StdEncoding.Strict().DecodeString(text)
	case "base58":
		raw, err = base58.Decode(text)
	default:
		return nil, fieldError(subject, "is in an unknown encoding")
	}
	if err != nil {
		return nil, fieldError(subject, "is not "+encoding)
	}
	return raw, nil
}

// unpack returns the content of zstd frames, which may be no longer than an account.
func (d *DataDecoder) unpack(packed []byte) ([]byte, error) {
	if d.zstd == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDataBytes))
		if err != nil {
			return nil, err
		}
		d.zstd = z
	}
	return d.zstd.DecodeAll(packed, nil)
}
