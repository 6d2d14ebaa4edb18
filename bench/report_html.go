package bench

import (
	_ "embed" // the page
	"html/template"
	"io"
)

//go:embed report_html.tmpl
var pageSource string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"plots":   func(r *Result) []template.HTML { return drawn(r) },
	"lines":   func(r *Result) []pageLine { return r.pageLines() },
	"number":  func(v float64) string { return numbers(v)[0] },
	"verdict": func(g Goal) bool { return g.Met() },
}).Parse(pageSource))

// WriteHTML writes the report as one page that needs nothing else: tables, plots, and no
// scripts.
func (r *Report) WriteHTML(w io.Writer) error { return page.Execute(w, r) }

// drawn returns the plots of a result, which escape by themselves what they show.
func drawn(r *Result) (all []template.HTML) {
	for _, p := range r.plots() {
		all = append(all, template.HTML(p.svg))
	}
	return all
}

// pageLine is a figure in the table.
type pageLine struct {
	Subject, Name, Unit    string // the subject stands in the first line of a row alone
	Median, Least, Highest string
}

func (r *Result) pageLines() (lines []pageLine) {
	for _, row := range r.Rows {
		subject := row.Subject
		for _, f := range row.Figures {
			least, greatest := f.Spread()
			n := numbers(f.Median(), least, greatest)
			lines = append(lines, pageLine{subject, f.Name, f.Unit, n[0], n[1], n[2]})
			subject = ""
		}
	}
	return lines
}
