package httpd

import (
	"bytes"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/mr-tron/base58"
	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

// F37: FuzzQuery compares the parameters with an oracle: an error exactly where it has one, the same
// values elsewhere, and never an error text that is not fixed.
func FuzzQuery(f *testing.F) {
	rows := newRoutes()
	targets := readFile(f, "testdata/bad_input.txt")
	for line := range strings.Lines(string(targets)) {
		path, query, ok := strings.Cut(expand(f, strings.TrimSpace(line)), "?")
		if !ok {
			continue
		}
		template, _, _ := pathOracle(path)
		f.Add(uint8(slices.Index(templates, template)+1), query)
	}
	for i := range rows {
		f.Add(uint8(i), "commitment=final%69zed&wait_ms=2000&&=&x=%00&min_slot=18446744073709551615")
		f.Add(uint8(i), "limit=1000&before="+testSignature(1).String()+"&after="+testSignature(2).String()+"&include=token")
		f.Add(uint8(i), "order=oldest&status=failed&from_slot=0&to_slot=18446744073709551615")
		f.Add(uint8(i), "include=data,token&data_slice=0,18446744073709551615&data_size=165&memcmp=8:2&memcmp=0:111&memcmp=7:z&memcmp=1:"+whole.String())
		f.Add(uint8(i), "keys="+whole.String()+","+part.String()+"&include=signatures&cursor=x")
	}
	f.Fuzz(func(t *testing.T, n uint8, query string) {
		row := rows[int(n)%len(rows)]
		got, err := parsed(row, query)
		want, ok := queryOracle(row.path, query)
		if (err == nil) != ok {
			t.Fatalf("%s?%s: error %v, the oracle says ok = %v", row.path, query, err, ok)
		}
		if err != nil {
			fixed := []error{errEscape, errRepeated, errEmpty, errKeyCount, errSliceAlone, errUnknown(row.params)}
			for _, known := range row.params {
				_, err := parsed(row, known.name+"=?")
				fixed = append(fixed, err)
			}
			if !slices.ContainsFunc(fixed, func(known error) bool { return reflect.DeepEqual(known, err) }) {
				t.Errorf("%s?%s: error %q is not a fixed one", row.path, query, err)
			}
			return
		}
		if !reflect.DeepEqual(got.query, want.query) || got.data != want.data || got.slice != want.slice || got.limit != want.limit || got.in != want.in || got.facts != want.facts || got.details != want.details ||
			!bytes.Equal(got.cursor, want.cursor) || !slices.Equal(got.keys, want.keys) {
			t.Errorf("%s?%s:\n got %+v\nwant %+v", row.path, query, got, want)
		}
	})
}

func parsed(row *route, query string) (p params, err error) {
	var u fasthttp.URI
	u.SetQueryString(query)
	err = p.parse(row, &u)
	return p, err
}

// queryOracle reads a query with the standard library and another base58.
func queryOracle(path, query string) (p params, ok bool) {
	described := make(map[string]*openapi3.Schema)                                 // by the names of parameters
	if item := document.Paths.Value(path); item != nil && path != "/ws/accounts" { // whose query the stream reads
		for _, q := range item.Get.Parameters {
			if q.Value.In == "query" {
				described[q.Value.Name] = q.Value.Schema.Value
			}
		}
	}
	reads, accounts := described["min_slot"] != nil, described["data_slice"] != nil
	var parts []string
	given := map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(rawName)
		value, err2 := url.QueryUnescape(rawValue)
		if err1 != nil || err2 != nil {
			return p, false
		}
		if strings.HasPrefix(name, "_") || described[name] == nil && (!reads || name+value == "") {
			continue
		}
		if described[name] == nil {
			return p, false
		}
		if _, repeated := given[name]; repeated && name != "memcmp" || value == "" {
			return p, false
		}
		if name == "memcmp" {
			parts = append(parts, value)
		}
		given[name] = value
	}
	p.slice = encode.WholeData
	most := 0.0
	if limit := described["limit"]; limit != nil {
		p.limit, most = int(limit.Default.(float64)), *limit.Max
	}
	ok = true
	check := func(good bool) bool { ok = ok && good; return good }
	decimal := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		check(err == nil && strconv.FormatUint(n, 10) == text)
		return n
	}
	if _, sized := given["data_size"]; sized || parts != nil {
		p.query.Where = new(ledger.DataFilter)
	}
	for _, part := range parts {
		offset, text, _ := strings.Cut(part, ":")
		raw, err := base58.Decode(text)
		check(err == nil && len(raw) > 0 && len(raw) <= 128)
		p.query.Where.Parts = append(p.query.Where.Parts, ledger.DataPart{Offset: decimal(offset), Bytes: raw})
	}
	check(len(parts) <= 4)
	for name, value := range given {
		n, err := strconv.ParseUint(value, 10, 64)
		number := err == nil && strconv.FormatUint(n, 10) == value
		switch name {
		case "commitment":
			level, good := map[string]ledger.Commitment{"processed": ledger.Processed, "confirmed": ledger.Confirmed, "finalized": ledger.Finalized}[value]
			p.query.Commitment = level
			check(good)
		case "min_slot":
			p.query.MinSlot = ledger.Slot(n)
			check(number)
		case "wait_ms":
			p.query.Wait = time.Duration(n) * time.Millisecond
			check(number && n <= 2000)
		case "limit":
			p.limit = int(n)
			check(number && n >= 1 && float64(n) <= most)
		case "before", "after":
			raw, err := base58.Decode(value)
			if check(err == nil && len(raw) == 64) && name == "before" {
				p.in.Before = ledger.Some(ledger.Signature(raw))
			} else if err == nil && len(raw) == 64 {
				p.in.After = ledger.Some(ledger.Signature(raw))
			}
		case "order":
			p.in.OldestFirst = value == "oldest"
			check(value == "oldest" || value == "newest")
		case "status":
			p.in.Success = ledger.Some(value == "success")
			check(value == "success" || value == "failed")
		case "from_slot":
			p.in.FromSlot = ledger.Some(ledger.Slot(n))
			check(number)
		case "to_slot":
			p.in.ToSlot = ledger.Some(ledger.Slot(n))
			check(number)
		case "cursor":
			p.cursor = []byte(value)
		case "include":
			check(!reads || slices.Contains(described[name].Enum, any(value)))
			switch {
			case accounts:
				p.facts, p.data = strings.Contains(value, "token"), strings.Contains(value, "data")
			case reads:
				p.query.Parts = map[string]ledger.BlockParts{"signatures": ledger.SignaturesOnly, "transactions": ledger.WholeBlock}[value]
			default:
				p.details = value == "details"
			}
		case "data_slice":
			offset, length, _ := strings.Cut(value, ",")
			p.slice = encode.Slice{Offset: decimal(offset), Length: decimal(length)}
			check(strings.Contains(given["include"], "data"))
		case "data_size":
			p.query.Where.Size = ledger.Some(n)
			check(number)
		case "keys":
			for key := range strings.SplitSeq(value, ",") {
				if raw, err := base58.Decode(key); check(err == nil && len(raw) == 32) {
					p.keys = append(p.keys, ledger.Pubkey(raw))
				}
			}
			check(len(p.keys) <= 100)
		}
	}
	return p, ok
}
