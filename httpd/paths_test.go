package httpd

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// templates are the paths of the contract below /api. Of two that fit, the first one counts.
var templates = []string{
	"/health", "/status", "/metrics", "/openapi.json", "/blocks/latest", "/blocks/{slot}", "/transaction/{signature}", "/transactions/recent",
	"/account/{pubkey}", "/account/{pubkey}/balance", "/account/{pubkey}/tokens", "/accounts/program/{program_id}", "/accounts", "/ws/accounts",
}

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

// goodSegments are held by the fake ledger.
var goodSegments = map[string]string{
	"{slot}": "28", "{signature}": testSignature(1).String(), "{pubkey}": whole.String(), "{program_id}": owner.String(),
}

// segmentOf returns the variable segment of a template, "" for none.
func segmentOf(template string) string {
	_, segment, _ := strings.Cut(template, "{")
	segment, _, variable := strings.Cut(segment, "}")
	if !variable {
		return ""
	}
	return "{" + segment + "}"
}

// contractOf says what a request is answered with, and the details of an error.
func contractOf(method, target string) (status int, details string) {
	if target = strings.TrimPrefix(target, "http://elsewhere"); target == "" {
		target = "/"
	}
	if !strings.HasPrefix(target, "/") {
		return 400, "the request is not well-formed HTTP/1.1 or HTTP/1.0, or its length is stated in an unsupported way"
	}
	path, _, _ := strings.Cut(target, "?")
	template, variable, ok := pathOracle(path)
	switch {
	case !ok:
		return 400, string(errPath)
	case template == "":
		return 404, "no such path"
	case method == "OPTIONS":
		return 204, ""
	case method != "GET" && method != "HEAD":
		return 405, "only GET, HEAD and OPTIONS are answered"
	case template == "/accounts":
		return 400, string(errNoKeys)
	case template == "/ws/accounts":
		return 400, string(errUpgrade)
	case variable == goodSegments[segmentOf(template)]:
		return 200, ""
	}
	return 400, string(map[string]paramError{"{slot}": errSlot, "{signature}": errSignature, "{pubkey}": errPubkey, "{program_id}": errProgram}[segmentOf(template)])
}

// spellings are the paths of every route, as they are and in ways that a router may take for
// another path, or for the same one.
func spellings() (paths []string) {
	for _, template := range templates {
		segment := segmentOf(template)
		path := "/api" + strings.Replace(template, segment, goodSegments[segment], 1)
		i := strings.LastIndexByte(path, '/')
		paths = append(paths, path, path+"/", path+"//", "/"+path, path[:i]+"/"+path[i:], "/api/../api"+path[4:], path+"?", "http://elsewhere"+path,
			"/api%2f"+path[5:], strings.ToUpper(path), escapeAll(path), path[:i]+"/x", path+"/x", path[:i])
	}
	return append(paths, hazards...)
}

// escapeAll escapes every byte but the slashes.
func escapeAll(path string) string {
	const hex = "0123456789aBCdEf" // in either case
	var b strings.Builder
	for _, c := range []byte(path) {
		if c == '/' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&0xf]})
		}
	}
	return b.String()
}

var hazards = []string{
	"*", "/*", "/%2a/", "/api/*", "/api/account/*", "/", "//", "/api", "/api/", "/api//", "/health", "/api/Health", "/api/nothing", "/api/.", "/api/health;v=1", "/api/health%3fx", "/api/health%20",
	"/api\\health", "/api/+health", "/api/account//balance", "/api/account/x/balance/y", "/api/account/x/Balance", "/api/blocks//latest",
	"/favicon.ico", "http://elsewhere", "/api/account/" + whole.String() + "?next=http://[::1/%2f..//", "/api/a%3a//b", "//elsewhere/api/health?x=http://y", "//elsewhere/api/health/://", "/api://elsewhere/api/health",
	"/%61pi/%61ccount/" + escapeAll(whole.String()) + "?&&unknown=%00%ff&=&x", "/api/account/%2531", "/api/%25", "/api/blocks/%32%38", "/api/blocks/2%38/",
	"/api/%", "/api/%2", "/api/%zz", "/api/account/%", "/api/account/" + whole.String() + "%", "/api/account/" + whole.String() + "%1", "/api/account/%g1",
	"/api/health%2f", "/api%2Fhealth", "/api/account/" + whole.String() + "%2Fbalance", "/api/health%00", "/%00", "/api/account/%00" + whole.String(),
	"/api/account/" + whole.String() + "%0a", "/api/%7fhealth", "/api/%1bhealth", "/..", "/api/..", "/api/blocks/../health", "/api/%2e%2e/health",
	"/api/.%2e/health", "/api/health/..", "/api/health/.%2E/", "/../../etc/passwd", "/api/...", "/api/a..b", "/api//..//", "/api/account/..%2f" + whole.String(),
	"/%2e%2e/%2e%2e/etc/passwd", "/api/%c0%ae%c0%ae%2fx", "/api/account/%c0%ae",
}

// G9, G10, F37: TestEveryMethodOnEveryPathIsAsTheContractSays holds the answers against an oracle that splits
// paths, where the server has a router.
func TestEveryMethodOnEveryPathIsAsTheContractSays(t *testing.T) {
	h := serve(t, nil)
	rows := 0
	for _, target := range spellings() {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT", "BREW"} {
			rows++
			r := h.do(method, target)
			status, details := contractOf(method, target)
			if r.status != status {
				t.Errorf("%s %s: %d %.300s, want %d %s", method, target, r.status, r.body, status, details)
				continue
			}
			if want := errorBody(status, details); status >= 400 && method != "HEAD" && r.body != want || (status == 204 || method == "HEAD") && r.body != "" {
				t.Errorf("%s %s: %d %s, want %s", method, target, status, r.body, want)
			}
			if got, want := r.header.Get("Allow"), map[int]string{204: "GET, HEAD, OPTIONS", 405: "GET, HEAD, OPTIONS"}[status]; got != want {
				t.Errorf("%s %s: %d with Allow %q, want %q", method, target, status, got, want)
			}
			const headers = "If-None-Match, Content-Type, Authorization, X-API-Key, Cache-Control, traceparent"
			if got := r.header.Get("Access-Control-Allow-Headers"); (status == 204) != (got == headers) || (status == 204) != (r.header.Get("Access-Control-Max-Age") == "86400") {
				t.Errorf("%s %s: %d with Access-Control-Allow-Headers %q", method, target, status, got)
			}
			if status >= 400 && (r.header.Get("Cache-Control") != "no-cache" || r.header.Get("ETag") != "" || r.header.Get("X-Ledger-Slot") != "30") {
				t.Errorf("%s %s: %d with %v", method, target, status, r.header)
			}
		}
	}
	if rows < 330 {
		t.Errorf("the table has %d rows, want at least 330", rows)
	}
}

// G10, F37: FuzzPath compares the router with the oracle.
func FuzzPath(f *testing.F) {
	for _, path := range spellings() {
		f.Add(path)
	}
	rows := newRoutes()
	for _, row := range rows[1:] {
		row.ask = func(r *request) error {
			r.body = append(r.body, r.variable(strings.Trim(segmentOf(row.path), "{}"))...)
			return nil
		}
	}
	s := New(Config{Ledger: newFakeLedger()})
	router := newRouter(rows)
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsFunc(path, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '?' || c == '#' }) {
			return // that is no path of a target
		}
		ctx := new(fasthttp.RequestCtx)
		ctx.Request.Header.SetHost("ledger")
		ctx.Request.SetRequestURI(path)
		r := &request{server: s, ctx: ctx, route: rows[0]}
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
