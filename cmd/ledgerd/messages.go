package main

import (
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
