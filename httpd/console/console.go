// Package console holds what a node serves to people: the console's page and its files, and the
// client library for JavaScript.
//
// A resource is one of these: a path outside the interface, a type and a body, which is the same for
// everybody. The package knows nothing of HTTP beyond that; httpd serves its resources.
package console

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed app client
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
	Body func() []byte // shared, not to be changed
}

// Resources returns all there are.
func Resources() []Resource {
	var all []Resource
	for prefix, dir := range map[string]string{"/console/": "app", "/client/": "client"} {
		for _, name := range filesBelow(dir) {
			if name != "index.html" {
				all = append(all, file(prefix+name, dir+"/"+name, File))
			}
		}
	}
	return append(all, file("/", "app/index.html", Page), file("/favicon.svg", "app/favicon.svg", File),
		file("/favicon.ico", "app/favicon.svg", File)) // browsers ask for it beside answers of the interface
}

// filesBelow returns the names of all embedded files in a folder, with its subfolders' before them.
func filesBelow(dir string) (names []string) {
	_ = fs.WalkDir(files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, strings.TrimPrefix(name, dir+"/"))
		}
		return err
	})
	return names
}

// file returns the resource that an embedded file is.
func file(at, name string, kind Kind) Resource {
	body, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it was there when the program was built, or a name above is wrong
	}
	return Resource{Path: at, Kind: kind, Type: typeOf(name), Body: func() []byte { return body }}
}

// typeOf returns the media type of a file by its name. Types for TypeScript and licences are text,
// which browsers show.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json":
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
