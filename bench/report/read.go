package report

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// File is what was read of a file of measurements.
type File struct {
	Config map[string]string
	notes  map[string][]string // by scenario
	series []series            // as they came
	values map[series][]float64
}

// series is one figure of a subject, which has a value for each round.
type series struct{ scenario, subject, unit string }

// Read reads a file. All of its records must have been measured in the same way: of the same revision, on the same machine.
func Read(content []byte, name string) (*File, error) {
	f := &File{notes: make(map[string][]string), values: make(map[series][]float64)}
	for line := range strings.Lines(string(content)) {
		if head, note, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": "); ok && strings.HasPrefix(line, "# ") {
			f.notes[head] = append(f.notes[head], strings.TrimSpace(note))
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
		s := series{strings.ToLower(string(base)), string(parts[0][len("/subject="):]), unit}
		if f.values[s] == nil {
			f.series = append(f.series, s)
		}
		f.values[s] = append(f.values[s], value)
	}
	return nil
}
