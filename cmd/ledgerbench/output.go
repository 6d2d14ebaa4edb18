package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// deliver writes figures: a text for people and, if a file is named for it, a record for programs.
func deliver(out io.Writer, text, path string, record any) error {
	_, err := io.WriteString(out, text)
	if path == "" {
		return err
	}
	return errors.Join(err, writeFile(path, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(record)
	}))
}

// writeFile writes a file.
func writeFile(path string, write func(w io.Writer) error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file)
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
