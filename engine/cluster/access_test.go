package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"ledgerd/engine/cluster/natstest"
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

// TestSyncIsProven asks servers that answer as they do where their operator lets a node's user ask.
func TestSyncIsProven(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	c := open(t, s.URLs(), Config{Stream: "sync", MayWrite: true, Replicas: 1})
	_, info, err := c.bind(t.Context())
	noErr(t, err)
	server, err := nats.Connect(s.URL(0))
	noErr(t, err)
	defer server.Close()
	var answers atomic.Pointer[[]string]
	for i, tt := range []struct {
		answers []string
		want    string // "": it is proven
	}{
		{nil, "do not tell"}, // before anybody answers
		{[]string{`{"server":{"name":"s1"},"data":{"config":{"sync_always":true}}}`}, "do not tell"},
		{[]string{`{"server":{"name":"s1"},"data":{}}`, `{"server":{"name":"s0"},"data":{"config":{"sync_always":true}}}`}, ""},
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
			noErr(t, errors.Join(err, server.Flush()))
		}
		if err := c.proveSync(info); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: err = %v, want %q", tt.answers, err, tt.want)
		}
	}
}

// TestUsersAndTLS writes to servers that have a certificate and know a user, whom they let ask how they sync.
func TestUsersAndTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	key, err := x509.MarshalPKCS8PrivateKey(certified.TLS.Certificates[0].PrivateKey)
	noErr(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	certificateFile := write(t, "server.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}))
	keyFile := write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	certificate := fmt.Sprintf("tls { cert_file: %q, key_file: %q }", certificateFile, keyFile)
	s := natstest.Start(t, 3, certificate, `system_account: SYS, accounts {
		SYS { exports: [ { service: "$SYS.REQ.SERVER.PING.JSZ", response: stream } ] }
		LEDGER {
			jetstream: enabled, users: [ { user: node, password: "p@ss/word" } ]
			imports: [ { service: { account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ" } } ]
		}
	}`)
	connect := func(user string, trusted *x509.CertPool) *Cluster {
		config := Config{Stream: "users", MayWrite: true, TLS: &tls.Config{RootCAs: trusted}}
		return open(t, []string{"tls://" + user + s.Addr(0)}, config)
	}
	const user = "node:p%40ss%2Fword@"
	w := follow(t, connect(user, roots), nil)
	w.writes()
	w.mustCommit(rand.New(rand.NewPCG(19, 0)), 2, 3000)
	eventually(t, "the servers say that they sync", w.stats.syncProven.Load)
	for name, tt := range map[string]struct {
		c    *Cluster
		want string
	}{
		"another password":          {connect("node:other@", roots), "authorization"},
		"no user":                   {connect("", roots), "authorization"},
		"a certificate of nobody's": {connect(user, nil), "certificate"},
	} {
		eventually(t, "trouble is told with "+name, func() bool { return strings.Contains(strings.ToLower(tt.c.Trouble()), tt.want) })
		if trouble := tt.c.Trouble(); strings.Contains(trouble, "ss/word") || strings.Contains(trouble, "ss%2F") {
			t.Errorf("%s: the password is shown: %s", name, trouble)
		}
	}
}

func write(t *testing.T, name string, b []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	noErr(t, os.WriteFile(path, b, 0o600))
	return path
}

// TestCredentials writes through a server that trusts an operator, with the credentials that the operator's account gave.
func TestCredentials(t *testing.T) {
	t.Parallel()
	operator, system := newKey(t, nkeys.CreateOperator), newKey(t, nkeys.CreateAccount)
	account, user := newKey(t, nkeys.CreateAccount), newKey(t, nkeys.CreateUser)
	limits := map[string]int{"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1}
	stored := maps.Clone(limits)
	stored["disk_storage"], stored["streams"], stored["consumer"] = -1, -1, -1
	s := natstest.Start(t, 1,
		"operator: "+operator.says(operator, "operator", map[string]any{"system_account": system.public}),
		"system_account: "+system.public,
		"resolver: MEMORY", "resolver_preload: {",
		system.public+": "+operator.says(system, "account", map[string]any{"limits": limits}),
		account.public+": "+operator.says(account, "account", map[string]any{"limits": stored}), "}",
	)
	seed, err := user.Seed()
	noErr(t, err)
	credentials := write(t, "node.creds", fmt.Appendf(nil, "-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n"+
		"-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n",
		account.says(user, "user", map[string]any{"subs": -1, "data": -1, "payload": -1}), seed))
	w := follow(t, open(t, s.URLs(), Config{Stream: "credentials", MayWrite: true, Replicas: 1, Credentials: credentials}), nil)
	w.writes()
	w.mustCommit(rand.New(rand.NewPCG(20, 0)), 1, 1)
	none := open(t, s.URLs(), Config{Stream: "credentials"})
	eventually(t, "who has none is told", func() bool { return strings.Contains(strings.ToLower(none.Trouble()), "authorization") })
}

// signer is an operator, an account or a user.
type signer struct {
	nkeys.KeyPair
	t      *testing.T
	public string
}

func newKey(t *testing.T, create func() (nkeys.KeyPair, error)) *signer {
	t.Helper()
	pair, err := create()
	noErr(t, err)
	public, err := pair.PublicKey()
	noErr(t, err)
	return &signer{pair, t, public}
}

// says returns what a signer says of another one: a JWT as nats-server reads it.
func (s *signer) says(of *signer, kind string, claims map[string]any) string {
	s.t.Helper()
	claims["type"], claims["version"] = kind, 2
	body, err := json.Marshal(map[string]any{"jti": of.public, "iat": 1, "iss": s.public, "name": kind, "sub": of.public, "nats": claims})
	noErr(s.t, err)
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"typ":"JWT","alg":"ed25519-nkey"}`)) + "." + encode(body)
	signature, err := s.Sign([]byte(text))
	noErr(s.t, err)
	return text + "." + encode(signature)
}
