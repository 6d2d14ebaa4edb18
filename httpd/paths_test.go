package httpd

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/httpd/console"
)

// templates are the paths of the document. Of two that fit, the first one counts: that without a variable.
var templates = slices.SortedFunc(maps.Keys(document.Paths.Map()), func(a, b string) int {
	return cmp.Or(strings.Count(a, "{")-strings.Count(b, "{"), strings.Compare(a, b))
})

// pathOracle says what a path means, by splitting it: the template it fits, "" for none, and the
// segment that is variable. It is not ok where the contract has 400.
func pathOracle(path string) (template, variable string, ok bool) {
	decoded, err := url.PathUnescape(path)
	if err != nil || strings.Count(decoded, "/") != strings.Count(path, "/") || strings.Contains(decoded, "..") ||
		strings.ContainsFunc(decoded, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", "", false
	}
	have := strings.Split(strings.TrimSuffix(decoded, "/"), "/")
	for _, template := range templates {
		want, variable := strings.Split("/api"+template, "/"), ""
		if slices.EqualFunc(have, want, func(h, w string) bool {
			if strings.HasPrefix(w, "{") {
				variable = h
				return h != ""
			}
			return h == w
		}) {
			return template, variable, true
		}
	}
	return "", "", true
}

// G10, F37: FuzzPath compares the router with the oracle.
func FuzzPath(f *testing.F) {
	targets := readFile(f, "testdata/methods.txt")
	for line := range strings.Lines(string(targets)) {
		if target, ok := strings.CutPrefix(line, "> "); ok {
			f.Add(expand(f, strings.TrimSpace(target)))
		}
	}
	rows := newRoutes()
	for _, row := range rows[firstPage+console.Kinds:] {
		_, segment, _ := strings.Cut(row.path, "{")
		segment, _, _ = strings.Cut(segment, "}")
		row.ask = func(r *request) error {
			r.body = append(r.body, r.variable(segment)...)
			return nil
		}
	}
	s := New(Config{Ledger: newFakeLedger()})
	router := newRouter(rows, nil)
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '?' || c == '#' }) {
			return // that is no path of a target
		}
		ctx := new(fasthttp.RequestCtx)
		ctx.Request.Header.SetHost("ledger")
		ctx.Request.SetRequestURI(path)
		r := &request{Exchange: Exchange{server: s, ctx: ctx, route: rows[0]}}
		ctx.SetUserValue(requestKey, r)
		err := r.setPath()
		if err == nil {
			router.Handler(ctx)
		}
		template, variable, ok := pathOracle(path)
		switch {
		case (err == errPath) == ok:
			t.Errorf("%q: %v, the oracle says ok = %v", path, err, ok)
		case err != nil || template == "":
			if ok && (template != "" || err == nil && r.status != 404) {
				t.Errorf("%q: %v, status %d, want %q", path, err, r.status, template)
			}
		default:
			plain := strings.NewReplacer("+", " ") // neither is in any segment that is held
			if r.route.path != template || plain.Replace(string(r.body)) != plain.Replace(variable) {
				t.Errorf("%q: %s with %q, want %s with %q", path, r.route.path, r.body, template, variable)
			}
		}
	})
}
