package nodejson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/base58"
	"ledgerd/engine/ledger"
)

const maxDataBytes = ledger.MaxDataBytes

var (
	errDataForm     = errors.New("data is neither text with its encoding, nor a list of bytes, nor parsed")
	errDataEncoding = errors.New("data is in an unknown encoding")
	errDataTooLong  = errors.New("data is longer than any account's")
)

// DataDecoder decodes account data. Its zero value is ready; it must be closed.
type DataDecoder struct {
	// Held are the programs whose accounts are told with their data; nil: none.
	Held *ledger.DataPrograms

	zstd *zstd.Decoder // made when first needed
	raw  []byte        // the last data of an event line, at most maxDataBytes
}

// Close frees what the decoder holds.
func (d *DataDecoder) Close() {
	if d.zstd != nil {
		d.zstd.Close()
	}
}

// Decode returns account data from its JSON: a pair of text and encoding, the bare base58
// text of old nodes, or a list of bytes.
func (d *DataDecoder) Decode(data json.RawMessage) ([]byte, error) { return d.decode(data, "base58") }

// decode takes a bare text for one in an encoding.
func (d *DataDecoder) decode(data json.RawMessage, bare string) ([]byte, error) {
	if data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return nil, errDataForm
		}
		return d.decodeText(text, bare)
	}
	if !bytes.Contains(data, []byte{'"'}) {
		raw, ok := appendNumbers([]byte{}, data, 8)
		switch {
		case !ok:
			return nil, errDataForm
		case len(raw) > maxDataBytes:
			return nil, errDataTooLong
		}
		return raw, nil
	}
	var pair []*string
	if err := json.Unmarshal(data, &pair); err != nil || len(pair) != 2 || pair[0] == nil || pair[1] == nil {
		return nil, errDataForm
	}
	return d.decodeText(*pair[0], *pair[1])
}

// DecodeLine returns account data from an event line, where a bare text is base64. The data
// holds until the next call.
func (d *DataDecoder) DecodeLine(data json.RawMessage) ([]byte, error) {
	// A text without escapes is decoded where it stands, without a copy.
	if size := base64.StdEncoding.DecodedLen(len(data)); data[0] == '"' && size <= maxDataBytes && bytes.IndexByte(data, '\\') < 0 {
		if cap(d.raw) < size {
			d.raw = make([]byte, size)
		}
		if n, err := base64.StdEncoding.Strict().Decode(d.raw[:size], data[1:len(data)-1]); err == nil {
			return d.raw[:n], nil
		}
	}
	return d.decode(data, "base64")
}

func (d *DataDecoder) decodeText(text, encoding string) (raw []byte, err error) {
	switch encoding {
	case "base64":
		raw, err = base64.StdEncoding.Strict().DecodeString(text)
	case "base58":
		raw, err = base58.Decode(text)
	case "base64+zstd":
		if raw, err = base64.StdEncoding.Strict().DecodeString(text); err == nil {
			raw, err = d.unpack(raw)
		}
	default:
		return nil, errDataEncoding
	}
	switch {
	case err != nil:
		return nil, fieldError("data", "is not "+encoding)
	case len(raw) > maxDataBytes:
		return nil, errDataTooLong
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
