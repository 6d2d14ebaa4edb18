// Package console holds what a node serves to people: the console's page and its files, the manual
// and the reference of the interface as HTML, and the client library for JavaScript.
//
// A resource is one of these: a path outside the interface, a type and a body, which is the same for
// everybody. A section is what a search finds. The package knows nothing of HTTP beyond that; httpd
// serves its resources.
//
// The manual is read where it lies, in files of Markdown, and becomes HTML when a page of it is first
// asked for. All of it is in the program: nothing is read from a disk or another host.
package console

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed app client docs manual asyncapi.json
var files embed.FS

// Kind is what a resource is to its reader.
type Kind uint8

const (
	Page   Kind = iota // of the console
	Manual             // a page or document of the manual
	File               // is loaded by a page, or read by programs
	Kinds  = 3
)

// Resource is one thing to serve.
type Resource struct {
	Path string
	Kind Kind
	Type string        // its media type
	Body func() []byte // shared, not to be changed; nil: what Search returns
}

// Where the pages of the manual are.
const (
	docsPath      = "/docs"
	referencePath = docsPath + "/api"
	asyncAPIPath  = docsPath + "/asyncapi.json"
	searchPath    = docsPath + "/search"
)

const typeHTML = "text/html; charset=utf-8"

// Site is all there is to serve.
type Site struct {
	openAPI []byte
	rpcPort int
	docs    func() *docs
	limited Resource // see Limited
}

// docs are the pages of the manual by their paths, and what a search finds.
type docs struct {
	nav      []chapter
	pages    map[string][]byte
	sections []section
}

// New returns the site of an interface that an OpenAPI document describes, and of JSON-RPC on a port, if that is not 0.
func New(openAPI []byte, rpcPort int) *Site {
	s := &Site{openAPI: openAPI, rpcPort: rpcPort}
	s.docs = sync.OnceValue(s.makeDocs)
	s.limited = s.notice("Too many requests", `This address has used up its requests for now. They come back in <strong>`+waitMark+`</strong>: then load the page again. <a href="/docs/limits">Limits</a> says how many there are.`)
	return s
}

// Resources returns everything that has a path.
func (s *Site) Resources() []Resource {
	all := []Resource{
		s.page(), file("/favicon.svg", "app/favicon.svg", File),
		file("/favicon.ico", "app/favicon.svg", File), // browsers ask for it beside answers of the interface
		file("/docs/docs.css", "docs/docs.css", File), file("/docs/try.js", "docs/try.js", File), file("/docs/copy.js", "docs/copy.js", File),
		file(asyncAPIPath, "asyncapi.json", Manual), s.doc(referencePath), {Path: searchPath, Kind: Manual, Type: typeHTML},
	}
	for _, name := range filesIn("manual") {
		if isPicture(name) {
			all = append(all, file(docsPath+"/"+name, "manual/"+name, File))
		} else {
			all = append(all, s.doc(pathOf(name)))
		}
	}
	for _, name := range filesIn("client") {
		all = append(all, file("/client/"+name, "client/"+name, File))
	}
	for _, name := range filesIn("app") {
		if name != "index.html" {
			all = append(all, file("/console/"+name, "app/"+name, File))
		}
	}
	return all
}

// page returns the console's page, which says where JSON-RPC is spoken.
func (s *Site) page() Resource {
	r := file("/", "app/index.html", Page)
	if s.rpcPort != 0 {
		body := bytes.Replace(r.Body(), []byte("<html "), fmt.Appendf(nil, `<html data-rpc="%d" `, s.rpcPort), 1)
		r.Body = func() []byte { return body }
	}
	return r
}

// filesIn returns the names of the embedded files in a folder and below it.
func filesIn(dir string) (names []string) {
	_ = fs.WalkDir(files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(name, dir+"/"))
		}
		return err
	})
	return names
}

// isPicture reports whether a file of the manual is a picture; all others are pages.
func isPicture(name string) bool { return path.Ext(name) != ".md" }

// file returns the resource that an embedded file is.
func file(at, name string, kind Kind) Resource {
	body, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the names are those of files that are embedded
	}
	return Resource{Path: at, Kind: kind, Type: cmp.Or(types[path.Ext(name)], "text/plain; charset=utf-8"), Body: func() []byte { return body }}
}

// types are the media types of files by the ends of their names. All others, types of TypeScript and licences, are text, which browsers show.
var types = map[string]string{
	".html": typeHTML, ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json",
}

// doc returns the resource that a page of the manual is.
func (s *Site) doc(at string) Resource {
	return Resource{Path: at, Kind: Manual, Type: typeHTML, Body: func() []byte { return s.docs().pages[at] }}
}

// view is what the layout of a page shows: a reference, an article, or else the results of a search.
type view struct {
	Title, Path string
	Nav         []chapter
	Reference   *reference
	Article     template.HTML
	Contents    []section // of the article
	Query       string
	Results     []result
}

// Turn returns the pages before and after this one; of a page that is no part of the manual, none.
func (v view) Turn() (turn struct{ Previous, Next *link }) {
	var pages []link
	for _, c := range v.Nav {
		pages = append(pages, c.Pages...)
	}
	at := slices.IndexFunc(pages, func(page link) bool { return page.Path == v.Path })
	if at > 0 {
		turn.Previous = &pages[at-1]
	}
	if at >= 0 && at+1 < len(pages) {
		turn.Next = &pages[at+1]
	}
	return turn
}

var layout = sync.OnceValue(func() *template.Template {
	return template.Must(template.ParseFS(files, "docs/layout.html", "docs/reference.html"))
})

// render returns the page that shows a view.
func (v view) render() []byte {
	var out bytes.Buffer
	if err := layout().Execute(&out, v); err != nil {
		panic(err) // the template and the view do not fit
	}
	return out.Bytes()
}

func (s *Site) makeDocs() *docs {
	api := readReference(s.openAPI)
	d := &docs{nav: navigation(), pages: make(map[string][]byte), sections: api.sections()}
	for _, name := range filesIn("manual") {
		if isPicture(name) {
			continue
		}
		page := readPage(name)
		d.pages[page.Path] = withDrawings(withBreaks(view{Title: page.Title, Path: page.Path, Nav: d.nav, Article: page.HTML, Contents: page.sections[1:]}.render()))
		if name != indexPage {
			d.sections = append(d.sections, page.sections...)
		}
	}
	d.pages[referencePath] = withBreaks(view{Title: "API reference", Path: referencePath, Nav: d.nav, Reference: api}.render())
	return d
}

var (
	lineOfText = regexp.MustCompile(`>[^<\n]+<`) // a cell, or code in a line; a block of code ends with its line
	longName   = regexp.MustCompile(`[^\s<>]{18,}`)
	wordEnd    = regexp.MustCompile(`([\w;\]}][_./:=,]+)([^_./:=,])|([a-z0-9])([A-Z])`)
)

// withBreaks lets a line of a page end inside a long name, where one of its words does, so that no cell of a table needs to break a word.
func withBreaks(page []byte) []byte {
	return lineOfText.ReplaceAllFunc(page, func(line []byte) []byte {
		return longName.ReplaceAllFunc(line, func(name []byte) []byte { return wordEnd.ReplaceAll(name, []byte("$1$3<wbr>$2$4")) })
	})
}

var drawing = regexp.MustCompile(`<img src="/docs/([a-z-]+\.svg)"[^>]*>`)

// withDrawings puts drawings into a page, so that they have its colours, also where a reader has chosen these.
func withDrawings(page []byte) []byte {
	return drawing.ReplaceAllFunc(page, func(image []byte) []byte {
		return []byte(ManualText(string(drawing.FindSubmatch(image)[1])))
	})
}

// Search returns the page of the sections that have all words of a query.
func (s *Site) Search(query string) []byte {
	d := s.docs()
	query = strings.ToValidUTF8(query[:min(len(query), maxQueryBytes)], "")
	title := "Search"
	if query != "" {
		title = query + " · Search"
	}
	return view{Title: title, Nav: d.nav, Query: query, Results: find(d.sections, query)}.render()
}

// Missing returns the page for people who follow a link to nowhere. It has no path of its own.
func (s *Site) Missing() Resource {
	return s.notice("There is no such page", `The <a href="/">console</a> shows the node, the <a href="/docs">manual</a> has a search above, and <a href="/docs/api">the reference</a> has all paths of the interface.`)
}

// Limited returns the page for people who have used up their requests and get others after a time. It has no path of its own.
func (s *Site) Limited(after time.Duration) Resource {
	wait := fmt.Sprintf("%d s", after/time.Second)
	if after >= time.Minute {
		wait = fmt.Sprintf("%d m %d s", after/time.Minute, after%time.Minute/time.Second)
	}
	r, body := s.limited, bytes.Replace(s.limited.Body(), []byte(waitMark), []byte(wait), 1)
	r.Body = func() []byte { return body }
	return r
}

// waitMark stands for how long to wait in the page that Limited returns: who is refused is to cost less than to render one.
const waitMark = "{wait}"

// notice returns a page with a title and a sentence or two.
func (s *Site) notice(title string, text template.HTML) Resource {
	return Resource{Kind: Page, Type: typeHTML, Body: sync.OnceValue(func() []byte {
		return view{Title: title, Nav: s.docs().nav, Article: "<p>" + text + "</p>"}.render()
	})}
}
