package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Results are the newest run of every scenario, kept in a folder: for each scenario NAME.json, which
// is a report of it alone, and its plots. A page in Markdown is made from them, so a run of one
// scenario renews its part and leaves the others.
type Results struct {
	page  string
	parts []*Report // of one result each
}

// OpenResults returns the results whose page has a path. The folder is beside it and has its name, in
// lower case and without the ending: results/ beside RESULTS.md.
func OpenResults(page string) (*Results, error) {
	r := &Results{page: page}
	files, err := filepath.Glob(filepath.Join(r.folder(), "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		part := new(Report)
		if err := json.Unmarshal(b, part); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
		if len(part.Results) != 1 || part.Results[0] == nil || part.Results[0].Scenario+".json" != filepath.Base(name) {
			return nil, fmt.Errorf("%s is no report of one scenario of that name", name)
		}
		r.parts = append(r.parts, part)
	}
	return r, nil
}

func (r *Results) folder() string {
	name := filepath.Base(r.page)
	return filepath.Join(filepath.Dir(r.page), strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name))))
}

// Keep replaces what is held of a scenario by the result of a run, on the disk too.
func (r *Results) Keep(run *Report, result *Result) error {
	part := *run
	part.Results = []*Result{result}
	if err := os.MkdirAll(r.folder(), 0o755); err != nil {
		return fmt.Errorf("cannot keep results: %w", err)
	}
	var text bytes.Buffer
	if err := part.WriteJSON(&text); err != nil {
		return fmt.Errorf("cannot keep results: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(r.folder(), fileName(result.Scenario)+"-*.svg"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err = errors.Join(replace(filepath.Join(r.folder(), result.Scenario+".json"), text.Bytes()), part.WriteSVG(r.folder()))
	if err != nil {
		return fmt.Errorf("cannot keep results: %w", err)
	}
	r.parts = slices.DeleteFunc(r.parts, func(p *Report) bool { return p.Results[0].Scenario == result.Scenario })
	r.parts = append(r.parts, &part)
	return nil
}

// WritePage writes the page. The scenarios stand in the given order, others behind them.
func (r *Results) WritePage(order []string) error {
	var text bytes.Buffer
	err := r.WriteMarkdown(&text, order)
	if err == nil {
		err = replace(r.page, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("cannot write the page of results: %w", err)
	}
	return nil
}

// replace writes a file that is whole whenever somebody looks.
func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// WriteMarkdown writes what WritePage does.
func (r *Results) WriteMarkdown(w io.Writer, order []string) error {
	place := func(p *Report) int {
		if at := slices.Index(order, p.Results[0].Scenario); at >= 0 {
			return at
		}
		return len(order)
	}
	slices.SortStableFunc(r.parts, func(a, b *Report) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a.Results[0].Scenario, b.Results[0].Scenario))
	})
	return writeMarkdown(w, r.parts, filepath.Base(r.folder()))
}
