package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// TestLogIsParsed reads what operators write. The library is given addresses that bear no user, and what it is to tell servers. Of an
// address that is mistaken an error tells no password, which is the word secret, or two with these letters.
func TestLogIsParsed(t *testing.T) {
	ledgertest.Scenes(t, "testdata/logs.txt", "# ", *update, func(t *testing.T, scene string) string {
		in, _, _ := strings.Cut(scene, "\n")
		told, shown := "", Redact(in)
		ledgertest.Holds(t, !strings.Contains(in, "@") || !strings.Contains(shown, "sec"), "%s: the password is shown: %s", in, shown)
		if c, err := ParseLog(in); err != nil {
			told = err.Error()
			ledgertest.Holds(t, !strings.Contains(told, "sec") && !strings.Contains(told, "ret"), "%s: an error tells the password: %s", in, told)
		} else {
			var o nats.Options
			for _, option := range (&Cluster{config: c}).options() {
				must(t, option(&o))
			}
			ledgertest.Equal(t, o.Url, "", "%q: the URL", in)
			told = fmt.Sprintf("servers %q, stream %q, user %q, password %q, token %q", o.Servers, c.Stream, o.User, o.Password, o.Token)
		}
		return fmt.Sprintf("# %s\n\t%s\n\tshown as %s\n\n", in, told, shown)
	})
}

// F53: TestOnlyServerIsGone kills the only server, which has nothing yet, or gets an older disk back.
func TestOnlyServerIsGone(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	testServerComesLater(newRig(t, s, "later"))
	testShortenedStreamIsNamed(newRig(t, s, "short"))
}

// testServerComesLater opens a connection where nobody listens, and one more that is closed before anybody does.
func testServerComesLater(r *rig) {
	s := r.servers
	s.Kill(0)
	config := Config{MayWrite: true}
	gone := r.follow(config, nil)
	ledgertest.Holds(r, gone.Trouble() != "", "no trouble is told without a server")
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	_, _, err := gone.Facts(ctx)
	ledgertest.ErrorIs(r, err, context.Canceled, "Facts with a context that ended")
	gone.Close()
	ledgertest.ErrorIs(r, gone.end(), ErrClosed, "who followed when it was closed")
	n := r.follow(config, nil)
	s.Restart(0)
	n.becomesWriter()
	for range 5 {
		n.mustCommit(2, 1000)
	}
	ledgertest.Equal(r, n.Log().Behind(), 0, "behind by")
	ledgertest.Equal(r, n.Trouble(), "", "trouble")

	// A commit that is given up is the last one.
	ctx, cancel = context.WithCancel(r.Context())
	late := make(chan error, 1)
	s.Kill(0)
	go func() { late <- n.Log().Commit(ctx, commitOf(r.random, pointAfter(n.has()), 1, 1)) }()
	eventually(r, "the writer says so", func() bool { return n.Trouble() != "" })
	cancel()
	ledgertest.ErrorIs(r, <-late, context.Canceled, "a commit that is given up")
	s.Restart(0)
	ledgertest.ErrorSays(r, n.commit(1, 1), "the log has failed", "a commit after one that was given up")
}

// testStreamBeginsWhereItsWriterStands lets a node that holds something found the stream. One that holds less needs a snapshot.
func testStreamBeginsWhereItsWriterStands(r *rig) {
	held := commitOf(r.random, ledger.LogPoint{}, 7, 1)
	w := r.follow(Config{NodeID: "w", MayWrite: true}, held)
	w.becomesWriter()
	w.mustCommit(2, 1)
	r.follow(Config{NodeID: "r"}, held).mustReach(w)
	r.mustRefuse(Config{}, held[:6], ErrPurged)
	r.mustRefuse(Config{}, commitOf(r.random, ledger.LogPoint{}, 7, 1), ErrOtherLedger)
	// Who followed another stream before does not found one, and does not take one that lost everything for new.
	missing := newRig(r, r.servers, "missing")
	alone := missing.open(Config{LedgerID: "known", MayWrite: true})
	_, _, err := alone.Facts(r.Context())
	ledgertest.ErrorIs(r, err, ErrRecreated, "a stream that is missing")
	_, err = alone.js.Stream(r.Context(), "missing")
	ledgertest.ErrorIs(r, err, jetstream.ErrStreamNotFound, "the stream that is missing")
	// Who ends while it writes has no trouble with the cluster.
	ended, end := context.WithCancel(r.Context())
	end()
	ledgertest.ErrorIs(r, w.Log().Commit(ended, commitOf(r.random, pointAfter(w.has()), 1, 1)), context.Canceled, "a commit with a context that ended")
	ledgertest.Equal(r, w.Trouble(), "", "trouble")
}

// F53: testStreamThatForgetsIsRefused sets limits that lose messages.
func testStreamThatForgetsIsRefused(r *rig) {
	c := r.open(Config{NodeID: "w", MayWrite: true})
	_, info, err := c.bind(r.Context())
	must(r, err)
	update := func(change func(k *jetstream.StreamConfig)) {
		r.Helper()
		k := info.Config
		change(&k)
		_, err := c.js.UpdateStream(r.Context(), k)
		must(r, err)
	}
	for _, change := range []func(k *jetstream.StreamConfig){
		func(k *jetstream.StreamConfig) { k.MaxAge = time.Hour },
		func(k *jetstream.StreamConfig) { k.MaxMsgsPerSubject = 100 }, // it discards what is old, whatever Discard says
		func(k *jetstream.StreamConfig) { k.MaxMsgs, k.Discard = 100, jetstream.DiscardOld },
	} {
		update(change)
		r.mustRefuse(Config{LedgerID: c.knownID()}, nil, ErrUnsafe)
	}
	eventually(r, "who is connected, and does not follow, has trouble", func() bool { return strings.Contains(c.Trouble(), ErrUnsafe.Error()) })
	info.Config.PersistMode = jetstream.AsyncPersistMode // which no update sets
	ledgertest.ErrorIs(r, c.identify(info), ErrUnsafe, "a stream that is acknowledged before it is written")
	info.Config.PersistMode = jetstream.DefaultPersistMode
	update(func(k *jetstream.StreamConfig) { // a full one refuses what is new
		k.MaxBytes, k.MaxMsgsPerSubject, k.DiscardNewPerSubject = 100<<20, 100, true
	})
	eventually(r, "it has none any more", func() bool { return c.Trouble() == "" })
	r.start(c, nil).becomesWriter()
}

// testReadsAreTheLeaders reads a stream that an earlier program made so that servers that lag behind the others answer as well.
func testReadsAreTheLeaders(r *rig) {
	w := r.writer("w")
	w.mustCommit(2, 1)
	stream, err := w.js.Stream(r.Context(), r.stream)
	must(r, err)
	config := stream.CachedInfo().Config
	ledgertest.Holds(r, !config.AllowDirect, "servers that lag behind the others answer for a new stream")
	config.AllowDirect = true
	_, err = w.js.UpdateStream(r.Context(), config)
	must(r, err)
	asked, err := w.conn.SubscribeSync("$JS.API.STREAM.MSG.GET." + r.stream)
	direct, err2 := w.conn.SubscribeSync("$JS.API.DIRECT.GET." + r.stream)
	must(r, errors.Join(err, err2, w.conn.Flush()))
	r.follow(Config{NodeID: "r"}, w.has()[:1]).waitFor(2)
	must(r, w.conn.Flush())
	if _, err := asked.NextMsg(patience); err != nil {
		r.Error("no message was asked for: ", err)
	}
	if m, err := direct.NextMsg(time.Nanosecond); err == nil {
		r.Error("any server may answer to ", m.Subject)
	}
}

// testShortenedStreamIsNamed gives the only server an older disk, which lost what it had acknowledged. Nobody goes on from there, neither who
// followed all the time nor who comes back.
func testShortenedStreamIsNamed(r *rig) {
	s := r.servers
	w, live := r.writer("w"), r.reader("live")
	for range 3 {
		w.mustCommit(2, 1)
	}
	id := w.knownID()
	s.Kill(0)
	dir, kept := s.Store(0), filepath.Join(r.TempDir(), "kept")
	must(r, os.CopyFS(kept, os.DirFS(dir)))
	s.Restart(0)
	for range 3 {
		w.mustCommit(2, 1)
	}
	live.waitFor(12)
	s.Kill(0)
	must(r, errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(kept))))
	s.Restart(0)
	late := w.lateCommit(1, 1)
	ledgertest.ErrorIs(r, live.end(), ErrShortened, "who followed")
	ledgertest.ErrorIs(r, <-late, ErrShortened, "the writer")
	r.mustRefuse(Config{NodeID: "back", LedgerID: id}, w.has(), ErrShortened)
	// Who held less cannot know.
	r.follow(Config{NodeID: "behind", LedgerID: id}, w.has()[:5]).waitFor(6)
}
