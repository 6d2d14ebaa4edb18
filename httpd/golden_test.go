package httpd

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// G9, G10, G15, G27, F37, F43: TestAnswersAreGolden plays the scenes in testdata and holds each answer to the lines below its question, which
// go test -update writes: the status, the headers that differ from answer to answer, and the body. Each scene has a server of its own, one of
// scenes. {NAME} is one of goldenNames, $[TEXT*N] the text N times.
// No bad request reaches the ledger, and two answers have one tag where they show the same, and only there.
//
//	TARGET | FIELD: VALUE | ...            asks with GET and some fields, and with HEAD, which must be answered alike
//	METHOD TARGET from ADDRESS | ...       asks with a method, on a connection from an address, which stays open
//	N files METHOD TARGET ...              asks so N times as often as there are files of pages
//	> TARGET                               asks with all methods
//	*                                      asks for each kind of record
//	** FIELD: VALUE                        asks with a field on every path of the document
//	? TEXT                                 tells the metrics with a text in them that are not 0
//	@ DURATION                             sets the clock to so long after its beginning
func TestAnswersAreGolden(t *testing.T) {
	shown := make(map[string]string)
	ledgertest.Scenes(t, "testdata/*.txt", "== ", *update, func(t *testing.T, scene string) string {
		name, lines, _ := strings.Cut(scene, "\n")
		h := serve(t, sceneOf(t, name))
		h.shown = shown
		var got strings.Builder
		fmt.Fprintln(&got, "==", name)
		for line := range strings.SplitSeq(lines, "\n") {
			asked := askedLine.FindStringSubmatch(line)
			switch {
			case asked != nil:
				times, _ := strconv.Atoi(cmp.Or(asked[1], "0"))
				fields := strings.Split(expand(t, asked[5]), " | ")[1:]
				answers := make(map[string]int)
				for range max(times*h.server.pages.files(), 1) {
					answers[h.described(asked[4], asked[2], expand(t, asked[3]), fields...)]++
				}
				fmt.Fprintln(&got, line)
				for _, answer := range slices.Sorted(maps.Keys(answers)) {
					if times > 0 {
						fmt.Fprint(&got, answers[answer], " times ")
					}
					fmt.Fprintln(&got, answer)
				}
			case line == "*":
				fmt.Fprintf(&got, "%s\n%s", line, h.grouped(recordTargets, func(target string) string { return h.described("", "", target) }))
			case strings.HasPrefix(line, "** "):
				fmt.Fprintf(&got, "%s\n%s", line, h.grouped(templates, func(path string) string {
					return h.described("", "", "/api"+goldenName.ReplaceAllString(path, "x"), line[3:])
				}))
			case strings.HasPrefix(line, "> "):
				methods := []string{"GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT", "BREW"}
				fmt.Fprintf(&got, "%s\n%s", line, h.grouped(methods, func(method string) string {
					return h.described("", strings.TrimPrefix(method, "GET"), expand(t, line[2:]))
				}))
			case strings.HasPrefix(line, "? "):
				fmt.Fprintf(&got, "%s\n%s", line, h.figures(line[2:]))
			case strings.HasPrefix(line, "@ "):
				after, _ := time.ParseDuration(line[2:])
				h.now = now.Add(after)
				fallthrough
			case strings.HasPrefix(line, "#") || line == "":
				fmt.Fprintln(&got, line)
			}
		}
		return got.String() + "\n"
	})
}

var (
	askedLine  = regexp.MustCompile(`^(?:(\d+) files )?(?:([A-Z]+) )?(/\S*)(?: from (\S+))?((?: \| [^|]*)*)$`)
	goldenName = regexp.MustCompile(`\{(\w+)\}`)
	repeated   = regexp.MustCompile(`(?s)\$\[(.+?)\*(\d+)\]`)
)

// goldenNames are what golden files call keys and signatures.
var goldenNames = map[string]string{
	"whole": whole.String(), "part": part.String(), "closed": closed.String(), "wallet": wallet.String(), "missing": missing.String(),
	"owner": owner.String(), "mintA": mintA.String(), "mintB": mintB.String(), "unminted": unminted.String(),
	"token": testKey(30).String(), "token2022": testKey(31).String(), "bare": testKey(32).String(), "native": testKey(33).String(),
	"market": testKey(60).String(), "other": testKey(61).String(), "empty": testKey(62).String(),
	"sig1": testSignature(1).String(), "sig2": testSignature(2).String(),
	"sig9": testSignature(9).String(), "sig100": testSignature(100).String(),
	"TokenProgram": ledger.TokenProgram.String(), "Token2022Program": ledger.Token2022Program.String(),
	"handshake": strings.Join(handshake, " | "), "last": last, "next": second,
}

// recordTargets are a target for each kind of record.
var recordTargets = strings.Fields(`/api/blocks/latest /api/blocks/28 /api/transaction/{sig1} /api/transactions/recent /api/account/{whole}
	/api/account/{whole}/balance /api/account/{wallet}/tokens /api/accounts/program/{owner} /api/accounts?keys={whole}`)

// expand returns a text with its names and repeated texts written out.
func expand(t testing.TB, text string) string {
	text = goldenName.ReplaceAllStringFunc(text, func(name string) string {
		written, ok := goldenNames[strings.Trim(name, "{}")]
		if !ok {
			t.Fatalf("%s: nothing is called %s", text, name)
		}
		return written
	})
	return repeated.ReplaceAllStringFunc(text, func(all string) string {
		parts := repeated.FindStringSubmatch(all)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
}

// sceneOf returns what makes the server of a scene, by its name and the words behind it.
func sceneOf(t *testing.T, name string) func(*Config) {
	name, words, _ := strings.Cut(name, ": ")
	change, ok := scenes[name]
	if !ok {
		t.Fatalf("there is no scene %q", name)
	}
	return func(c *Config) { change(c, c.Ledger.(*fakeLedger), words) }
}

// described asks for a target and returns what golden files say of the answer. Without a method it asks with GET, and with HEAD, whose answer must be
// the same without the body.
func (h *harness) described(from, method, target string, fields ...string) string {
	h.Helper()
	target = expand(h.T, target)
	asked := h.ledger.asked.Load()
	r := h.doFrom(from, cmp.Or(method, "GET"), target, fields...)
	if r.status == 400 && h.ledger.asked.Load() != asked {
		h.Errorf("%s: the ledger was asked", target)
	}
	length, plain := len(r.body), decompress(h.T, r)
	long := strings.Contains(plain, "\n") // the metrics, which count this request too, and the document
	if method == "" {
		head := h.doFrom(from, "HEAD", target, fields...)
		same := about(head) == about(r) && (long || r.status == 304 || head.header.Get("Content-Length") == fmt.Sprint(length))
		if !same || head.body != "" {
			h.Errorf("HEAD %s: %s with %v, to GET it is %s with %d bytes", target, about(head), head.header, about(r), length)
		}
	}
	if tag := r.header.Get("ETag"); tag != "" && r.status == 200 && !r.isPage() {
		record := slotOfBalance.ReplaceAllString(plain, "}") + r.header.Get("X-Ledger-Partial")
		if cmp.Or(h.shown[tag], record) != record || cmp.Or(h.shown[record], tag) != tag {
			h.Errorf("%s has the tag %s, and shows %s; what has that shows %s, and what shows that has %s", target, tag, record, h.shown[tag], h.shown[record])
		}
		h.shown[tag], h.shown[record] = record, tag
	}
	before := h.bodies[target]
	h.bodies[target] = plain
	switch {
	case r.isPage():
		if strings.Contains(plain, "<script>") { // its own have a source
			h.Errorf("%s: the page holds a script of whoever asked", target)
		}
		r.header.Del("ETag") // of a text that changes with every version
		return about(r) + " a page, " + strings.ReplaceAll(strings.Join(ofPage.FindAllString(r.body, 4), ", "), "\n", "")
	case long:
		return about(r) + " many lines"
	case len(fields) > 0 && plain == before && plain != "":
		return about(r) + " the same"
	}
	return about(r) + " " + plain
}

var (
	slotOfBalance = regexp.MustCompile(`,"slot":\d+}$`)
	ofPage        = regexp.MustCompile(`<h1>.*</h1>|come back in [^:]*|value="[^"]*"|No section has [^.]*|Words of a section|<mark>[^<]*</mark>|<ol class="results">\n<li><a href="[^"]*"`)
)

// about returns the status of an answer, and of its headers those that are not usual.
func about(r reply) string {
	usual := map[string]string{"Content-Type": "application/json", "Cache-Control": "no-cache", "X-Ledger-Slot": "30", "X-Ledger-Lag-Ms": "1500",
		"Content-Security-Policy": "default-src 'none'", "X-RateLimit-Limit": "0", "X-RateLimit-Remaining": "2147483647", "X-RateLimit-Reset": "61s"}
	reset, _ := strconv.ParseInt(r.header.Get("X-RateLimit-Reset"), 10, 64)
	r.header = maps.Clone(r.header)
	r.header.Set("X-RateLimit-Reset", fmt.Sprint(reset-now.Unix(), "s"))
	text := fmt.Sprint(r.status)
	if r.closes {
		text += " closes"
	}
	for _, name := range []string{"Allow", "Access-Control-Allow-Headers", "Access-Control-Max-Age", "Content-Type", "Content-Encoding", "Cache-Control", "ETag",
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Ledger-Slot", "X-Ledger-Lag-Ms", "X-Ledger-Partial", "Retry-After", "Sec-WebSocket-Version",
		"WWW-Authenticate", "Content-Security-Policy"} {
		if value := r.header.Get(name); value != usual[name] {
			text += fmt.Sprintf(" %s: %s;", name, value)
		}
	}
	return text
}

// grouped returns what golden files say of some questions: those that are answered alike together.
func (h *harness) grouped(all []string, answer func(of string) string) (text string) {
	alike := make(map[string]string) // by the answer
	for _, of := range all {
		alike[answer(of)] += of + " "
	}
	for _, said := range slices.Sorted(maps.Keys(alike)) {
		if len(alike) == 1 {
			alike[said] = "all "
		}
		text += alike[said] + said + "\n"
	}
	return text
}

// figures returns the metrics with a text in them that are not 0.
func (h *harness) figures(part string) (text string) {
	var all bytes.Buffer
	h.server.config.WriteMetrics(&all)
	for line := range strings.Lines(all.String()) {
		if strings.Contains(line, part) && !strings.HasSuffix(line, " 0\n") {
			text += "  " + line
		}
	}
	return text
}
