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
	codings
)

// String returns the name of a coding as header fields have it.
func (c Coding) String() string { return codingNames[c] }

var codingNames = [codings]string{Identity: "identity", Gzip: "gzip", Zstd: "zstd"}

// ChooseCoding returns the coding an Accept-Encoding field asks for: the one with the
// highest weight of those we have, of equal ones zstd, then gzip. A coding that is not
// named has the weight of "*"; identity, where neither is, is the last resort. Elements
// that cannot be read are passed over.
func ChooseCoding(accept []byte) Coding {
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
		case strings.EqualFold(string(name), "x-gzip"):
			weights[Gzip] = weight
		default:
			for c := range codings {
				if strings.EqualFold(string(name), codingNames[c]) {
					weights[c] = weight
				}
			}
		}
	}
	best, bestWeight := Identity, weights[Identity]
	if bestWeight == unnamed {
		bestWeight = 0
	}
	for _, c := range []Coding{Gzip, Zstd} {
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

// parseWeight reads "q=" and a number from 0 to 1, in thousandths.
func parseWeight(s []byte) (thousandths int, ok bool) {
	if len(s) < 3 || s[0]|0x20 != 'q' || s[1] != '=' || s[2] != '0' && s[2] != '1' {
		return 0, false
	}
	weight, err := strconv.ParseFloat(string(s[2:]), 64)
	return int(weight * 1000), err == nil && weight <= 1
}

// Compressor compresses bodies. It may be used by many requests at once.
type Compressor struct {
	zstd *zstd.Encoder // used through EncodeAll only, which starts no goroutine
	gzip sync.Pool     // of *gzip.Writer
}

// NewCompressor returns a compressor.
func NewCompressor() *Compressor {
	// A body is compressed whole in the handler, so speed counts for more than size.
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(256<<10))
	if err != nil {
		panic("httpd: bad zstd options: " + err.Error())
	}
	return &Compressor{zstd: e, gzip: sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			panic("httpd: bad gzip level: " + err.Error())
		}
		return w
	}}}
}

// AppendCompressed appends body to dst in a coding other than identity.
func (c *Compressor) AppendCompressed(dst []byte, body []byte, as Coding) []byte {
	if as == Zstd {
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
