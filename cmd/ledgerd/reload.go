package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"

	"github.com/alecthomas/kong"

	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/apikey"
)

// arguments are the command line, without the program's name.
type arguments []string

// reload is what SIGHUP asks for: it reads the configuration again, as at the start, and takes over what may change while the
// node runs. That is --log-level, and the files of --api-keys and --tls-cert. Where anything in it is wrong, all stays as it is. The access log is
// opened anew whatever the configuration says: its file may have been moved away.
type reload struct {
	args    arguments
	config  string        // the file of it, "": there is none
	running *kong.Context // what is in force; level may be newer
	level   *slog.LevelVar
	log     *slog.Logger

	keys        *apikey.Ring   // nil: there are none
	keysFile    string         // where they are
	revoked     func()         // ends the sockets of keys that are gone
	certificate *certificate   // nil: there is none
	accessLog   *accesslog.Log // nil: there is none
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
	if r.accessLog != nil {
		r.accessLog.Reopen()
	}
	var fresh commands
	var parsed *kong.Context
	err := r.isReadable()
	if err == nil {
		parsed, err = newParser(&fresh, fromEnvironment, kong.BindTo(ctx, (*context.Context)(nil))).Parse(r.args)
	}
	if err == nil {
		err = r.files()
	}
	if err != nil {
		r.log.Error("SIGHUP: nothing is reloaded, the settings stay as they are", "error", err)
		return
	}
	if before := r.level.Level(); before != fresh.Serve.LogLevel {
		r.level.Set(fresh.Serve.LogLevel)
		r.log.Log(ctx, max(before, fresh.Serve.LogLevel), "SIGHUP: reloaded", "log_level", fresh.Serve.LogLevel, "before", before)
	} else {
		r.log.Info("SIGHUP: reloaded, the log level is as it was", "log_level", before)
	}
	if names := r.restarts(parsed); len(names) > 0 {
		r.log.Warn("SIGHUP: these settings changed too, and take a restart", "flags", names)
	}
}

// isReadable returns an error where the configuration is a pipe: it would be waited for, or be empty at its second reading.
func (r *reload) isReadable() error {
	if r.config == "" {
		return nil
	}
	if err := checkRegular(r.config); err != nil {
		return fmt.Errorf("cannot read the configuration %s: %w", r.config, err)
	}
	return nil
}

// restarts returns the flags whose values are not those in force and cannot be taken over.
func (r *reload) restarts(fresh *kong.Context) (names []string) {
	now := fresh.Selected().Flags
	for i, f := range r.running.Selected().Flags {
		if f.Name != "log-level" && !reflect.DeepEqual(f.Target.Interface(), now[i].Target.Interface()) {
			names = append(names, f.Name)
		}
	}
	return names
}

// files reads the certificate and the API keys again. The keys come last: they cannot fail once they are read.
func (r *reload) files() error {
	var held *apikey.File
	var err error
	if r.keys != nil {
		held, err = readKeys(r.keysFile)
	}
	if err == nil && r.certificate != nil {
		err = r.certificate.reload()
	}
	if err == nil && r.keys != nil {
		r.keys.Load(held)
		r.revoked()
	}
	return err
}
