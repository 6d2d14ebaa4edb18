package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/VictoriaMetrics/metrics"
)

// Config says which log a node shares, and as what. Servers, Stream and NodeID must be set.
type Config struct {
	// Servers are URLs, nats:// or tls://. They bear no user: a message that shows one tells no password. One that answers is
	// enough: it names the others.
	Servers []string
	// User is told to each of them: a name and a password, or a token alone; nil: none.
	User *url.Userinfo
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

// ParseLog returns Servers, User and Stream of what an operator writes, nats://HOST:PORT[,HOST:PORT…]/STREAM. The scheme and the
// user information hold for all hosts. No error shows any of it: where it cannot be told what is what, any of it may be a password.
func ParseLog(s string) (c Config, err error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != "nats" && scheme != "tls" {
		return c, errors.New("the address of a log does not begin with nats:// or tls://")
	}
	user, hosts := "", rest
	if i := strings.LastIndex(rest, "@"); i >= 0 { // first: a password may hold a slash
		user, hosts = rest[:i+1], rest[i+1:]
	}
	at := strings.LastIndex(hosts, "/")
	if at < 0 {
		return c, errors.New("the address of a log names no stream after the servers")
	}
	if c.Stream = hosts[at+1:]; !streamName.MatchString(c.Stream) {
		return c, errors.New("the name of a stream is not one of up to 64 letters, digits, - and _")
	}
	all := strings.Split(hosts[:at], ",")
	for i, host := range all {
		u, err := url.Parse(scheme + "://" + user + host)
		if err == nil {
			_, err = net.LookupPort("tcp", u.Port()) // 65536 is none
		}
		if err != nil || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			return c, fmt.Errorf("server %d of %d: what is given is not the address of a server, HOST:PORT (in a password, write / ? # %% and spaces as %%XX)",
				i+1, len(all))
		}
		c.User, u.User = u.User, nil
		c.Servers = append(c.Servers, u.String())
	}
	return c, nil
}

var userInfo = regexp.MustCompile(`(?s)^((?:nats|tls)://)?.*@`)

// Redact returns a URL of the log without what comes before an @, to be shown.
func Redact(s string) string { return userInfo.ReplaceAllString(s, "$1") }

func (c *Config) subject() string { return c.Stream + ".log" }
