package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"

	"github.com/VictoriaMetrics/metrics"
)

// Config says which log a node shares, and as what. Servers, Stream and NodeID must be set.
type Config struct {
	// Servers are URLs, nats:// or tls://, with a user and password or a token before an @ where they are needed: the same for
	// all. One that answers is enough: it names the others.
	Servers []string
	// Stream is the name of the stream: letters, digits, - and _. What lies beside it bears its name: the buckets
	// Stream_lease and Stream_snapshots and the subjects Stream.log and Stream.members.
	Stream string
	// NodeID names this node to the others: at most 64 digits, small letters and -.
	NodeID string
	// LedgerID is the id of the ledger that this node followed before; "" for a node that never did. A stream of another
	// id is refused, and one that is missing is not made.
	LedgerID string

	// Founds says that the node holds a ledger that no cluster has: a stream that it makes begins after that. Until the node wrote
	// to it, others cannot begin.
	Founds bool
	// MayWrite lets the node become the writer, and make the stream if there is none.
	MayWrite bool
	// Facts are what all nodes must agree on, as whoever makes the stream knows it: a few KiB.
	Facts []byte
	// Replicas is how many servers hold the stream; 0 means 3. It counts when the stream is made.
	Replicas int
	// MaxBytes is how much the stream may hold, as accounts of nats-servers may ask for; 0: as much as there is. A full stream takes
	// nothing more until a snapshot lets its beginning be forgotten. Tags are of the servers that are to hold it. Both count when
	// the stream is made.
	MaxBytes int64
	Tags     []string
	// Domain and APIPrefix say where JetStream is that is not the servers' own, as behind a leaf node or in another account: one of them.
	Domain, APIPrefix string

	// Credentials is the path of a file with a user's JWT and seed; "" for none.
	Credentials string
	// TLS is used with tls:// URLs; nil means the roots of the system.
	TLS *tls.Config
	// Metrics is where the figures of the cluster are registered; nil means a set of its own.
	Metrics *metrics.Set
	// Logger is where changes are told; nil means slog.Default.
	Logger *slog.Logger
}

const defaultReplicas = 3

var streamName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ParseLog splits what an operator writes, nats://HOST:PORT[,HOST:PORT…]/STREAM, into the URLs of servers and the name of
// a stream. The scheme and the user information hold for all hosts. No error shows any of it: where it cannot be told what is
// what, any of it may be a password.
func ParseLog(s string) (servers []string, stream string, err error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != "nats" && scheme != "tls" {
		return nil, "", errors.New("the address of a log does not begin with nats:// or tls://")
	}
	user, hosts := "", rest
	if i := strings.LastIndex(rest, "@"); i >= 0 { // first: a password may hold a slash
		user, hosts = rest[:i+1], rest[i+1:]
	}
	at := strings.LastIndex(hosts, "/")
	if at < 0 {
		return nil, "", errors.New("the address of a log names no stream after the servers")
	}
	hosts, stream = hosts[:at], hosts[at+1:]
	for host := range strings.SplitSeq(hosts, ",") {
		servers = append(servers, scheme+"://"+user+host)
	}
	c := Config{Servers: servers, Stream: stream}
	return servers, stream, c.check()
}

// Redact returns a URL of the log without what comes before an @, to be shown.
func Redact(s string) string {
	i := strings.LastIndex(s, "@")
	if i < 0 {
		return s
	}
	scheme, _, ok := strings.Cut(s, "://")
	if !ok {
		return s[i+1:]
	}
	return scheme + "://" + s[i+1:]
}

func (c *Config) check() error {
	_, _, err := c.access()
	switch {
	case err != nil:
		return err
	case len(c.Servers) == 0:
		return errors.New("no server is named")
	case !streamName.MatchString(c.Stream):
		return errors.New("the name of a stream is not one of up to 64 letters, digits, - and _")
	}
	return nil
}

// access returns the addresses of the servers, and the user that all of them are told of; nil: none. The addresses bear no user: a
// message that shows one of them tells no password.
func (c *Config) access() (addresses []string, user *url.Userinfo, err error) {
	for i, s := range c.Servers {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, nil, fmt.Errorf("server %d of %d: what is given is not the address of a server, nats://HOST:PORT or tls://HOST:PORT (in a password, write / ? # %% and spaces as %%XX)",
				i+1, len(c.Servers))
		}
		if i > 0 && u.User.String() != user.String() {
			return nil, nil, fmt.Errorf("server %d of %d has another user than the first", i+1, len(c.Servers))
		}
		user, u.User = u.User, nil
		addresses = append(addresses, u.String())
	}
	return addresses, user, nil
}

func (c *Config) subject() string { return c.Stream + ".log" }
