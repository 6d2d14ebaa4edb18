package httpd

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/console"
)

// resources are all that a node serves outside the interface.
var resources = console.New(openAPIDocument, 0).Resources()

// TestPagesAreServed asks for every resource in each way.
func TestPagesAreServed(t *testing.T) {
	h := serve(t, nil)
	types := map[string]string{"": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/svg+xml", ".json": "application/json", ".ts": "text/plain; charset=utf-8", ".txt": "text/plain; charset=utf-8"}
	appBytes := 0
	for _, resource := range resources {
		at := resource.Path
		first := h.get(at)
		tag := first.header.Get("ETag")
		for name, want := range map[string]string{"Content-Type": types[path.Ext(at)], "Cache-Control": "no-cache", "X-Ledger-Slot": "30",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"} {
			ledgertest.Equal(t, first.header.Get(name), want, "%s: %s", at, name)
		}
		if first.status != 200 || tag == "" || resource.Body != nil && first.body != string(resource.Body()) {
			t.Errorf("%s: status %d, ETag %q, %d bytes", at, first.status, tag, len(first.body))
		}
		if r := h.get(at, "If-None-Match: "+tag); r.status != 304 || r.body != "" || r.header.Get("ETag") != tag {
			t.Errorf("%s with its tag: %d, %d bytes, ETag %q", at, r.status, len(r.body), r.header.Get("ETag"))
		}
		if r := h.doFrom("", "HEAD", at); r.status != 200 || r.body != "" || r.header.Get("ETag") != tag || r.header.Get("Content-Length") != fmt.Sprint(len(first.body)) {
			t.Errorf("HEAD %s: %d with %v, GET has %d bytes", at, r.status, r.header, len(first.body))
		}
		for _, coding := range []string{"gzip", "zstd"} {
			r := h.get(at, "Accept-Encoding: br, "+coding)
			if decompress(t, r) != first.body || (r.header.Get("Content-Encoding") == coding) != (len(first.body) > minCompressBytes) || r.header.Get("ETag") != tag {
				t.Errorf("%s as %s: Content-Encoding %q, ETag %q, another body, or one of %d bytes that was not compressed", at, coding, r.header.Get("Content-Encoding"), r.header.Get("ETag"), len(first.body))
			}
		}
		if r := h.get(strings.TrimSuffix(at, "/") + "/"); r.status != 200 || r.body != first.body {
			t.Errorf("%s with a slash at its end: %d", at, r.status)
		}
		if r := h.doFrom("", "POST", at); r.status != 405 || r.header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("POST %s: %d, Allow: %s", at, r.status, r.header.Get("Allow"))
		}
		if at == "/" || strings.HasPrefix(at, "/console/") {
			appBytes += len(first.body)
		}
	}
	if appBytes > 175<<10 {
		t.Errorf("the console has %d bytes, want at most 175 KiB", appBytes)
	}
}

// TestWhoAsksAgainAndAgainCostsNoPageEach: what a refused browser is shown, and its codings, are made once for each second of waiting.
func TestWhoAsksAgainAndAgainCostsNoPageEach(t *testing.T) {
	s := New(Config{Ledger: newFakeLedger()})
	first := s.limitedPage(time.Minute)
	if s.limitedPage(time.Minute) != first || s.limitedPage(time.Second) == first {
		t.Error("a page was made anew for the same wait, or shown for another one")
	}
}

// TestEveryLinkOfEveryPageLeadsSomewhere walks all pages. They load nothing from elsewhere, and have no script or style inside.
func TestEveryLinkOfEveryPageLeadsSomewhere(t *testing.T) {
	h := serve(t, nil)
	ids, links, titles := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	targets := []string{"/docs/search?q=seq"}
	for _, resource := range resources {
		if strings.HasPrefix(resource.Type, "text/html") {
			targets = append(targets, resource.Path)
		}
	}
	for _, at := range targets {
		root, err := html.Parse(strings.NewReader(h.get(at).body))
		must(t, err)
		base, err := url.Parse(at)
		must(t, err)
		for node := range root.Descendants() {
			if node.Type != html.ElementNode {
				continue
			}
			inline := node.Data == "style" || node.Data == "script"
			for _, a := range node.Attr {
				switch {
				case a.Key == "id":
					inline = inline || ids[at+"#"+a.Val]
					ids[at+"#"+a.Val] = true
				case a.Key == "href" || a.Key == "src" || a.Key == "action":
					u, err := base.Parse(a.Val)
					must(t, err)
					links[u.String()] = at != "/" || u.Path != "/" // the console finds its ways by fragments
					inline = inline && a.Key != "src"
				case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
					inline = true
				}
			}
			if inline {
				t.Errorf("%s: <%s %v> is script or style, or its id is there twice", at, node.Data, node.Attr)
			}
			if node.Data == "title" {
				titles[node.FirstChild.Data] = true
			}
		}
	}
	ledgertest.Equal(t, len(titles), len(targets), "titles of all pages, which are %v", titles)
	for link, checked := range links {
		target, fragment, _ := strings.Cut(link, "#")
		if r := h.get(target); !strings.HasPrefix(link, "/") || r.status != 200 || checked && fragment != "" && !ids[link] {
			t.Errorf("a page leads to %s: status %d", link, r.status)
		}
	}
	for _, resource := range resources {
		if resource.Kind == console.Manual && !links[resource.Path] {
			t.Errorf("no page leads to %s", resource.Path)
		}
	}
}

// A page of the manual names its chapter's other pages, its own sections, and the pages before and after it; long names in it may be broken after
// a sign that parts their words.
func TestPagesOfTheManualLeadOn(t *testing.T) {
	h := serve(t, nil)
	for target, wants := range map[string][]string{
		"/docs/architecture": {"<p><svg xmlns", ">engine/source</text>"}, // a drawing, in which nothing is broken
		"/docs":              {"<h2>Use</h2>\n<ul>\n<li><a href=\"/docs/examples\">", `<a rel="next" href="/docs/start">First steps</a>`, `aria-current="page">The manual of ledgerd<`},
		"/docs/api":          {`<a rel="prev" href="/docs/examples">`, `<a rel="next" href="/docs/streaming">`},
		"/docs/streaming":    {"<nav class=\"contents\" aria-label=\"On this page\">\n<ul>\n<li><a href=\"/docs/streaming#the-simplest-client\">The simplest client</a></li>"},
		"/docs/search?q=how": {"<mark>how</mark>"}, // nothing else is asked for
		"/docs/metrics":      {`<li class="deep"><a href="/docs/metrics#ledgerdnowriter">`, "<code>ledgerd_<wbr>blocks_<wbr>total</code>"},
	} {
		for _, want := range wants {
			ledgertest.Contains(t, h.get(target).body, want, "%s", target)
		}
	}
	for _, target := range []string{"/docs/search?q=seq", "/docs/nowhere"} {
		if body := h.ask("", "GET", target, "Accept: text/html").body; strings.Contains(body, "rel=") && strings.Contains(body, `class="turn"`) || strings.Contains(body, `class="contents"`) {
			t.Errorf("%s has neighbours or contents", target)
		}
	}
}

// TestReferenceShowsTheDocument finds each operation, parameter, status and record of the document on its page.
func TestReferenceShowsTheDocument(t *testing.T) {
	page := strings.ReplaceAll(serve(t, nil).get("/docs/api").body, "<wbr>", "") // a long name may be broken
	for at, item := range document.Paths.Map() {
		_, section, _ := strings.Cut(page, fmt.Sprintf(`<section aria-labelledby="%s">`, item.Get.OperationID))
		section, _, _ = strings.Cut(section, "</section>")
		want := []string{"GET /api" + at + "</a>", html.EscapeString(item.Get.Summary)}
		for _, p := range item.Get.Parameters {
			want = append(want, "<code>"+p.Value.Name+"</code>", html.EscapeString(p.Value.Description))
			if at != "/ws/accounts" && p.Value.In != "header" {
				want = append(want, fmt.Sprintf(`name="%s"`, p.Value.Name))
			}
		}
		for status, answer := range item.Get.Responses.Map() {
			want = append(want, fmt.Sprintf(`<th scope="row">%s</th>`, status), html.EscapeString(*answer.Value.Description))
		}
		for _, text := range want {
			ledgertest.Contains(t, section, text, "%s: the section", at)
		}
	}
	for name := range document.Components.Schemas {
		if !strings.Contains(page, fmt.Sprintf(`id="record-%s"`, name)) {
			t.Errorf("the page lacks the record %s", name)
		}
	}
	if !strings.Contains(page, "<td>string or null</td><td>null where only a balance was shown. Values: initialized, frozen.</td>") {
		t.Error("the page does not say what the state of a token account is")
	}
	curls := regexp.MustCompile(`curl &#39;http://127.0.0.1:8080/api(/[\w.]+)+(\?keys=\w+)?&#39;`).FindAllString(page, -1)
	ledgertest.Equal(t, len(curls), document.Paths.Len()-1, "lines, one for each path but that of the WebSocket, with an example for each parameter, of %q", curls)
}

// The console's page says where JSON-RPC is spoken, and nothing where it is not.
func TestTheConsoleKnowsTheDoorOfJSONRPC(t *testing.T) {
	for port, want := range map[int]string{0: `<html lang="en">`, 8899: `<html data-rpc="8899" lang="en">`} {
		h := serve(t, func(c *Config) { c.RPCPort = port })
		if page := h.get("/").body; !strings.Contains(page, want) {
			t.Errorf("port %d: the page begins with %.60s", port, page)
		}
	}
}
