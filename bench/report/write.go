package report

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// Figure is one quantity of a record.
type Figure struct {
	Unit  string // with what it is of in front where the unit alone does not say it: p99-ms
	Value float64
}

// Writer writes a file of measurements. One goroutine uses it. After an error it writes nothing, and Err tells it.
type Writer struct {
	out     io.Writer
	records *benchfmt.Writer
	config  []benchfmt.Config
	noted   map[string]bool
	err     error
}

// NewWriter returns a writer of records that were all measured as config says.
func NewWriter(out io.Writer, config []benchfmt.Config) *Writer {
	return &Writer{out: out, records: benchfmt.NewWriter(out), config: config, noted: make(map[string]bool)}
}

// Record writes a round of a subject.
func (w *Writer) Record(scenario, subject string, n int, figures []Figure) {
	result := &benchfmt.Result{Config: w.config, Name: benchfmt.Name(goName(scenario) + "/subject=" + subject), Iters: n}
	for _, f := range figures {
		result.Values = append(result.Values, benchfmt.Value{Value: f.Value, Unit: f.Unit})
	}
	if w.err == nil {
		w.err = w.records.Write(result)
	}
}

// Note writes a note about a scenario, once.
func (w *Writer) Note(scenario, text string) {
	line := fmt.Sprintf("# %s: %s\n", scenario, strings.Join(strings.Fields(text), " "))
	if w.err == nil && !w.noted[line] {
		w.noted[line] = true
		_, w.err = io.WriteString(w.out, line)
	}
}

// Err returns the first error of writing.
func (w *Writer) Err() error { return w.err }

// goName returns the name of a scenario as names of Go benchmarks are: Account for account.
func goName(scenario string) string { return strings.ToUpper(scenario[:1]) + scenario[1:] }

// Text returns figures as a line for people.
func Text(figures []Figure) string {
	words := make([]string, len(figures))
	for i, f := range figures {
		words[i] = number(f.Value) + " " + f.Unit
	}
	return strings.Join(words, ", ")
}
