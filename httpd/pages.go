package httpd

import (
	"bytes"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/httpd/console"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/ratelimit"
)

// page is a resource outside the interface, for people. Its tag and its body in each coding are
// made at first use and kept: a request that is not counted costs little more than the bytes it sends.
type page struct {
	console.Resource
	tag   func() []byte
	coded [encode.Codings]func() []byte
}

// pages are the resources by their paths.
type pages map[string]*page

func newPages(site *console.Site) pages {
	all := make(pages)
	for _, resource := range site.Resources() {
		all[resource.Path] = newPage(resource)
	}
	return all
}

func newPage(resource console.Resource) *page {
	p := &page{Resource: resource, tag: sync.OnceValue(func() []byte { return encode.AppendTag(nil, resource.Body(), 0) })}
	for c := range p.coded {
		p.coded[c] = sync.OnceValue(func() []byte { return encode.AppendCompressed(nil, resource.Body(), encode.Coding(c)) })
	}
	p.coded[encode.Identity] = resource.Body
	return p
}

// files returns how many resources are files of pages.
func (all pages) files() (n int) {
	for _, p := range all {
		if p.Kind == console.File {
			n++
		}
	}
	return n
}

// show is called by the router: the answer is a resource.
func (r *request) show(row *route, p *page) {
	r.route = row
	if err := checkQuery(r.ctx.URI().QueryString()); err != nil {
		r.fail(err)
		return
	}
	r.page, r.contentType = true, []byte(p.Type)
	if p.Body == nil {
		r.body = append(r.body, r.server.site.Search(string(r.ctx.QueryArgs().Peek("q")))...)
		r.tag = encode.AppendTag(r.tag, r.body, 0)
		return
	}
	r.fixed, r.tag = p, append(r.tag, p.tag()...)
}

// showInstead replaces an error record by a page if the path is outside the interface and the client is a browser, which accepts
// HTML.
func (r *request) showInstead(page func() *page) {
	path, accept := r.ctx.Request.Header.RequestURI(), r.ctx.Request.Header.Peek(fasthttp.HeaderAccept)
	if !bytes.HasPrefix(path, []byte(basePath)) && bytes.Contains(accept, []byte("text/html")) {
		p := page()
		r.page, r.contentType, r.fixed = true, []byte(p.Type), p
	}
}

// refusal is the page for people who have used up their requests and get others after a time.
type refusal struct {
	*page
	after time.Duration
}

// limitedPage returns the page of a refusal. The last one is kept: a client that retries again and again costs one page with its
// codings a second.
func (s *Server) limitedPage(after time.Duration) *page {
	last := s.refusal.Load()
	if last == nil || last.after != after {
		last = &refusal{newPage(s.site.Limited(after)), after}
		s.refusal.Store(last)
	}
	return last.page
}

// asksForFile reports whether a request without fault is one for a file of a page, by its plain path.
func (r *request) asksForFile() bool {
	header := &r.ctx.Request.Header
	path, _, _ := bytes.Cut(header.RequestURI(), []byte{'?'})
	if bytes.HasPrefix(path, []byte(basePath)) { // which spares most requests the map
		return false
	}
	p := r.server.pages[string(path)]
	return p != nil && p.Kind == console.File && (header.IsGet() || header.IsHead())
}

// takeFile counts a request for a file. A page and its files count once, so that files take nothing
// of what the client has left, and are answered when nothing is. They have a limit of their own, all
// together: as if each page that the client may load loaded all of them.
func (x *Exchange) takeFile() ratelimit.Allowance {
	if a := x.server.fileLimiter.Take(x.client.Key, 1, x.now); !a.Allowed {
		return a
	}
	return x.server.limiter.Take(x.client.Key, 0, x.now)
}
