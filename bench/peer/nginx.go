package peer

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"ledgerd/bench/proc"
)

// nginxConfig answers every path the same. Everything that is written to goes to a directory of
// its own, and connections last as long as ledgerd's do.
const nginxConfig = `daemon off;
worker_processes auto;
pid %[1]s/nginx.pid;
error_log stderr error;
events { worker_connections 1024; }
http {
	access_log off;
	server_tokens off;
	keepalive_requests 1000000000;
	keepalive_timeout 1h;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s backlog=4096;
		location / {
			default_type %[3]s;
%[4]s			return 200 %[5]s;
		}
	}
}
`

func startNginx(ctx context.Context, c *Config, p *Peer) (*Server, error) {
	program, err := proc.Find(p.Name, "")
	if err != nil {
		return nil, err
	}
	s, err := startProgram(ctx, c, []string{program}, nil, func(dir string, address netip.AddrPort) ([]string, error) {
		var fields strings.Builder
		for name := range c.Answer.Head {
			if name != "Content-Type" {
				fmt.Fprintf(&fields, "\t\t\tadd_header %s %s always;\n", name, nginxQuoted(c.Answer.Head.Get(name)))
			}
		}
		text := fmt.Sprintf(nginxConfig, dir, address, c.Answer.Head.Get("Content-Type"), fields.String(), nginxQuoted(c.Answer.Body))
		config := filepath.Join(dir, "nginx.conf")
		return []string{"-e", "stderr", "-p", dir, "-c", config}, os.WriteFile(config, []byte(text), 0o600)
	})
	if err != nil {
		return nil, err
	}
	s.Version = strings.TrimPrefix(versionOf(ctx, program, "-v"), "nginx version: ")
	return s, nil
}

// nginxQuoted writes a text as the configuration of nginx has it. There is no way to write a
// dollar sign, and none is needed.
func nginxQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
