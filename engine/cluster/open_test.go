package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
)

// TestLogIsParsed reads what operators write.
func TestLogIsParsed(t *testing.T) {
	tests := map[string][]string{ // servers and stream; nil: an error
		"nats://a:1/s":                          {"nats://a:1", "s"},
		"nats://a:1,b:2,c/ledger-1":             {"nats://a:1", "nats://b:2", "nats://c", "ledger-1"},
		"tls://user:pass@a:1,b:2/s_2":           {"tls://user:pass@a:1", "tls://user:pass@b:2", "s_2"},
		"nats://[::1]:4222/s":                   {"nats://[::1]:4222", "s"},
		"http://a:1/s":                          nil,
		"a:1/s":                                 nil,
		"nats://a:1":                            nil,
		"nats://a:1/":                           nil,
		"nats://a:1/s.t":                        nil,
		"nats:///s":                             nil,
		"nats://a:1,/s":                         nil,
		"nats://a:1/t/s":                        nil,
		"nats://a:1/" + strings.Repeat("x", 65): nil,
	}
	for in, want := range tests {
		servers, stream, err := ParseLog(in)
		if (err != nil) != (want == nil) || err == nil && !slices.Equal(append(servers, stream), want) {
			t.Errorf("ParseLog(%q) = %q, %q, %v, want %q", in, servers, stream, err, want)
		}
	}
}

// TestErrorsTellNoPassword makes each mistake that an operator may with an address that holds one.
func TestErrorsTellNoPassword(t *testing.T) {
	for _, in := range []string{
		"nats://user:secret@a:1/s.t", "nats://user:sec/ret@a:1", "nats://user:sec/ret@a:1/s", "nats://user:secret/ret", "nats://user:secret,x",
		"user:secret@a:1/s", "http://user:secret@a:1/s", "nats://secret@", "nats://user:sec%zzret@a:1/s", "nats://user:sec ret@a:1/s",
		"nats://user:secret@a:1,b/c/s", "nats://user:sec?ret@a:1/s", "nats://user:sec#ret@a:1/s", "nats://user:secret@a:port/s",
	} {
		servers, stream, err := ParseLog(in)
		if err == nil {
			t.Errorf("ParseLog(%q) = %q, %q", in, servers, stream)
		} else if strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "ret") {
			t.Errorf("ParseLog(%q): the error tells a password: %v", in, err)
		}
		if strings.Contains(in, "@") && strings.Contains(Redact(in), "sec") {
			t.Errorf("Redact(%q) = %q", in, Redact(in))
		}
	}
	for _, servers := range [][]string{
		{"nats://user:secret@a:1?x=y"}, {"nats://user:sec/ret@a:1"}, {"nats://user:secret@a:1", "nats://user:other@a:2"},
	} {
		c, err := Open(Config{Servers: servers, Stream: "s", NodeID: "n"})
		if err == nil {
			c.Close()
			t.Errorf("Open takes %q", servers)
		} else if strings.Contains(err.Error(), "sec") {
			t.Errorf("Open(%q): the error tells a password: %v", servers, err)
		}
	}
}

// TestPasswordMayHoldSeparators gives the library what it is to tell servers, and addresses that bear none of it.
func TestPasswordMayHoldSeparators(t *testing.T) {
	tests := map[string][3]string{ // user, password, token
		"nats://u:secret,x@127.0.0.1:1,127.0.0.1:2/S":  {"u", "secret,x", ""},
		"nats://u:p@s@127.0.0.1:1,127.0.0.1:2/S":       {"u", "p@s", ""},
		"nats://u:p%2Fs%20s@127.0.0.1:1,127.0.0.1:2/S": {"u", "p/s s", ""},
		"nats://token,x@127.0.0.1:1,127.0.0.1:2/S":     {"", "", "token,x"},
		"nats://127.0.0.1:1,127.0.0.1:2/S":             {"", "", ""},
	}
	for in, want := range tests {
		servers, stream, err := ParseLog(in)
		if err != nil {
			t.Errorf("ParseLog(%q): %v", in, err)
			continue
		}
		o := open(t, servers, Config{Stream: stream}).conn.Opts
		if got := [3]string{o.User, o.Password, o.Token}; got != want {
			t.Errorf("%s: the servers are told %q, want %q", in, got, want)
		}
		if want := []string{"nats://127.0.0.1:1", "nats://127.0.0.1:2"}; o.Url != "" || !slices.Equal(o.Servers, want) {
			t.Errorf("%s: servers %q and %q, want %q", in, o.Url, o.Servers, want)
		}
	}
}

// TestServerComesLater opens a connection where nobody listens, and one more that is closed before anybody does.
func TestServerComesLater(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	s.Kill(0)
	random := rand.New(rand.NewPCG(11, 0))
	config := Config{Stream: "later", NodeID: "n", MayWrite: true, MayMakeSnapshots: true, Replicas: 1}
	gone := follow(t, open(t, s.URLs(), config), nil)
	if gone.Trouble() == "" {
		t.Error("no trouble is told without a server")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := gone.Facts(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Facts with a context that ended: %v", err)
	}
	gone.Close()
	if err := gone.end(); !errors.Is(err, ErrClosed) {
		t.Errorf("who followed when it was closed: err = %v, want %v", err, ErrClosed)
	}
	n := follow(t, open(t, s.URLs(), config), nil)
	s.Restart(0)
	n.writes()
	for range 5 {
		n.mustCommit(random, 2, 1000)
	}
	if n.Log().Behind() != 0 || n.Trouble() != "" {
		t.Errorf("behind by %v, trouble %q", n.Log().Behind(), n.Trouble())
	}

	// A commit that is given up is the last one.
	ctx, cancel = context.WithCancel(t.Context())
	late := make(chan error, 1)
	s.Kill(0)
	go func() { late <- n.Log().Commit(ctx, commitOf(random, pointAfter(n.has()), 1, 1)) }()
	eventually(t, "the writer says so", func() bool { return n.Trouble() != "" })
	cancel()
	if err := <-late; !errors.Is(err, context.Canceled) {
		t.Errorf("a commit that is given up: err = %v", err)
	}
	s.Restart(0)
	if err := n.commit(random, 1, 1); err == nil {
		t.Error("a commit after one that was given up is taken")
	}
}

// TestStreamBeginsWhereItsWriterStands lets a node that holds something found the stream. One that holds less needs a snapshot.
func TestStreamBeginsWhereItsWriterStands(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	random := rand.New(rand.NewPCG(12, 0))
	held := commitOf(random, ledger.LogPoint{}, 7, 1)
	c := open(t, s.URLs(), Config{Stream: "founded", NodeID: "w", MayWrite: true, Replicas: 1})
	w := follow(t, c, held)
	w.writes()
	w.mustCommit(random, 2, 1)
	same := follow(t, open(t, s.URLs(), Config{Stream: "founded", NodeID: "r"}), held)
	same.waitFor(9)
	mustEqual(t, same.has(), w.has())
	named(t, s, Config{Stream: "founded", NodeID: "less"}, held[:6], ErrPurged)
	other := commitOf(random, ledger.LogPoint{}, 7, 1)
	named(t, s, Config{Stream: "founded", NodeID: "other"}, other, ErrOtherLedger)
	// Who followed another stream before does not found one, and does not take one that lost everything for new.
	alone := open(t, s.URLs(), Config{Stream: "missing", NodeID: "n", LedgerID: "known", MayWrite: true, Replicas: 1})
	if _, _, err := alone.Facts(t.Context()); !errors.Is(err, ErrRecreated) {
		t.Errorf("a stream that is missing: err = %v, want %v", err, ErrRecreated)
	}
	if _, err := alone.js.Stream(t.Context(), "missing"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream that is missing: err = %v, want %v", err, jetstream.ErrStreamNotFound)
	}
}

// TestStreamThatForgetsIsRefused sets limits that lose messages.
func TestStreamThatForgetsIsRefused(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	c := open(t, s.URLs(), Config{Stream: "forgets", NodeID: "w", MayWrite: true, Replicas: 1})
	_, info, err := c.bind(t.Context())
	noErr(t, err)
	update := func(change func(k *jetstream.StreamConfig)) {
		t.Helper()
		k := info.Config
		change(&k)
		_, err := c.js.UpdateStream(t.Context(), k)
		noErr(t, err)
	}
	for _, change := range []func(k *jetstream.StreamConfig){
		func(k *jetstream.StreamConfig) { k.MaxAge = time.Hour },
		func(k *jetstream.StreamConfig) { k.MaxMsgsPerSubject = 100 }, // it discards what is old, whatever Discard says
		func(k *jetstream.StreamConfig) { k.MaxMsgs, k.Discard = 100, jetstream.DiscardOld },
	} {
		update(change)
		named(t, s, Config{Stream: "forgets", NodeID: "n", LedgerID: c.knownID()}, nil, ErrUnsafe)
	}
	info.Config.PersistMode = jetstream.AsyncPersistMode // which no update sets
	if err := c.identify(info); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a stream that is acknowledged before it is written: err = %v", err)
	}
	info.Config.PersistMode = jetstream.DefaultPersistMode
	update(func(k *jetstream.StreamConfig) { // a full one refuses what is new
		k.MaxBytes, k.MaxMsgsPerSubject, k.DiscardNewPerSubject = 100<<20, 100, true
	})
	follow(t, c, nil).writes()
}

// TestReadsAreTheLeaders reads a stream that an earlier program made so that servers that lag behind the others answer as well.
func TestReadsAreTheLeaders(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	w := follow(t, open(t, s.URLs(), Config{Stream: "direct", NodeID: "w", MayWrite: true, Replicas: 1}), nil)
	w.writes()
	w.mustCommit(rand.New(rand.NewPCG(18, 0)), 2, 1)
	stream, err := w.js.Stream(t.Context(), "direct")
	noErr(t, err)
	config := stream.CachedInfo().Config
	if config.AllowDirect {
		t.Error("servers that lag behind the others answer for a new stream")
	}
	config.AllowDirect = true
	_, err = w.js.UpdateStream(t.Context(), config)
	noErr(t, err)
	asked, err := w.conn.SubscribeSync("$JS.API.STREAM.MSG.GET.>")
	direct, err2 := w.conn.SubscribeSync("$JS.API.DIRECT.GET.>")
	noErr(t, errors.Join(err, err2, w.conn.Flush()))
	follow(t, open(t, s.URLs(), Config{Stream: "direct", NodeID: "r"}), w.has()[:1]).waitFor(2)
	noErr(t, w.conn.Flush())
	if _, err := asked.NextMsg(patience); err != nil {
		t.Error("no message was asked for: ", err)
	}
	if m, err := direct.NextMsg(time.Nanosecond); err == nil {
		t.Error("any server may answer to ", m.Subject)
	}
}

// TestShortenedStreamIsNamed gives the only server an older disk back: it lost what it had acknowledged. Nobody goes on from
// there, neither who followed all the time nor who comes back.
func TestShortenedStreamIsNamed(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	random := rand.New(rand.NewPCG(16, 0))
	w := follow(t, open(t, s.URLs(), Config{Stream: "short", NodeID: "w", MayWrite: true, Replicas: 1}), nil)
	w.writes()
	live := follow(t, open(t, s.URLs(), Config{Stream: "short", NodeID: "live"}), nil)
	for range 3 {
		w.mustCommit(random, 2, 1)
	}
	id := w.knownID()
	s.Kill(0)
	restore := s.Save(0)
	s.Restart(0)
	for range 3 {
		w.mustCommit(random, 2, 1)
	}
	live.waitFor(12)
	s.Kill(0)
	restore()
	s.Restart(0)
	if err := live.end(); !errors.Is(err, ErrShortened) {
		t.Errorf("who followed: err = %v, want %v", err, ErrShortened)
	}
	if err := w.commit(random, 1, 1); !errors.Is(err, ErrShortened) {
		t.Errorf("the writer: err = %v, want %v", err, ErrShortened)
	}
	named(t, s, Config{Stream: "short", NodeID: "back", LedgerID: id}, w.has(), ErrShortened)
	// Who held less cannot know.
	follow(t, open(t, s.URLs(), Config{Stream: "short", NodeID: "behind", LedgerID: id}), w.has()[:5]).waitFor(6)
}
