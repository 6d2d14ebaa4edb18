package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
)

// reference is what is shown of an OpenAPI document. The exported fields and methods, here and below,
// are the template's. References in it are by name, and of one level.
type reference struct {
	Info       struct{ Version, Description string }
	Servers    []struct{ URL string }
	Tags       []*tag
	Paths      map[string]map[string]*operation // by path and method
	Components struct {
		Schemas    map[string]*schema
		Parameters map[string]*parameter
		Responses  map[string]*answer
		Headers    map[string]*parameter
	}
}

// tag is a group of operations.
type tag struct {
	Name, Description string
	Operations        []*operation `json:"-"`
}

// operation is one thing to ask.
type operation struct {
	ID                   string `json:"operationId"`
	Summary, Description string
	Tags                 []string
	Parameters           []*parameter
	Responses            map[string]*answer
	Method, Path         string `json:"-"`
}

// parameter is a parameter of an operation, or a header field of answers.
type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                *schema
	Example               any
}

// answer is what an operation answers with one status.
type answer struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]struct {
		Schema  *schema
		Example json.RawMessage
	}
}

// schema is a type.
type schema struct {
	Ref              string `json:"$ref"`
	Type             string
	Nullable         bool
	Description      string
	Properties       map[string]*schema
	Required         []string
	Items            *schema
	AllOf            []*schema
	Enum             []any
	Default          any
	Minimum, Maximum any
}

// readReference reads a document, puts what it refers to in its place, and its operations in order.
func readReference(text []byte) *reference {
	r := new(reference)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(r); err != nil {
		panic(fmt.Sprintf("the OpenAPI document: %v", err)) // it is a part of the program
	}
	for _, at := range slices.Sorted(maps.Keys(r.Paths)) {
		for method, o := range r.Paths[at] {
			o.Method, o.Path = strings.ToUpper(method), r.Servers[0].URL+at
			for status, a := range o.Responses {
				if a.Ref != "" {
					o.Responses[status] = r.Components.Responses[path.Base(a.Ref)]
				}
			}
			for i, p := range o.Parameters {
				if p.Ref != "" {
					p = r.Components.Parameters[path.Base(p.Ref)]
				}
				copied := *p
				copied.Schema = r.choices(p.Schema)
				o.Parameters[i] = &copied
			}
			o.teachExamples()
			for _, t := range r.Tags {
				if slices.Contains(o.Tags, t.Name) {
					t.Operations = append(t.Operations, o)
				}
			}
		}
	}
	return r
}

// choices returns a type with the values that the one it is has.
func (r *reference) choices(s *schema) *schema {
	if len(s.AllOf) == 0 {
		return s
	}
	copied := *s
	copied.Enum = r.Components.Schemas[path.Base(s.AllOf[0].Ref)].Enum
	return &copied
}

// teachExamples gives parameters of the path the values that the example of an answer has for them.
func (o *operation) teachExamples() {
	if o.Responses["200"] == nil {
		return
	}
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(o.Responses["200"].Content["application/json"].Example))
	decoder.UseNumber()
	_ = decoder.Decode(&fields) // not every answer is an object
	for _, p := range o.Parameters {
		if p.In == "path" && p.Example == nil {
			p.Example = fields[p.Name]
		}
	}
}

// Socket reports whether the operation opens a WebSocket.
func (o *operation) Socket() bool { return o.Responses["101"] != nil }

// Curl returns the line that asks for the example.
func (o *operation) Curl() string {
	target, query := o.Path, url.Values{}
	for _, p := range o.Parameters {
		switch value := p.Value(); {
		case p.In == "path":
			target = strings.ReplaceAll(target, "{"+p.Name+"}", value)
		case p.In == "query" && p.Required:
			query.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return "curl 'http://127.0.0.1:8080" + target + "'"
}

// Value returns the example as it is sent.
func (p *parameter) Value() string {
	list, ok := p.Example.([]any)
	switch {
	case p.Example == nil:
		return ""
	case !ok:
		return fmt.Sprint(p.Example)
	}
	parts := make([]string, len(list))
	for i, element := range list {
		parts[i] = fmt.Sprint(element)
	}
	return strings.Join(parts, ",")
}

// Example returns the body of an answer that is an example, indented; "" for none.
func (a *answer) Example() (text string) {
	for _, content := range a.Content {
		if json.Unmarshal(content.Example, &text) == nil {
			return text // of another type than JSON
		}
		var out bytes.Buffer
		_ = json.Indent(&out, content.Example, "", "  ") // where there is none, nothing
		return out.String()
	}
	return ""
}

// Shape returns the type of the body of an answer.
func (a *answer) Shape() (s shape) {
	for _, content := range a.Content {
		s = content.Schema.Shape()
	}
	return s
}

// shape says what a type is: words before the name of a record, and that name.
type shape struct{ Before, Record string }

// Shape returns what a type is.
func (s *schema) Shape() shape {
	switch {
	case s.Ref != "":
		return shape{Record: path.Base(s.Ref)}
	case len(s.AllOf) > 0:
		return s.AllOf[0].Shape()
	case s.Items != nil:
		of := s.Items.Shape()
		of.Before = "array of " + of.Before
		return of
	case s.Nullable:
		return shape{Before: s.Type + " or null"}
	}
	return shape{Before: s.Type}
}

// Values says which values a type has, and which one is usual.
func (s *schema) Values() string {
	var parts []string
	for _, value := range s.Enum {
		if value != nil { // the type says that it may be null
			parts = append(parts, fmt.Sprint(value))
		}
	}
	for _, part := range []struct {
		word  string
		value any
	}{{"from", s.Minimum}, {"to", s.Maximum}, {"default", s.Default}} {
		if part.value != nil {
			parts = append(parts, fmt.Sprint(part.word, " ", part.value))
		}
	}
	return strings.Join(parts, ", ")
}

// field is one of a record.
type field struct {
	Name string
	*schema
}

// Fields returns the fields of a record, those that are always there first. Records inside it that
// have no name are shown as fields with a dot.
func (s *schema) Fields() (all []field) {
	names := slices.Clone(s.Required)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		f := s.Properties[name]
		all = append(all, field{name, f})
		for _, inner := range f.Fields() {
			all = append(all, field{name + "." + inner.Name, inner.schema})
		}
	}
	return all
}

// sections returns what a search may find.
func (r *reference) sections() (all []section) {
	for _, t := range r.Tags {
		for _, o := range t.Operations {
			text := o.Summary + ". " + o.Description
			for _, p := range o.Parameters {
				text += " " + p.Name + ": " + p.Description
			}
			all = append(all, section{Page: "API reference", Title: o.Method + " " + o.Path, Href: referencePath + "#" + o.ID, Text: text})
		}
	}
	return all
}
