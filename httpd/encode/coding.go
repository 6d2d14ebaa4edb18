package encode

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Coding is a content coding.
type Coding uint8

const (
	Identity Coding = iota
	Gzip
	Zstd
	Codings = 3
)

// String returns the name of a coding as header fields have it.
func (c Coding) String() string { return [...]string{"identity", "gzip", "zstd"}[c] }

// ChooseCoding returns the coding an Accept-Encoding field asks for: the one with the
// highest weight of those we have, of equal ones zstd, then gzip. A coding that is not
// named has the weight of "*"; identity, where neither is, is the last resort. Elements
// that cannot be read are passed over.
func ChooseCoding(accept []byte) Coding {
	const unnamed = -1
	weights := [...]int{Identity: 0, Gzip: unnamed, Zstd: unnamed} // in thousandths
	others := 0
	for element := range bytes.SplitSeq(accept, []byte{','}) {
		name, parameter, weighed := bytes.Cut(element, []byte{';'})
		weight, ok := 1000, true
		if weighed {
			weight, ok = parseWeight(bytes.Trim(parameter, " \t"))
		}
		if !ok {
			continue
		}
		switch strings.ToLower(string(bytes.Trim(name, " \t"))) {
		case "*":
			others = weight
		case "identity":
			weights[Identity] = weight
		case "gzip", "x-gzip":
			weights[Gzip] = weight
		case "zstd":
			weights[Zstd] = weight
		}
	}
	best := Identity
	for _, c := range []Coding{Gzip, Zstd} {
		if weights[c] == unnamed {
			weights[c] = others
		}
		if weights[c] > 0 && weights[c] >= weights[best] {
			best = c
		}
	}
	return best
}

// parseWeight reads "q=" and a number from 0 to 1, in thousandths.
func parseWeight(s []byte) (thousandths int, ok bool) {
	if len(s) < 3 || s[0]|0x20 != 'q' || s[1] != '=' || s[2] != '0' && s[2] != '1' {
		return 0, false
	}
	weight, err := strconv.ParseFloat(string(s[2:]), 64)
	return int(weight * 1000), err == nil && weight <= 1
}

// A body is compressed whole in the handler, so speed counts for more than size. None of the
// settings can be refused.
var (
	zstdEncoder, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(256<<10))
	gzipWriters    = sync.Pool{New: func() any {
		w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		return w
	}}
)

// AppendCompressed appends body to dst in a coding other than identity. Many requests may call it
// at once.
func AppendCompressed(dst []byte, body []byte, as Coding) []byte {
	if as == Zstd {
		return zstdEncoder.EncodeAll(body, dst) // which starts no goroutine
	}
	buf := bytes.NewBuffer(dst)
	w := gzipWriters.Get().(*gzip.Writer)
	w.Reset(buf)
	// A bytes.Buffer takes everything, so neither can fail.
	_, _ = w.Write(body)
	_ = w.Close()
	gzipWriters.Put(w)
	return buf.Bytes()
}
