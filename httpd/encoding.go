package httpd

import (
	"bytes"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// minCompressBytes is the longest body that is always sent as it is.
const minCompressBytes = 1024

// coding is a content coding.
type coding uint8

const (
	identityCoding coding = iota
	gzipCoding
	zstdCoding
	codings
)

var codingNames = [codings]string{identityCoding: "identity", gzipCoding: "gzip", zstdCoding: "zstd"}

// chooseCoding returns the coding an Accept-Encoding field asks for: the one with the
// highest weight of those we have, of equal ones zstd, then gzip. A coding that is not
// named has the weight of "*"; identity, where neither is, is the last resort. Elements
// that cannot be read are passed over.
func chooseCoding(accept []byte) coding {
	const unnamed = -1
	weights := [codings]int{unnamed, unnamed, unnamed} // in thousandths
	others := unnamed
	for len(accept) > 0 {
		var element []byte
		element, accept, _ = bytes.Cut(accept, []byte{','})
		name, parameter, weighed := bytes.Cut(element, []byte{';'})
		weight, ok := 1000, true
		if weighed {
			weight, ok = parseWeight(bytes.Trim(parameter, " \t"))
		}
		name = bytes.Trim(name, " \t")
		switch {
		case !ok:
		case string(name) == "*":
			others = weight
		case equalFold(name, "x-gzip"):
			weights[gzipCoding] = weight
		default:
			for c := range codings {
				if equalFold(name, codingNames[c]) {
					weights[c] = weight
				}
			}
		}
	}
	best, bestWeight := identityCoding, weights[identityCoding]
	if bestWeight == unnamed {
		bestWeight = 0
	}
	for _, c := range []coding{gzipCoding, zstdCoding} {
		weight := weights[c]
		if weight == unnamed {
			weight = others
		}
		if weight > 0 && weight >= bestWeight {
			best, bestWeight = c, weight
		}
	}
	return best
}

// parseWeight reads "q=" and a number from 0 to 1 with at most three decimals, in
// thousandths.
func parseWeight(s []byte) (thousandths int, ok bool) {
	if len(s) < 3 || len(s) > len("q=0.000") || s[0]|0x20 != 'q' || s[1] != '=' || s[2] != '0' && s[2] != '1' {
		return 0, false
	}
	thousandths = int(s[2]-'0') * 1000
	decimals := s[3:]
	if len(decimals) > 0 && decimals[0] != '.' {
		return 0, false
	}
	unit := 100
	for _, c := range decimals[min(1, len(decimals)):] {
		if c < '0' || c > '9' {
			return 0, false
		}
		thousandths += int(c-'0') * unit
		unit /= 10
	}
	return thousandths, thousandths <= 1000
}

// compressor compresses bodies. It may be used by many requests at once.
type compressor struct {
	zstd *zstd.Encoder // used through EncodeAll only, which starts no goroutine
	gzip sync.Pool     // of *gzip.Writer
}

func newCompressor() *compressor {
	// A body is compressed whole in the handler, so speed counts for more than size.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(256<<10))
	if err != nil {
		panic("httpd: bad zstd options: " + err.Error())
	}
	return &compressor{zstd: e, gzip: sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			panic("httpd: bad gzip level: " + err.Error())
		}
		return w
	}}}
}

// appendCompressed appends body to dst in a coding other than identity.
func (c *compressor) appendCompressed(dst []byte, body []byte, as coding) []byte {
	if as == zstdCoding {
		return c.zstd.EncodeAll(body, dst)
	}
	buf := bytes.NewBuffer(dst)
	w := c.gzip.Get().(*gzip.Writer)
	w.Reset(buf)
	// A bytes.Buffer takes everything, so neither can fail.
	_, _ = w.Write(body)
	_ = w.Close()
	c.gzip.Put(w)
	return buf.Bytes()
}
