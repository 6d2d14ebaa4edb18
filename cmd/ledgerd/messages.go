package main

import (
	"fmt"
	"io"
	"log/slog"
)

// newLogger returns a logger that writes to w what level lets through, in the form that --log-format names.
func newLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// logLevel is the value of --log-level.
type logLevel struct{ slog.Level }

// UnmarshalText reads a level by its name.
func (l *logLevel) UnmarshalText(text []byte) error {
	if l.Level.UnmarshalText(text) != nil {
		return fmt.Errorf("%q must be debug, info, warn or error", text)
	}
	return nil
}
