package main

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"ledgerd/engine/source/geyser"
)

// warn tells of what a node takes, and what its operator may not have meant.
func (c *serveCommand) warn(flags []*kong.Flag, log *slog.Logger) {
	for _, path := range []string{c.DataDir, c.TLSKey, c.LogCredentials, c.AccessLog} {
		if info, err := os.Stat(path); path != "" && err == nil && info.Mode().Perm()&0o007 != 0 {
			log.Warn("everybody on this machine may read this", "path", path, "mode", info.Mode().Perm().String())
		}
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		named := func(f *kong.Flag) bool { return slices.Contains(f.Envs, name) }
		if strings.HasPrefix(name, envPrefix+"_") && name != geyser.TokenVariable && !slices.ContainsFunc(flags, named) {
			log.Warn("this environment variable names no flag", "name", name)
		}
	}
}
