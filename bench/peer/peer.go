package peer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"ledgerd/bench/feed"
	"ledgerd/bench/listen"
	"ledgerd/bench/load"
	"ledgerd/engine/ledger"
)

// Config is what peers are started with.
type Config struct {
	Self     []string // the command that runs Serve, once name and address of a peer and what it is told are added
	Dir      string   // for files; nothing is left there
	Messages [][]byte // the batch, for those that tell everybody everything
	Answer   Answer   // for those that answer the same to everybody
	Accounts int      // how many records those hold that look them up
}

// Answer is what ledgerd answered once, without what every server says in its own way: the
// date, the length and the connection.
type Answer struct {
	Head http.Header
	Body string
}

// AccountRecord is an account as the interface shows it.
type AccountRecord struct {
	Pubkey     string `json:"pubkey"`
	Lamports   uint64 `json:"lamports"`
	Owner      string `json:"owner"`
	Executable bool   `json:"executable"`
	RentEpoch  uint64 `json:"rent_epoch"`
}

// RecordOf returns the record of an account.
func RecordOf(a ledger.AccountWrite) AccountRecord {
	return AccountRecord{Pubkey: a.Pubkey.String(), Lamports: uint64(a.Lamports), Owner: a.Owner.String(), RentEpoch: a.RentEpoch}
}

// Record returns the account of an index as the base state has it, in a ledger without tokens: what peers hold.
func Record(index int) AccountRecord { return RecordOf(feed.Config{}.Account(index, feed.FirstSlot-1)) }

// Peer is a kind of service.
type Peer struct {
	Name    string
	start   func(ctx context.Context, c *Config, name string, s *Server) error // s knows what has been started, whatever fails
	LooksUp bool                                                               // it answers with the record that is asked for, else with the same to everybody
	About   string                                                             // one line: what it is, and what it does less or more than ledgerd
}

// Peers are all that tell everybody everything, the simplest first.
var Peers = []Peer{{Name: "raw", start: startRaw}, {Name: "nats", start: startNATS}}

// RESTPeers are all that answer one question at a time, the fastest kind first.
var RESTPeers = []Peer{
	{"bare", startTold, false, "fasthttp with the settings, fields and body of ledgerd's answer; it looks nothing up and counts no limits"},
	{"nginx", startNginx, false, "return 200 with the fields and body of ledgerd's answer, proxying to nothing; it looks nothing up and counts no limits"},
	{"nethttp", startTold, true, "net/http, a map behind a lock, encoding/json for each answer; it counts no limits"},
	{"webdis", startWebdis, true, "Redis GET over webdis; its answers have fewer fields than ledgerd's, and it counts no limits"},
}

// Start starts one, which ends with ctx at the latest. It returns an *proc.AbsentError if the program it needs is not there.
func (p *Peer) Start(ctx context.Context, c Config) (*Server, error) {
	s := new(Server)
	if err := p.start(ctx, &c, p.Name, s); err != nil {
		return nil, fmt.Errorf("cannot start peer %s: %w", p.Name, errors.Join(err, s.Stop()))
	}
	return s, nil
}

// Server is a running peer.
type Server struct {
	Address netip.AddrPort
	Version string
	pids    []int
	stop    []func() error // what ends the processes and removes their files, the last first

	// Of one that tells everybody everything. One goroutine publishes.

	Dial        func(ctx context.Context) (listen.Stream, error) // connects a subscriber, which receives all that is published from then on
	Publish     func() error                                     // hands the server one batch more, and waits for the server to read it
	BatchFrames int                                              // how many frames a batch is to each subscriber

	// Of one that answers.

	request func(key string) []byte // nil: as ledgerd is asked
}

// Request returns what asks for a record. All are asked with the same fields.
func (s *Server) Request(key string) []byte {
	if s.request != nil {
		return s.request(key)
	}
	return load.Get(s.Address.String(), "/api/account/"+key, nil)
}

// Pid is the process that was started first.
func (s *Server) Pid() int { return s.pids[0] }

// Pids are the processes, with those that they have started.
func (s *Server) Pids() (all []int) {
	for _, pid := range s.pids {
		all = append(all, pid)
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid)) // none, if it is gone
		for child := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// atStop has something ended by Stop.
func (s *Server) atStop(end func() error) { s.stop = append(s.stop, end) }

// tempDir makes a directory that goes with the server.
func (s *Server) tempDir(c *Config, name string) (string, error) {
	dir, err := os.MkdirTemp(c.Dir, name+"-")
	s.atStop(func() error { return os.RemoveAll(dir) })
	return dir, err
}

// Stop ends the processes, waits for them, and removes their files. What is on the way is lost.
func (s *Server) Stop() (err error) {
	for _, stop := range slices.Backward(s.stop) {
		err = errors.Join(err, stop())
	}
	return err
}
