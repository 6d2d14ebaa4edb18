package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"

	"ledgerd/httpd/apikey"
)

// arguments are the command line, without the program's name.
type arguments []string

// reload is what SIGHUP asks for: it reads the configuration again, as at the start, and takes over what may change while the
// node runs, see reloaded. Where anything in it is wrong, all stays as it is. The access log is
// opened anew whatever the configuration says: its file may have been moved away.
type reload struct {
	args   arguments
	values map[string]any // of flags that are in force
	level  *slog.LevelVar
	node   *node
	keys   string            // their file
	apply  func(*limitFlags) // takes them over
}

// reloaded are the flags whose values are taken over. What their files hold is taken over, too, of api-keys, tls-cert and tls-client-ca.
var reloaded = []string{
	"log-level", "rate-limit-minute", "rate-limit-hour", "rate-limit-exempt", "max-conns", "max-conns-per-client", "max-sockets", "max-sockets-per-client", "ws-origins",
}

// follow reloads at each signal until ctx ends.
func (r *reload) follow(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-signals:
			r.do(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (r *reload) do(ctx context.Context) {
	if r.node.accessLog != nil {
		r.node.accessLog.Reopen()
	}
	var fresh commands
	parsed, err := newParser(&fresh, fromEnvironment).Parse(r.args)
	var files []any // what to say of them
	if err == nil {
		files, err = r.files(&fresh.Serve)
	}
	if err != nil {
		r.node.logger.Error("SIGHUP: nothing is reloaded, the settings stay as they are", "error", err)
		return
	}
	changed, restarts := r.changes(parsed)
	before, level := r.level.Level(), fresh.Serve.LogLevel.Level
	r.level.Set(level)
	r.apply(&fresh.Serve.limitFlags)
	r.node.logger.Log(ctx, max(before, level), "SIGHUP: reloaded", append(files, "changed", changed)...)
	if len(restarts) > 0 {
		r.node.logger.Warn("SIGHUP: these settings changed too, and take a restart", "flags", restarts)
	}
}

// changes notes the values of the flags that are taken over, and returns those of them that changed, with their values, and the names of the
// flags whose values changed and cannot be taken over.
func (r *reload) changes(fresh *kong.Context) (changed, restarts []string) {
	for _, f := range fresh.Selected().Flags {
		value := f.Target.Interface()
		switch {
		case reflect.DeepEqual(r.values[f.Name], value):
		case !slices.Contains(reloaded, f.Name):
			restarts = append(restarts, f.Name)
		default:
			r.values[f.Name] = value
			changed = append(changed, fmt.Sprintf("%s: %v", f.Name, value))
		}
	}
	return changed, restarts
}

// files reads the certificate, the authorities of operators and the API keys again, and returns what to say of them. The keys come last: they
// cannot fail once they are read.
func (r *reload) files(fresh *serveCommand) (said []any, err error) {
	n := r.node
	var held *apikey.File
	if n.keys != nil {
		if held, err = readKeys(r.keys); err != nil {
			return nil, err
		}
	}
	take := func() {}
	if n.operators != nil {
		if take, err = n.operators.reload(); err != nil {
			return nil, err
		}
	}
	if n.certificate != nil {
		if err := n.certificate.reload(); err != nil {
			return nil, err
		}
		said = append(said, "certificate", n.certificate.certFile)
	}
	if take(); n.operators != nil {
		said = append(said, "client_ca", n.operators.file)
	}
	if n.keys != nil {
		n.keys.SetUsual(fresh.usualTier())
		n.keys.Load(held)
		n.hub.EndRevoked()
		said = append(said, "keys", len(held.Keys))
	}
	return said, nil
}
