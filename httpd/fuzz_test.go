package httpd

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/mr-tron/base58"
	"github.com/valyala/fasthttp"
)

// F37: FuzzQuery compares the parameters with an oracle: an error exactly where that has one, and never an error text that is not fixed. What values mean
// the golden answers show.
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
		err := parsed(row, query)
		if ok := queryOracle(row.path, query); (err == nil) != ok {
			t.Fatalf("%s?%s: error %v, the oracle says ok = %v", row.path, query, err, ok)
		}
		if err == nil {
			return
		}
		fixed := []error{errEscape, errParameters, errRepeated, errEmpty, errKeyCount, errSliceAlone, errUnknown(row.params)}
		for _, known := range row.params {
			fixed = append(fixed, parsed(row, known.name+"=?"))
		}
		if !slices.ContainsFunc(fixed, func(known error) bool { return reflect.DeepEqual(known, err) }) {
			t.Errorf("%s?%s: error %q is not a fixed one", row.path, query, err)
		}
	})
}

// parsed returns the error of a query.
func parsed(row *route, query string) error {
	var u fasthttp.URI
	u.SetQueryString(query)
	return new(params).parse(row, &u)
}

// queryOracle reads a query of a path with the standard library, by what the document says of the path's parameters.
func queryOracle(path, query string) (ok bool) {
	described := make(map[string]*openapi3.Schema)                                 // by the names of parameters
	if item := document.Paths.Value(path); item != nil && path != "/ws/accounts" { // whose query the stream reads
		for _, q := range item.Get.Parameters {
			if q.Value.In == "query" {
				described[q.Value.Name] = q.Value.Schema.Value
			}
		}
	}
	if strings.Count(query, "&") >= 64 {
		return false
	}
	reads := described["min_slot"] != nil
	given := make(map[string][]string)
	for pair := range strings.SplitSeq(query, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(rawName)
		value, err2 := url.QueryUnescape(rawValue)
		schema := described[name]
		switch {
		case err1 != nil || err2 != nil:
			return false
		case strings.HasPrefix(name, "_") || schema == nil && (!reads || name+value == ""):
		case schema == nil || value == "" || reads && !isRight(name, value, schema):
			return false
		default:
			given[name] = append(given[name], value)
		}
	}
	for name, values := range given {
		if len(values) > map[bool]int{false: 1, true: 4}[name == "memcmp"] {
			return false
		}
	}
	return given["data_slice"] == nil || strings.Contains(fmt.Sprint(given["include"]), "data")
}

// isRight reports whether a parameter may have a value. It reads keys with another base58.
func isRight(name, value string, s *openapi3.Schema) bool {
	isNumber := func(text string) bool {
		n, err := strconv.ParseUint(text, 10, 64)
		return err == nil && strconv.FormatUint(n, 10) == text
	}
	isBytes := func(text string, least, most int) bool {
		raw, err := base58.Decode(text)
		return err == nil && len(raw) >= least && len(raw) <= most
	}
	if s.AllOf != nil {
		s = s.AllOf[0].Value
	}
	switch name {
	case "before", "after":
		return isBytes(value, 64, 64)
	case "keys":
		keys := strings.Split(value, ",")
		return len(keys) <= 100 && !slices.ContainsFunc(keys, func(key string) bool { return !isBytes(key, 32, 32) })
	case "data_slice":
		offset, length, _ := strings.Cut(value, ",")
		return isNumber(offset) && isNumber(length)
	case "memcmp":
		offset, text, _ := strings.Cut(value, ":")
		return isNumber(offset) && isBytes(text, 1, 128)
	case "cursor":
		return true // which is read with its list
	}
	if s.Enum != nil {
		return slices.Contains(s.Enum, any(value))
	}
	n, _ := strconv.ParseFloat(value, 64)
	return isNumber(value) && n >= *s.Min && (s.Max == nil || n <= *s.Max)
}
