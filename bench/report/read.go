package report

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// File is what was read of a file of measurements.
type File struct {
	Config   map[string]string
	Notes    map[string][]string   // by scenario
	Subjects map[string][]*Subject // by scenario, as they came
}

// Subject is what was measured of one: a value of each figure for each round.
type Subject struct {
	Name   string
	units  []string // as they came
	values map[string][]float64
}

// subject returns that of a name, without values if there is none.
func (f *File) subject(scenario, name string) (s *Subject, found bool) {
	for _, s := range f.Subjects[scenario] {
		if s.Name == name {
			return s, true
		}
	}
	return &Subject{Name: name, values: make(map[string][]float64)}, false
}

// Read reads a file. All of its records must have been measured in the same way: of the same revision, on the same machine.
func Read(content []byte, name string) (*File, error) {
	f := &File{Notes: make(map[string][]string), Subjects: make(map[string][]*Subject)}
	for line := range strings.Lines(string(content)) {
		if head, note, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": "); ok && strings.HasPrefix(line, "# ") {
			f.Notes[head] = append(f.Notes[head], strings.TrimSpace(note))
		}
	}
	records := benchfmt.NewReader(bytes.NewReader(content), name)
	for records.Scan() {
		switch r := records.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, r
		case *benchfmt.Result:
			if err := f.add(r); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return f, records.Err()
}

// add adds a record.
func (f *File) add(r *benchfmt.Result) error {
	config := make(map[string]string)
	for _, c := range r.Config {
		if c.File {
			config[c.Key] = string(c.Value)
		}
	}
	if f.Config == nil {
		f.Config = config
	}
	for key, value := range config {
		if f.Config[key] != value {
			return fmt.Errorf("it holds more than one run: %s is %q and %q", key, f.Config[key], value)
		}
	}
	base, parts := r.Name.Parts()
	if len(parts) != 1 || !bytes.HasPrefix(parts[0], []byte("/subject=")) {
		return fmt.Errorf("record %s names no subject", r.Name)
	}
	scenario := strings.ToLower(string(base))
	s, found := f.subject(scenario, string(parts[0][len("/subject="):]))
	if !found {
		f.Subjects[scenario] = append(f.Subjects[scenario], s)
	}
	for _, v := range r.Values {
		unit, value := v.Unit, v.Value
		if v.OrigUnit != "" {
			unit, value = v.OrigUnit, v.OrigValue
		}
		if s.values[unit] == nil {
			s.units = append(s.units, unit)
		}
		s.values[unit] = append(s.values[unit], value)
	}
	return nil
}
