package main

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/importer/agave/agavetest"
)

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

// F4, F5, F6, F16, F35, F48, F49, F50, F51, F52, G2: the scripts in testdata/script run ledgerd as a person does; the first line of each names its rows.
func TestScripts(t *testing.T) {
	if testing.Short() && !strings.Contains(flag.Lookup("test.run").Value.String(), "TestScripts/") {
		t.Skip("each command is a process of its own: what can race in most is tested under the race detector where it is written; the others are named")
	}
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Values["page"] = &page{t: e.T().(testing.TB), authorities: map[string]*authority{}}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, not bool, args []string){
			"fails":         scriptCommand("CODE PATTERN ARGUMENT...", 2, (*page).fails),
			"refused":       scriptCommand("CODE PATTERN ARGUMENT...", 2, (*page).refused),
			"begin":         scriptCommand("FLAG...", 1, (*page).begin),
			"serve":         scriptCommand("FLAG...", 1, (*page).serve),
			"stopserve":     scriptCommand("[SIGNAL [CODE]]", 0, (*page).stop),
			"signal":        scriptCommand("SIGNAL PATTERN", 2, (*page).signal),
			"await":         scriptCommand("PATTERN", 1, (*page).await),
			"capture":       scriptCommand("NAME PATTERN", 2, (*page).capture),
			"get":           scriptCommand("STATUS PATH [FIELD]...", 2, (*page).get),
			"until":         scriptCommand("STATUS PATH [PATTERN]", 2, (*page).until),
			"talks":         scriptCommand("FILE", 1, (*page).talks),
			"answers":       scriptCommand("DIR", 1, (*page).answers),
			"knownlog":      scriptCommand("[-segment BYTES] [-commits N] [-misnumbered] DIR", 1, (*page).knownLog),
			"knownsnapshot": scriptCommand("DIR SLOT VERSION ACCOUNTS", 4, (*page).knownSnapshot),
			"knownarchive":  scriptCommand("DIR CAPITALIZATION", 2, (*page).knownArchive),
			"nats":          scriptCommand("[down]", 0, (*page).nats),
			"certificate":   scriptCommand("NAME AUTHORITY", 2, (*page).certificate),
			"flip":          scriptCommand("FILE OFFSET", 2, (*page).flip),
			"newer":         scriptCommand("FILE HEADERBYTES", 2, (*page).newer),
			"tree":          scriptCommand("DIR", 1, (*page).tree),
		},
	})
}

// page is a script that runs.
type page struct {
	*testscript.TestScript
	t    testing.TB
	node *victim
	log  *natstest.Servers

	authorities map[string]*authority
	shows       []tls.Certificate // where operators need one
}

// scriptCommand returns a command for scripts; usage is what follows its name, of which least words must be there.
func scriptCommand(usage string, least int, do func(p *page, args []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, not bool, args []string) {
		if not || len(args) < least {
			ts.Fatalf("usage: %s", usage)
		}
		p := ts.Value("page").(*page)
		p.TestScript = ts
		do(p, args)
	}
}

// fails runs ledgerd, by way of the program $UNDER if there is one, which must end with the exit code and with a line that matches the pattern.
func (p *page) fails(args []string) {
	code := 0
	under := strings.Fields(p.Getenv("UNDER"))
	if err := p.Exec("timeout", slices.Concat([]string{"60"}, under, []string{"ledgerd"}, args[2:])...); err != nil { // 124 is its code
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			p.Fatalf("%v", err)
		}
		code = failed.ExitCode()
	}
	said := strings.TrimSuffix(p.ReadFile("stderr"), "\n")
	last := said[strings.LastIndexByte(said, '\n')+1:]
	if fmt.Sprint(code) != args[0] || !strings.HasPrefix(last, "ledgerd: ") || !regexp.MustCompile(args[1]).MatchString(last) {
		p.Fatalf("exit code %d, want %s and a last line that matches %q", code, args[0], args[1])
	}
}

// refused is fails where nothing else must be said: ledgerd has not begun what it was asked for.
func (p *page) refused(args []string) {
	p.fails(args)
	if strings.Count(p.ReadFile("stderr"), "\n") != 1 || p.ReadFile("stdout") != "" {
		p.Fatalf("it says more than one line")
	}
}

// begin starts a node on free ports and waits until it listens. $OPS and $ADDRESS are where. Standard output is what it printed.
//
// The node is a process: one in this process would share the lock of its directory with every process that another
// script is starting at the moment.
func (p *page) begin(args []string) {
	binary, err := os.Executable()
	p.Check(err)
	words := []string{"/usr/bin/env", "-C", p.MkAbs("."), binary, "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}
	p.node = launchWords(p.t, append(words, args...)...)
	p.node.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true, Certificates: p.shows}
	p.node.listened()
	p.Setenv("OPS", p.node.ops)
	p.Setenv("ADDRESS", hostOf(p.node.base))
	fmt.Fprint(p.Stdout(), p.node.out)
}

// serve is begin for a node that is waited for until it is ready, and has read all of a file or all slots of the simulator. $STATE is the hash of
// its state then.
func (p *page) serve(args []string) {
	p.begin(args)
	p.node.ready()
	if regexp.MustCompile(`file:|slots=`).MatchString(strings.Join(args, " ")) {
		p.Setenv("STATE", p.node.errs.await(p.t, `msg="end of input".* state_hash=(\S+)`)[1])
	}
}

// stop ends the node by a signal, TERM unless another one is named. Its exit code must be 0 or the one that is named, -1 where the signal ends
// the process as it ends any. Standard error is what the node said.
func (p *page) stop(args []string) {
	signal, want := "TERM", exitOK
	if len(args) > 0 {
		signal = args[0]
	}
	if len(args) > 1 {
		want = p.number(args[1])
	}
	p.node.Signal(unix.SignalNum("SIG" + signal))
	if code := p.node.gone(patience); code != want {
		p.Fatalf("exit code %d, want %d:\n%s", code, want, p.node.errs)
	}
	fmt.Fprint(p.Stderr(), p.node.errs)
}

// signal sends the node a signal and waits until it has said, in all, what matches a pattern.
func (p *page) signal(args []string) {
	p.node.Signal(unix.SignalNum("SIG" + args[0]))
	p.await(args[1:])
}

func (p *page) await(args []string) { p.node.errs.await(p.t, args[0]) }

// capture sets a variable to what the group of a pattern matches in standard output.
func (p *page) capture(args []string) {
	m := regexp.MustCompile(args[1]).FindStringSubmatch(p.ReadFile("stdout"))
	if m == nil {
		p.Fatalf("nothing matches %q", args[1])
	}
	p.Setenv(args[0], m[1])
}

// ask asks the node for a path of its interface, or for a whole URL, with some header fields.
func (p *page) ask(path string, fields ...string) answer {
	if strings.HasPrefix(path, "/") {
		path = p.node.base + path
	}
	a, err := ask(p.node.client, path, fields...)
	p.Check(err)
	return a
}

// until asks until the answer is the one that is wanted.
func (p *page) until(args []string) {
	pattern := regexp.MustCompile(strings.Join(args[2:], ""))
	p.node.until(strings.Join(args, " "), func() bool {
		a := p.ask(args[1])
		return fmt.Sprint(a.status) == args[0] && pattern.MatchString(a.body)
	})
}

// get asks as ask does. Standard output is the answer's own headers, if it
// has any, where fields were sent also what it says of limits and keys, and its body.
func (p *page) get(args []string) {
	a := p.ask(args[1], args[2:]...)
	shown := []string{"X-Ledger-Slot", "X-Ledger-Partial"}
	if len(args) > 2 {
		shown = append(shown, "X-RateLimit-Limit", "X-RateLimit-Remaining", "WWW-Authenticate", "Sec-WebSocket-Protocol")
	}
	for _, name := range shown {
		if value := a.header.Get(name); value != "" {
			fmt.Fprintf(p.Stdout(), "%s: %s\n", name, value)
		}
	}
	fmt.Fprintf(p.Stdout(), "%s\n", a.body)
	if fmt.Sprint(a.status) != args[0] {
		p.Fatalf("GET %s: status %d, want %s", args[1], a.status, args[0])
	}
}

// knownLog writes knownCommits to the log of a data directory.
func (p *page) knownLog(args []string) {
	flags := flag.NewFlagSet("knownlog", flag.ContinueOnError)
	segment := flags.Int64("segment", 0, "")
	commits := flags.Int("commits", 4, "")
	misnumbered := flags.Bool("misnumbered", false, "")
	p.Check(flags.Parse(args))
	all := knownCommits()
	if *misnumbered {
		all[2][0].FirstSeq++
	}
	p.Check(writeLog(p.t, newDataDir(p.t, p.MkAbs(flags.Arg(0))), all[:*commits], *segment).Close())
}

func (p *page) knownSnapshot(args []string) {
	writeSnapshot(p.t, newDataDir(p.t, p.MkAbs(args[0])), p.number(args[1]), p.number(args[2]), p.number(args[3]))
}

// knownArchive writes an archive of one account with 1 lamport, which says how many all accounts hold, wrongly or not.
// $ARCHIVE is its name.
func (p *page) knownArchive(args []string) {
	storages := []agavetest.Storage{{Slot: 10, ID: 1, Records: []agavetest.Record{{Lamports: 1}}}}
	a := &agavetest.Archive{Slot: 10, Parent: 9, Storages: storages, Capitalization: uint64(p.number(args[1]))}
	p.Check(os.MkdirAll(p.MkAbs(args[0]), 0o700))
	path, err := a.Write(p.MkAbs(args[0]))
	p.Check(err)
	p.Setenv("ARCHIVE", filepath.Base(path))
}

// nats starts a nats-server, or kills it; $NATS is its address.
func (p *page) nats(args []string) {
	if len(args) > 0 {
		p.log.Kill(0)
		return
	}
	p.log = natstest.Start(p.t, 1)
	p.Setenv("NATS", p.log.URL(0))
}

// certificate writes NAME.pem and NAME-key.pem, signed by an authority, whose own certificate is in AUTHORITY.pem. Nodes that are started from
// then on are asked by whoever has it.
func (p *page) certificate(args []string) {
	name, by := args[0], args[1]
	a := p.authorities[by]
	if a == nil {
		a = newAuthority(p.t)
		p.authorities[by] = a
		p.Check(os.WriteFile(p.MkAbs(by+".pem"), a.pem(), 0o600))
	}
	certFile, keyFile := p.MkAbs(name+".pem"), p.MkAbs(name+"-key.pem")
	p.shows = append(p.shows, a.sign(name, &certFile, &keyFile))
}

// flip changes a bit of a byte of a file; one that is counted from the end has a negative offset.
func (p *page) flip(args []string) {
	p.rewrite(args[0], func(content []byte) {
		at := p.number(args[1])
		if at < 0 {
			at += len(content)
		}
		content[at] ^= 1
	})
}

// newer makes a file one of format version 9: the version is at byte 8, the checksum of the header at its end.
func (p *page) newer(args []string) {
	p.rewrite(args[0], func(content []byte) {
		sum := p.number(args[1]) - 4
		binary.LittleEndian.PutUint32(content[8:], 9)
		binary.LittleEndian.PutUint32(content[sum:], crc32.Checksum(content[:sum], crc32.MakeTable(crc32.Castagnoli)))
	})
}

func (p *page) rewrite(name string, change func(content []byte)) {
	content := []byte(p.ReadFile(name))
	change(content)
	p.Check(os.WriteFile(p.MkAbs(name), content, 0o600))
}

func (p *page) number(text string) int {
	n, err := strconv.Atoi(text)
	p.Check(err)
	return n
}

// tree prints all names below a directory with the checksums of their contents.
func (p *page) tree(args []string) {
	fmt.Fprint(p.Stdout(), listing(p.t, p.MkAbs(args[0])))
}
