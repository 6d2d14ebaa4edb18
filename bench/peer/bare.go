package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// Field is a field of a head.
type Field struct{ Name, Value string }

// Answer is what ledgerd answered once, without what every server says in its own way: the
// date, the length and the connection.
type Answer struct {
	ContentType string
	Fields      []Field
	Body        string
}

// Records are what can be asked for.
type Records struct {
	Count  int // how many there are
	Record func(i int) AccountRecord
}

// AccountRecord is an account as the interface shows it.
type AccountRecord struct {
	Pubkey     string `json:"pubkey"`
	Lamports   uint64 `json:"lamports"`
	Owner      string `json:"owner"`
	Executable bool   `json:"executable"`
	RentEpoch  uint64 `json:"rent_epoch"`
}

// RESTConfig is what services that answer are started with.
type RESTConfig struct {
	Self    []string // the command that runs Serve when a peer's name is added
	Dir     string   // for files; nothing is left there
	Answer  Answer   // for those that answer the same to everybody
	Records Records  // for those that look it up
}

// RESTPeer is a kind of service that answers one question at a time.
type RESTPeer struct {
	Name  string // bare, nginx, webdis, redis, nethttp or canned
	About string // one line
	start func(ctx context.Context, c *RESTConfig) (RESTServer, error)
}

// RESTPeers are all there are, the fastest kind first.
var RESTPeers = []RESTPeer{
	Bare,
	{"nginx", "nginx: return 200 with the fields and body of ledgerd's answer", startNginx},
	{"nethttp", "net/http with a map, a lock and encoding/json", startNetHTTP},
	{"webdis", "Redis GET over webdis", startWebdis},
	{"redis", "Redis GET in its own protocol", startRedisGet},
}

// Bare is what fasthttp alone costs: a handler that sends the fields and the body of ledgerd's answer.
var Bare = RESTPeer{"bare", "fasthttp with the settings, fields and body of ledgerd's answer, the same for all", startBare}

// Canned answers the same bytes to whatever ends in an empty line, and reads no further into
// it. What a load gets from it is the load's own ceiling.
var Canned = RESTPeer{"canned", "the bytes of ledgerd's answer for each empty line that comes", startCanned}

// Start starts one, which ends with ctx at the latest. It returns an *AbsentError if the
// program it needs is not there.
func (p *RESTPeer) Start(ctx context.Context, c RESTConfig) (RESTServer, error) {
	s, err := p.start(ctx, &c)
	if err != nil {
		return nil, fmt.Errorf("cannot start peer %s: %w", p.Name, err)
	}
	return s, nil
}

// RESTServer is a running one.
type RESTServer interface {
	// Address is where it answers.
	Address() netip.AddrPort
	// Request appends what asks for a record. fresh: the connection ends with the answer.
	Request(dst []byte, key string, fresh bool) []byte
	// Native reports whether it speaks the protocol of Redis, not HTTP.
	Native() bool
	// Pids are the processes.
	Pids() []int
	// Version says what it is.
	Version() string
	// Stop ends the processes and waits for them.
	Stop() error
}

// The values of Accept-Encoding.
const (
	AnyCoding = "gzip, deflate" // what common clients send
	Identity  = "identity"      // where the body is to be checked and ledgerd would compress it
)

// Get appends a request for a path to dst. It has the five fields that common clients send,
// as python-requests writes them. fresh: the connection ends with the answer.
func Get(dst []byte, host, path, coding string, fresh bool) []byte {
	connection := "keep-alive"
	if fresh {
		connection = "close"
	}
	for _, s := range [...]string{
		"GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\nUser-Agent: python-requests/2.32.3\r\nAccept-Encoding: ", coding,
		"\r\nAccept: */*\r\nConnection: ", connection, "\r\n\r\n",
	} {
		dst = append(dst, s...)
	}
	return dst
}

// restChild is a service that is this program again. What it is to answer comes through its
// stdin first.
type restChild struct {
	*child
	address netip.AddrPort
	version string
}

func startRESTChild(ctx context.Context, c *RESTConfig, name, version string, tell func(w io.Writer) error) (RESTServer, error) {
	s, err := startChild(ctx, c.Self, name)
	if err != nil {
		return nil, err
	}
	address, err := netip.ParseAddrPort(s.addr)
	if err == nil {
		err = tell(s.feed)
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return &restChild{s, address, version}, nil
}

func (s *restChild) Address() netip.AddrPort { return s.address }
func (s *restChild) Native() bool            { return false }
func (s *restChild) Pids() []int             { return []int{s.Pid()} }
func (s *restChild) Version() string         { return s.version }

func (s *restChild) Request(dst []byte, key string, fresh bool) []byte {
	return Get(dst, s.address.String(), "/api/account/"+key, AnyCoding, fresh)
}

func startBare(ctx context.Context, c *RESTConfig) (RESTServer, error) {
	return startRESTChild(ctx, c, "bare", "fasthttp "+moduleVersion("github.com/valyala/fasthttp"), func(w io.Writer) error {
		return json.NewEncoder(w).Encode(c.Answer)
	})
}

// moduleVersion returns the version of a module that this program is built from.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "of an unknown version"
}

// serveBare answers everybody the answer that comes first, set field by field with the names as
// ledgerd spells them, and with the settings of ledgerd's server.
func serveBare(ln net.Listener, in io.Reader) error {
	var a Answer
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&a); err != nil {
		return err
	}
	body := []byte(a.Body)
	var names, values [][]byte
	for _, f := range a.Fields {
		names, values = append(names, []byte(f.Name)), append(values, []byte(f.Value))
	}
	server := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType(a.ContentType)
			for i := range names {
				ctx.Response.Header.SetCanonical(names[i], values[i])
			}
			ctx.SetBody(body)
		},
		ReadBufferSize: 18 << 10, MaxRequestBodySize: 64 << 10,
		ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
		DisablePreParseMultipartForm: true, NoDefaultServerHeader: true, NoDefaultContentType: true, SecureErrorLogMessage: true,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	_, err := io.Copy(io.Discard, in) // until nobody wants it any more
	return errors.Join(err, ln.Close(), <-served)
}

// text returns the answer as ledgerd writes it, head and body.
func (a *Answer) text(now time.Time) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n",
		now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), a.ContentType, len(a.Body))
	for _, f := range a.Fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	return []byte(b.String() + "\r\n" + a.Body)
}
