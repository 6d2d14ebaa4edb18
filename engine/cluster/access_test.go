package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"ledgerd/bench/proc"
	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger/ledgertest"
)

// TestOldServersAreRefused looks at what servers say of themselves.
func TestOldServersAreRefused(t *testing.T) {
	for version, want := range map[string]error{
		"2.12.0": nil, "2.12.0-RC.1": nil, "2.15.2": nil, "3.0.0": nil, "10.1": nil,
		"2.11.9": ErrOldServer, "1.12.0": ErrOldServer, "2": ErrOldServer, "dev": ErrOldServer, "": ErrOldServer,
	} {
		err := checkVersion("a", version)
		if !errors.Is(err, want) || err != nil && (!permanent(err) || !strings.Contains(err.Error(), version)) {
			t.Errorf("version %q: err = %v, want %v", version, err, want)
		}
	}
}

// testSyncIsProven asks servers that answer as they do where their operator lets a node's user ask.
func testSyncIsProven(r *rig) {
	c := r.open(Config{Servers: []string{r.servers.URL(0)}, MayWrite: true})
	_, info, err := c.bind(r.Context())
	must(r, err)
	server, err := nats.Connect(r.servers.URL(0))
	must(r, err)
	defer server.Close()
	syncs := func(name string) string {
		return `{"server":{"name":"` + name + `"},"data":{"config":{"sync_always":true}}}`
	}
	var answers atomic.Pointer[[]string]
	for i, tt := range []struct {
		answers []string
		want    string // "": it is proven
	}{
		{nil, "do not tell"}, // before anybody answers
		{[]string{syncs("s1"), syncs("s2")}, "1 servers do not tell"},
		{[]string{syncs("s1"), `{"server":{"name":"stranger"},"data":{}}`, syncs("s0"), syncs("s2")}, ""},
		{[]string{`{"server":{"name":"s0"},"data":{"config":{}}}`}, "server s0 does not"},
		{[]string{"{"}, "cannot read"},
	} {
		answers.Store(&tt.answers)
		if i == 1 {
			_, err = server.Subscribe(syncQuestion, func(m *nats.Msg) {
				for _, answer := range *answers.Load() {
					_ = m.Respond([]byte(answer)) // who asks waits in vain where this fails
				}
			})
			must(r, errors.Join(err, server.Flush()))
		}
		if err := c.proveSync(info); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			r.Errorf("%q: err = %v, want %q", tt.answers, err, tt.want)
		}
	}
	answers.Store(&[]string{syncs("s0"), syncs("s1"), syncs("s2")})
	eventually(r, "a node that was not answered at first asks again", c.stats.syncProven.Load)
	_, err = c.js.Publish(r.Context(), c.config.subject(), []byte("a message"))
	must(r, err)
	eventually(r, "one that does not follow knows what the stream holds", func() bool { return c.stats.bytes.Load() > 0 })
}

// TestAccountsOfOthers shares a log on servers that have a certificate and a tag, in an account that knows a user, lets it ask how they sync,
// and asks for a bound of each stream. A full log takes nothing, and says so, until it may hold more.
func TestAccountsOfOthers(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	key, err := x509.MarshalPKCS8PrivateKey(certified.TLS.Certificates[0].PrivateKey)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	certificateFile := write(t, "server.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}))
	keyFile := write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	certificate := fmt.Sprintf("tls { cert_file: %q, key_file: %q }", certificateFile, keyFile)
	s := natstest.Start(t, 3, certificate, `server_tags: ["region:here"]`, `system_account: SYS, accounts {
		SYS { exports: [ { service: "$SYS.REQ.SERVER.PING.JSZ", response: stream } ] }
		LEDGER {
			jetstream { max_file: 1G, max_mem: 1M, max_bytes_required: true }, users: [ { user: node, password: "p@ss/word" } ]
			imports: [ { service: { account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ" } } ]
		}
	}`)
	r := newRig(t, s, "bounds")
	connect := func(user *url.Userinfo, trusted *x509.CertPool) *Cluster {
		return r.open(Config{
			Servers: []string{"tls://" + s.Addr(0)}, User: user, MayWrite: true, TLS: &tls.Config{RootCAs: trusted},
			MaxBytes: 1 << 20, Tags: []string{"region:here"}, APIPrefix: "$JS.API",
		})
	}
	user := url.UserPassword("node", "p@ss/word")
	w := r.start(connect(user, roots), nil)
	w.becomesWriter()
	w.mustCommit(2, 100)
	eventually(t, "the servers say that they sync", w.stats.syncProven.Load)
	for name, tt := range map[string]struct {
		c    *Cluster
		want string
	}{
		"another password":          {connect(url.UserPassword("node", "other"), roots), "authorization"},
		"no user":                   {connect(nil, roots), "authorization"},
		"a certificate of nobody's": {connect(user, nil), "certificate"},
	} {
		eventually(t, "trouble is told with "+name, func() bool { return strings.Contains(strings.ToLower(tt.c.Trouble()), tt.want) })
		if trouble := tt.c.Trouble(); strings.Contains(trouble, "ss/word") || strings.Contains(trouble, "ss%2F") {
			t.Errorf("%s: the password is shown: %s", name, trouble)
		}
	}
	full := func() bool { return strings.Contains(w.Trouble(), "maximum bytes exceeded") }
	late := w.lateCommit(10, 1000)
	for !full() {
		select {
		case err := <-late:
			must(t, err)
			late = w.lateCommit(10, 1000)
		case <-time.After(10 * time.Millisecond):
		}
	}
	stream, err := w.js.Stream(t.Context(), "bounds")
	must(t, err)
	more := stream.CachedInfo().Config
	ledgertest.Holds(t, more.MaxBytes == 1<<20 && more.Placement != nil && len(more.Placement.Tags) == 1, "%+v", more)
	more.MaxBytes *= 100
	_, err = w.js.UpdateStream(t.Context(), more)
	must(t, errors.Join(err, <-late))
	standby := r.start(connect(user, roots), nil)
	eventually(t, "what the log may hold is told", func() bool { return standby.stats.maxBytes.Load() == 100<<20 && standby.stats.bytes.Load() > 0 })
}

// TestLogBehindALeafNode shares a log whose server some nodes reach by way of a leaf node, which has no JetStream.
func TestLogBehindALeafNode(t *testing.T) {
	t.Parallel()
	var at [2]string
	for i := range at {
		free, held, err := proc.FreeAddress()
		must(t, err)
		defer held.Close()
		at[i] = free.String()
	}
	r := newRig(t, natstest.Start(t, 1, fmt.Sprintf("jetstream { domain: hub, store_dir: %q }, leafnodes { listen: %q }", t.TempDir(), at[0])), "leaf")
	config := write(t, "leaf.conf", fmt.Appendf(nil, "listen: %q, leafnodes { remotes: [ { url: %q } ] }", at[1], "nats-leaf://"+at[0]))
	leaf, err := proc.Launch(t.Context(), proc.Command{Words: []string{natstest.Program(t), "--config", config}})
	must(t, err)
	defer leaf.Kill()
	behind := Config{Servers: []string{"nats://" + at[1]}, Domain: "hub", MayWrite: true}
	w := r.follow(behind, nil)
	w.becomesWriter()
	w.mustCommit(3, 1000)
	r.reader("r").mustReach(w)
	standby := r.follow(behind, nil)
	standby.mustReach(w)
	w.Close()
	standby.becomesWriter()
	standby.mustCommit(1, 1)
}

func write(t *testing.T, name string, b []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, b, 0o600))
	return path
}

// TestCredentials writes through a server that trusts an operator, with the credentials that the operator's account gave.
func TestCredentials(t *testing.T) {
	t.Parallel()
	operator := ledgertest.ReadFile(t, "testdata/operator.conf")
	r := newRig(t, natstest.Start(t, 1, string(operator)), "credentials")
	w := r.follow(Config{MayWrite: true, Credentials: "testdata/node.creds"}, nil)
	w.becomesWriter()
	w.mustCommit(1, 1)
	none := r.open(Config{})
	eventually(t, "who has none is told", func() bool { return strings.Contains(strings.ToLower(none.Trouble()), "authorization") })
}
