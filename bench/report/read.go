package report

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// File is what was read of a file of measurements.
type File struct {
	Config    map[string]string
	scenarios map[string]*scenario // by the name of the Go benchmark
}

// scenario is what is known of one.
type scenario struct {
	notes  []string
	series []*series // as they came
}

// series is one figure of a subject, a value for each round.
type series struct {
	subject, unit string
	values        []float64
}

// Read reads a file. All of its records must have been measured in the same way: of the same revision, on the same machine.
func Read(content []byte, name string) (*File, error) {
	f := &File{scenarios: make(map[string]*scenario)}
	for line := range strings.Lines(string(content)) {
		if head, note, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": "); ok && strings.HasPrefix(line, "# ") {
			s := f.scenario(goName(head))
			s.notes = append(s.notes, strings.TrimSpace(note))
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
	for _, v := range r.Values {
		unit, value := v.Unit, v.Value
		if v.OrigUnit != "" {
			unit, value = v.OrigUnit, v.OrigValue
		}
		s := f.scenario(string(base)).of(string(parts[0][len("/subject="):]), unit)
		s.values = append(s.values, value)
	}
	return nil
}

func (f *File) scenario(name string) *scenario {
	if f.scenarios[name] == nil {
		f.scenarios[name] = new(scenario)
	}
	return f.scenarios[name]
}

// of returns a figure of a subject, which is added without values if there is none.
func (s *scenario) of(subject, unit string) *series {
	for _, o := range s.series {
		if o.subject == subject && o.unit == unit {
			return o
		}
	}
	added := &series{subject: subject, unit: unit}
	s.series = append(s.series, added)
	return added
}
