package peer

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"ledgerd/bench/proc"
)

//go:embed nginx.conf.tmpl
var nginxText string

var nginxConfig = template.Must(template.New("nginx.conf").Funcs(template.FuncMap{"quoted": nginxQuoted}).Parse(nginxText))

func startNginx(ctx context.Context, c *Config, name string, s *Server) error {
	program, err := proc.Find(name, "")
	if err != nil {
		return err
	}
	s.Version = strings.TrimPrefix(versionOf(ctx, program, "-v"), "nginx version: ")
	return s.startProgram(ctx, c, []string{program}, nil, func(dir string) ([]string, error) {
		var text bytes.Buffer
		err := nginxConfig.Execute(&text, struct {
			Config
			Dir     string
			Address netip.AddrPort
		}{*c, dir, s.Address})
		config := filepath.Join(dir, "nginx.conf")
		return []string{"-e", "stderr", "-p", dir, "-c", config}, errors.Join(err, os.WriteFile(config, text.Bytes(), 0o600))
	})
}

// nginxQuoted writes a text as the configuration of nginx has it. There is no way to write a
// dollar sign, and none is needed.
func nginxQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
