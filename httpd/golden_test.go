package httpd

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/ratelimit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// G9, G10, F37, F43: TestAnswersAreGolden asks for the targets in testdata and holds each answer to the lines below it, which
// go test -update writes: the status, the headers that differ from answer to answer, and the body; behind a ">" all
// methods are asked for the target. A line that
// begins with == begins a scene with a ledger of its own. {NAME} is one of goldenNames, $[TEXT*N] the text N times.
// No bad request reaches the ledger.
//
//	== limits MINUTE HOUR              begins a scene with rate limits, a trusted 10.0.0.0/8 and an exempt 172.16.0.0/12
//	@ DURATION                         sets the clock to so long after its beginning
//	METHOD TARGET from ADDRESS for HOPS  asks with an X-Forwarded-For; limit, remaining and reset are shown
func TestAnswersAreGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d golden files: %v", len(files), err)
	}
	for _, file := range files {
		text := readFile(t, file)
		var got strings.Builder
		h, at := serve(t, nil), now
		for line := range strings.Lines(string(text)) {
			scene, begins := strings.CutPrefix(line, "== ")
			switch {
			case strings.HasPrefix(line, "== limits "):
				h = serveLimits(t, strings.Fields(line)[2:], &at)
				got.WriteString(line)
			case strings.HasPrefix(line, "@ "):
				after, _ := time.ParseDuration(strings.TrimSpace(line[2:]))
				at = now.Add(after)
				got.WriteString(line)
			case limitedLine.MatchString(line):
				got.WriteString(line + h.limited(strings.SplitN(strings.TrimSpace(line), " ", 6)))
			case begins:
				h = serve(t, nil)
				scenes[strings.TrimSpace(scene)](h)
				got.WriteString(line)
			case strings.HasPrefix(line, "/"):
				fmt.Fprintf(&got, "%s%s\n", line, h.described("GET", expand(t, strings.TrimSpace(line))))
			case strings.HasPrefix(line, "> "):
				got.WriteString(line + h.byMethod(expand(t, strings.TrimSpace(line[2:]))))
			case strings.HasPrefix(line, "#") || line == "\n":
				got.WriteString(line)
			}
		}
		ledgertest.Golden(t, file, got.String(), *update)
	}
}

// scenes are ledgers that differ from the usual one.
var scenes = map[string]func(*harness){
	"mints":                    (*harness).putMints,
	"data":                     (*harness).putData,
	"a base without blocks":    func(h *harness) { h.ledger.head.HasBlock = false },
	"an import without blocks": func(h *harness) { h.ledger.head.HasBlock, h.ledger.head.Imported = false, true },
	"before the first head": func(h *harness) {
		h.ledger.head, h.ledger.err, h.ledger.status.Unhealthy = nil, ledger.ErrUnavailable, "recovering: 40% of the log replayed"
	},
	"no block yet":            func(h *harness) { h.ledger.err = absent(ledger.NoBlockYet) },
	"a finalized transaction": func(h *harness) { h.ledger.recent[len(h.ledger.recent)-1].Slot = 20 },
}

// goldenNames are what golden files call keys and signatures.
var goldenNames = map[string]string{
	"whole": whole.String(), "part": part.String(), "closed": closed.String(), "wallet": wallet.String(), "missing": missing.String(),
	"owner": owner.String(), "mintA": mintA.String(), "mintB": mintB.String(), "unminted": unminted.String(),
	"token": testKey(30).String(), "token2022": testKey(31).String(), "bare": testKey(32).String(), "native": testKey(33).String(),
	"market": testKey(60).String(), "other": testKey(61).String(), "empty": testKey(62).String(),
	"sig1": testSignature(1).String(), "sig2": testSignature(2).String(),
	"sig9": testSignature(9).String(), "sig100": testSignature(100).String(),
	"TokenProgram": ledger.TokenProgram.String(), "Token2022Program": ledger.Token2022Program.String(),
}

var (
	limitedLine = regexp.MustCompile(`^[A-Z]+ /\S* from `)
	goldenName  = regexp.MustCompile(`\{(\w+)\}`)
	repeated    = regexp.MustCompile(`(?s)\$\[(.+?)\*(\d+)\]`)
)

// expand returns a target with its names and repeated texts written out.
func expand(t testing.TB, target string) string {
	target = goldenName.ReplaceAllStringFunc(target, func(name string) string {
		text, ok := goldenNames[strings.Trim(name, "{}")]
		if !ok {
			t.Fatalf("%s: nothing is called %s", target, name)
		}
		return text
	})
	return repeated.ReplaceAllStringFunc(target, func(all string) string {
		parts := repeated.FindStringSubmatch(all)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
}

// described asks for a target and returns what golden files say of the answer. That to HEAD must be the same without the body.
func (h *harness) described(method, target string) string {
	h.Helper()
	asked := h.ledger.asked.Load()
	r := h.do(method, target)
	if r.status == 400 && h.ledger.asked.Load() != asked {
		h.Errorf("%s: the ledger was asked", target)
	}
	usual := map[string]string{"Content-Type": "application/json", "Cache-Control": "no-cache", "X-Ledger-Slot": "30", "X-Ledger-Lag-Ms": "1500", "Content-Security-Policy": "default-src 'none'"}
	about := func(r reply) string {
		text := fmt.Sprint(r.status)
		for _, name := range []string{"Allow", "Access-Control-Allow-Headers", "Access-Control-Max-Age", "Content-Type", "Cache-Control", "ETag",
			"X-Ledger-Slot", "X-Ledger-Lag-Ms", "X-Ledger-Partial", "Retry-After", "Content-Security-Policy"} {
			if value := r.header.Get(name); value != usual[name] {
				text += fmt.Sprintf(" %s: %s;", name, value)
			}
		}
		return text
	}
	long := strings.Contains(r.body, "\n") // the metrics, which count this request too, and the document
	if method == "GET" {
		head := h.do("HEAD", target)
		same := about(head) == about(r) && (long || head.header.Get("Content-Length") == fmt.Sprint(len(r.body)))
		if !same || head.body != "" {
			h.Errorf("HEAD %s: %s with %v, to GET it is %s with %d bytes", target, about(head), head.header, about(r), len(r.body))
		}
	}
	if strings.HasSuffix(r.header.Get("Content-Security-Policy"), pagePolicy) {
		r.header.Del("ETag") // of a text that changes with every version
		return about(r) + " a page"
	}
	if long {
		return about(r) + " many lines"
	}
	return about(r) + " " + r.body
}

// serveLimits starts a server with limits per minute and hour.
func serveLimits(t *testing.T, limits []string, at *time.Time) *harness {
	return serve(t, func(c *Config) {
		c.PerMinute, _ = strconv.Atoi(limits[0])
		c.PerHour, _ = strconv.Atoi(limits[1])
		*at, c.Now = now, func() time.Time { return *at }
		c.Identity = ratelimit.NewIdentity([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")})
	})
}

// limited asks what a line says, and returns what the answer tells of the limits.
func (h *harness) limited(words []string) string {
	r := h.doFrom(words[3], words[0], words[1], "X-Forwarded-For: "+words[5])
	reset, _ := strconv.ParseInt(r.header.Get("X-RateLimit-Reset"), 10, 64)
	return fmt.Sprintf("%d X-RateLimit: %s %s %ds; Retry-After: %s; %s\n", r.status, r.header.Get("X-RateLimit-Limit"),
		r.header.Get("X-RateLimit-Remaining"), reset-now.Unix(), r.header.Get("Retry-After"), r.body)
}

// byMethod returns what golden files say of the answers to all methods: those that are answered alike together.
func (h *harness) byMethod(target string) (text string) {
	methods := make(map[string]string) // by the answer
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT", "BREW"} {
		answer := h.described(method, target)
		methods[answer] += method + " "
	}
	for _, answer := range slices.Sorted(maps.Keys(methods)) {
		text += methods[answer] + answer + "\n"
	}
	return text
}

// rawRequest is a request as its bytes, and the status it is answered with.
type rawRequest struct {
	status int
	raw    string
}

// requestsOf returns the requests of a file in testdata, by name.
func requestsOf(t *testing.T, file string) map[string]rawRequest {
	t.Helper()
	text := readFile(t, "testdata/"+file+".requests")
	requests := make(map[string]rawRequest)
	for row := range strings.Lines(string(text)) {
		var r rawRequest
		name, what, _ := strings.Cut(row, ": ")
		if _, err := fmt.Sscanf(what, "%d %q", &r.status, &r.raw); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		r.raw = expand(t, r.raw)
		requests[name] = r
	}
	return requests
}
