package main

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"text/template"
	"time"

	"ledgerd/bench/latency"
)

// stdout is the name of a file that is the standard output.
const stdout = "-"

// file is what a user has named to be written.
type file struct {
	io.Writer
	close func() error
}

// create opens a file to be written. What is written to one without a name is dropped.
func create(s *streams, path string) (*file, error) {
	if path == stdout {
		return &file{s.out, func() error { return nil }}, nil
	}
	f, err := os.Create(cmp.Or(path, os.DevNull))
	if err != nil {
		return nil, err
	}
	return &file{f, f.Close}, nil
}

// output is where the figures of a command go: a text for people in the end and, where files are named for that, a record for programs, and a line each
// second. show shows meanwhile how far it is.
type output struct {
	people      io.Writer
	record, csv *file
	show        func(text string)
}

// openOutput opens what is written, so that a name that cannot be written to costs no measurement. The text gives way to what goes to the standard
// output.
func openOutput(s *streams, record, csv string) (o *output, err error) {
	o = &output{people: s.out, show: statusLine(s.err)}
	if record == stdout || csv == stdout {
		o.people = s.err
	}
	if o.record, err = create(s, record); err == nil {
		o.csv, err = create(s, csv)
	}
	return o, err
}

func (o *output) close() error { return errors.Join(o.record.close(), o.csv.close()) }

//go:embed *.tmpl
var textFiles embed.FS

// texts say for people what came of a command.
var texts = template.Must(template.New("").Funcs(template.FuncMap{"columns": func() string { return latency.Columns }}).ParseFS(textFiles, "*.tmpl"))

// deliver writes both: the text is a template with what it tells.
func (o *output) deliver(text string, of, record any) error {
	err := texts.ExecuteTemplate(o.people, text, of)
	encoder := json.NewEncoder(o.record)
	encoder.SetIndent("", "  ")
	return errors.Join(err, encoder.Encode(record))
}

// everySecond does something once a second in a goroutine of its own. stop ends that, and returns when it has ended.
func everySecond(do func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ticks := time.NewTicker(time.Second); ; {
			select {
			case <-ticks.C:
				do()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// statusLine returns what shows a line on a terminal in place of the line before. Elsewhere nothing is written.
func statusLine(out io.Writer) (show func(text string)) {
	if file, ok := out.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return func(text string) { _, _ = io.WriteString(out, "\r\x1b[K"+text) }
		}
	}
	return func(string) {}
}
