package console

import (
	"bytes"
	"html/template"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// ManualText returns a page of the manual, which is in Markdown, or a drawing of it.
func ManualText(name string) string {
	source, err := files.ReadFile("manual/" + name)
	if err != nil {
		panic(err) // a page links to it, or it was embedded
	}
	return string(source)
}

// manualPage is one page of the manual as HTML.
type manualPage struct {
	Path, Title string
	HTML        template.HTML // what goldmark makes of our own text below the title; raw HTML in it is left out
	sections    []section     // the first is what comes before any heading
}

// indexPage is the one that names all others: a chapter is a heading of it and the links below.
const indexPage = "index.md"

// chapter is a part of the manual, with its pages in the order in which they are read.
type chapter struct {
	Title string
	Pages []link
}

// pathOf returns where a page of the manual is served.
func pathOf(name string) string {
	if name == indexPage {
		return docsPath
	}
	return docsPath + "/" + strings.TrimSuffix(name, ".md")
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// navigation returns the chapters of the page that names all others, and before them one without a name that is that page alone.
func navigation() []chapter {
	index := readPage(indexPage)
	chapters := []chapter{{Pages: []link{{index.Path, index.Title}}}}
	for _, s := range index.sections[1:] {
		chapters = append(chapters, chapter{s.Title, s.links})
	}
	return chapters
}

// readPage makes HTML of a page, which begins with its title. Its headings lead to themselves, and its links to what is served here.
func readPage(name string) *manualPage {
	source := []byte(ManualText(name))
	doc := markdown.Parser().Parse(text.NewReader(source))
	page := &manualPage{Path: pathOf(name), Title: plainText(doc.FirstChild(), source)}
	for node := doc.FirstChild(); node != nil; node = node.NextSibling() {
		heading, ok := node.(*ast.Heading)
		if ok {
			page.sections = append(page.sections, section{Page: page.Title, Title: plainText(heading, source), Href: page.Path, Level: heading.Level})
		}
		in := &page.sections[len(page.sections)-1]
		in.links = append(in.links, serveLinks(node, source)...)
		switch id, _ := node.AttributeString("id"); {
		case !ok:
			in.Text += plainText(node, source) + " "
		case heading.Level > 1:
			in.Href += "#" + string(id.([]byte))
			linkToItself(heading, id.([]byte))
		}
	}
	doc.RemoveChild(doc, doc.FirstChild()) // the layout has the title
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, doc); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
	page.HTML = template.HTML(withoutEmptyHeads.Replace(out.String()))
	return page
}

// withoutEmptyHeads drops what Markdown needs above a table that has no head.
var withoutEmptyHeads = strings.NewReplacer("<thead>\n<tr>\n<th></th>\n<th></th>\n</tr>\n</thead>\n", "", "<th></th>", "<td></td>")

// link is one that is served here.
type link struct{ Path, Text string }

// serveLinks changes the links and pictures below a node from files of the repository to what is served of them. A
// link to a file that is not served becomes its text.
func serveLinks(below ast.Node, source []byte) (served []link) {
	var all []*ast.Link
	_ = ast.Walk(below, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch l := n.(type) {
		case *ast.Link:
			if entering {
				all = append(all, l)
			}
		case *ast.Image:
			if entering {
				l.Destination = append([]byte(docsPath+"/"), l.Destination...)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, l := range all {
		file, fragment, in := strings.Cut(string(l.Destination), "#")
		to := servedPath(file)
		switch {
		case file == "": // to a heading of the same page
		case to == "":
			for child := l.FirstChild(); child != nil; child = l.FirstChild() {
				l.Parent().InsertBefore(l.Parent(), l, child)
			}
			l.Parent().RemoveChild(l.Parent(), l)
		default:
			served = append(served, link{to, plainText(l, source)})
			if in {
				to += "#" + fragment
			}
			l.Destination = []byte(to)
		}
	}
	return served
}

// servedPath returns where a file is served that a page of the manual links to, "" if it is not.
func servedPath(file string) string {
	switch name := path.Join("manual", file); {
	case path.Dir(name) == "manual" && path.Ext(name) == ".md":
		return pathOf(path.Base(name))
	case path.Dir(name) == "client":
		return "/" + name
	case name == "../openapi.json": // which lies beside this package
		return referencePath
	case name == "asyncapi.json":
		return asyncAPIPath
	}
	return ""
}

// linkToItself makes the text of a heading a link to it.
func linkToItself(heading *ast.Heading, id []byte) {
	l := ast.NewLink()
	l.Destination = append([]byte("#"), id...)
	for child := heading.FirstChild(); child != nil; child = heading.FirstChild() {
		l.AppendChild(l, child)
	}
	heading.AppendChild(heading, l)
}

// plainText returns the words below a node.
func plainText(below ast.Node, source []byte) string {
	var words strings.Builder
	_ = ast.Walk(below, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case !entering:
			if n.Type() == ast.TypeBlock {
				words.WriteByte(' ')
			}
		case n.Kind() == ast.KindText:
			t := n.(*ast.Text)
			words.Write(t.Segment.Value(source))
			if t.SoftLineBreak() {
				words.WriteByte(' ')
			}
		case n.Kind() == ast.KindCodeBlock || n.Kind() == ast.KindFencedCodeBlock:
			words.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(words.String()), " ")
}
