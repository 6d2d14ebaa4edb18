// Command ledgercluster runs a whole cluster of ledgerd on one machine, to try it and to show
// what survives: three nats-servers that hold the log, ingesters of which one is active, replicas, and
// haproxy in front of them where it is installed.
//
// A plan says which processes there are, with which ports and files ([plan]). Each is started again whenever it ends,
// until it is to stop ([keep]): at a signal, of which that of a closed terminal is one. They are stopped from the outside in: balancer, nodes,
// nats-servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"ledgerd/bench/proc"
	"ledgerd/cmd/internal/build"
	"ledgerd/cmd/internal/signals"
	"ledgerd/engine/ledger/wait"
	"ledgerd/snapshot/vfs"
)

type command struct {
	Dir        string `help:"Where everything is kept: data, configurations and logs of all processes." default:"./cluster-data" type:"path"`
	Ledgerd    string `help:"The program ledgerd. Default: the one beside this program." placeholder:"PATH"`
	NATSServer string `help:"The program nats-server. Default: the one beside this program." placeholder:"PATH" name:"nats-server"`
	Ingesters  int    `help:"Nodes that may follow the source; one at a time does." default:"2"`
	Replicas   int    `help:"Nodes that follow the log alone." default:"3"`
	Source     string `help:"What the ingesters follow: see ledgerd serve --help." default:"sim:"`
	Port       int    `help:"The balancer's port; those after it are the nodes', 100 higher their operators', 200 and 210 higher the nats-servers'." default:"8080"`
	Balancer   string `help:"haproxy, none, or auto: haproxy where it is installed." default:"auto" enum:"auto,haproxy,none"`

	ShowVersion kong.VersionFlag `help:"Print the version, the revision of the sources, and the version of Go." name:"version" short:"v"`

	Args []string `arg:"" optional:"" help:"More flags for every node, behind --. The word version alone prints the version."`
}

// Validate checks what the flags' types cannot.
func (c *command) Validate() error {
	switch {
	case c.Ingesters < 1 || c.Ingesters > 9 || c.Replicas < 0 || c.Replicas > 50:
		return fmt.Errorf("a cluster has 1 to 9 ingesters and at most 50 replicas")
	case c.Port < 1024 || c.Port > 65000:
		return fmt.Errorf("--port must be between 1024 and 65000")
	}
	return nil
}

func main() {
	ctx := signals.Context()
	signal.Ignore(syscall.SIGPIPE) // who reads what is told, such as tee, may end before this program, with which all processes end
	var c command
	kong.Parse(&c, kong.Name("ledgercluster"), kong.Vars{"version": build.Line("ledgercluster")},
		kong.Description("Run a cluster of ledgerd on this machine: nats-servers, ingesters, replicas, and a balancer. Ctrl-C stops all of it, and so does the end of the terminal."))
	if slices.Equal(c.Args, []string{"version"}) {
		fmt.Println(build.Line("ledgercluster"))
		return
	}
	if err := c.run(ctx, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "ledgercluster: %v\n", err)
		os.Exit(1)
	}
}

// run starts everything, says where it is, and stops it when ctx ends: what was started last is stopped first.
func (c *command) run(ctx context.Context, out io.Writer) error {
	p, err := c.plan()
	if err != nil {
		return err
	}
	lock, err := c.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := p.write(); err != nil {
		return err
	}
	defer fmt.Fprintln(out, "stopped")
	for _, d := range p.daemons {
		stop, err := keep(d, p.logFile(d.name), out)
		if err != nil {
			return err
		}
		defer stop()
	}
	var announced strings.Builder
	if err := texts.ExecuteTemplate(&announced, "announce.txt.tmpl", p); err != nil {
		return err
	}
	fmt.Fprint(out, announced.String()) // the cluster goes on where nobody can read that
	if untilReady(ctx, p.Nodes) {
		fmt.Fprintln(out, "all nodes are ready")
	}
	<-ctx.Done()
	fmt.Fprintln(out, "stopping")
	return nil
}

// lock keeps the directory for one cluster at a time, until what it returns is closed.
func (c *command) lock() (io.Closer, error) {
	err := os.MkdirAll(c.Dir, 0o755)
	if err != nil {
		return nil, fmt.Errorf("cannot make the directory: %w", err)
	}
	lock, err := vfs.Disk{}.Lock(filepath.Join(c.Dir, "LOCK"))
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("%s is in use by another ledgercluster, choose another with --dir", c.Dir)
	}
	return lock, err
}

// untilReady waits until every node says that it is, and reports whether that came before ctx ended.
func untilReady(ctx context.Context, nodes []node) bool {
	client := &http.Client{Timeout: time.Second}
	for _, n := range nodes {
		for {
			status, _, err := proc.Get(ctx, client, "http://"+local(n.Ops)+"/readyz")
			if err == nil && status == http.StatusOK {
				break
			}
			if wait.Sleep(ctx, 100*time.Millisecond) != nil {
				return false
			}
		}
	}
	return true
}

// find returns path, or where a program lies beside this one, or on the search path.
func find(path, name string) (string, error) {
	if path != "" {
		return exec.LookPath(path)
	}
	own, _ := os.Executable() // else the search path is all there is
	path, err := proc.Find(name, own)
	if err != nil {
		err = fmt.Errorf("there is no %s beside this program, nor on the search path: make cluster builds both", name)
	}
	return path, err
}
