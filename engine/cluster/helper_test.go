package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "24") // they wait for servers most of the time; -parallel still overrides it
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of a test; it is no measure of anything.
const patience = 2 * time.Minute

// commitOf returns records after a point: each with so many updates, and a state hash that none other has.
func commitOf(random *rand.Rand, from ledger.LogPoint, records, updates int) []*ledger.Record {
	commit := make([]*ledger.Record, records)
	for i := range commit {
		r := &ledger.Record{
			Version: from.Version + ledger.Version(i) + 1, Kind: ledger.StatusRecord, Status: ledger.StatusConfirmed,
			Slot: from.Slot + ledger.Slot(i) + 1, FirstSeq: 1, Hash: ledger.Hash(key(random)),
		}
		for j := range r.StateHash {
			r.StateHash[j] = random.Uint64()
		}
		for range updates {
			a := ledger.Account{
				Pubkey: key(random), Owner: programs[random.IntN(len(programs))], Lamports: ledger.Lamports(random.Uint64N(1e12)),
				Known: ledger.FieldsShown, Provenance: ledger.BlockProvenance(r.Slot),
			}
			r.Updates = append(r.Updates, ledger.Update{Account: a})
		}
		commit[i] = r
	}
	return commit
}

// programs own accounts: few, as in the field.
var programs = func() (keys [8]ledger.Pubkey) {
	random := rand.New(rand.NewPCG(1, 1))
	for i := range keys {
		keys[i] = key(random)
	}
	return keys
}()

func key(random *rand.Rand) (k ledger.Pubkey) {
	for i := range 4 {
		binary.LittleEndian.PutUint64(k[8*i:], random.Uint64())
	}
	return k
}

// pointAfter returns where a node stands after records.
func pointAfter(records []*ledger.Record) ledger.LogPoint {
	if len(records) == 0 {
		return ledger.LogPoint{}
	}
	return ledger.PointAfter(records[len(records)-1])
}

// rig is a log that the nodes of a test share.
type rig struct {
	testing.TB
	servers *natstest.Servers
	stream  string
	random  *rand.Rand
	ctx     context.Context
}

func newRig(t testing.TB, s *natstest.Servers, stream string) *rig {
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	return &rig{TB: t, servers: s, stream: stream, random: rand.New(rand.NewPCG(uint64(len(stream)), 0)), ctx: ctx}
}

// Context has a deadline: without one the client of JetStream gives a request two seconds, which a busy machine may take.
func (r *rig) Context() context.Context { return r.ctx }

// open opens a connection to the log. Unless the Config names others, it is to all servers.
func (r *rig) open(config Config) *Cluster {
	r.Helper()
	config.Stream, config.Logger = r.stream, slog.New(slog.DiscardHandler)
	config.NodeID = cmp.Or(config.NodeID, "node")
	if len(config.Servers) == 0 {
		config.Servers = r.servers.URLs()
	}
	if config.Replicas == 0 && len(r.servers.URLs()) == 1 {
		config.Replicas = 1
	}
	if testing.Verbose() {
		config.Logger = slog.Default().With("node", config.NodeID)
	}
	c, err := Open(config)
	must(r, err)
	c.pace = pace{gone: 2 * time.Second, look: lookInterval / 4, pause: longestPause / 4, ack: ackTimeout / 4}
	r.Cleanup(c.Close)
	return c
}

// writer opens a node that has become the writer of a log that is empty.
func (r *rig) writer(name string) *node {
	r.Helper()
	n := r.follow(Config{NodeID: name, MayWrite: true}, nil)
	n.becomesWriter()
	return n
}

func (r *rig) reader(name string) *node {
	r.Helper()
	return r.follow(Config{NodeID: name}, nil)
}

// follow opens a node that follows from what it holds.
func (r *rig) follow(config Config, held []*ledger.Record) *node {
	r.Helper()
	return r.start(r.open(config), held)
}

// mustRefuse opens a node that cannot follow from what it holds, and expects why.
func (r *rig) mustRefuse(config Config, held []*ledger.Record, want error) {
	r.Helper()
	n := r.follow(config, held)
	ledgertest.ErrorIs(r, n.end(), want, "from version %d", pointAfter(held).Version)
	n.Close()
}

// node is one that follows, and writes if it may.
type node struct {
	*Cluster
	rig   *rig
	ended chan error // what Follow returned

	mu   sync.Mutex
	held []*ledger.Record
}

// start lets a node follow from what it holds.
func (r *rig) start(c *Cluster, held []*ledger.Record) *node {
	n := &node{Cluster: c, rig: r, ended: make(chan error, 1), held: slices.Clone(held)}
	var following sync.WaitGroup
	following.Go(func() { n.ended <- c.Log().Follow(r.Context(), pointAfter(held), n.take) })
	r.Cleanup(following.Wait)
	return n
}

func (n *node) take(commit []*ledger.Record) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if want := pointAfter(n.held).Version + 1; commit[0].Version != want {
		return fmt.Errorf("version %d was handed out where %d comes next", commit[0].Version, want)
	}
	n.held = append(n.held, commit...)
	return nil
}

// has returns what the node holds.
func (n *node) has() []*ledger.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.held)
}

// waitFor waits until a node holds a version.
func (n *node) waitFor(v ledger.Version) {
	n.rig.Helper()
	eventually(n.rig, fmt.Sprintf("%s holds version %d", n.config.NodeID, v), func() bool {
		if n.version() >= v {
			return true
		}
		select {
		case err := <-n.ended:
			n.rig.Fatalf("%s stopped following at version %d, before %d: %v", n.config.NodeID, n.version(), v, err)
		default:
		}
		return false
	})
}

// end returns what Follow returned.
func (n *node) end() error {
	n.rig.Helper()
	select {
	case err := <-n.ended:
		return err
	case <-time.After(patience):
		n.rig.Fatalf("%s follows on: %s", n.config.NodeID, n.Trouble())
		return nil
	}
}

// becomesWriter waits until the node is the writer.
func (n *node) becomesWriter() {
	n.rig.Helper()
	ledgertest.Mustf(n.rig, n.end(), "%s does not become the writer", n.config.NodeID)
}

// commit writes records after what the writer holds.
func (n *node) commit(records, updates int) error {
	return n.write(commitOf(n.rig.random, pointAfter(n.has()), records, updates))
}

func (n *node) write(commit []*ledger.Record) error {
	ctx, cancel := context.WithTimeout(n.rig.Context(), patience)
	defer cancel()
	if err := n.Log().Commit(ctx, commit); err != nil {
		return err
	}
	return n.take(commit)
}

// mustCommit is commit where nothing may go wrong.
func (n *node) mustCommit(records, updates int) {
	n.rig.Helper()
	must(n.rig, n.commit(records, updates))
}

// mustCommitBlocks writes so many blocks.
func (n *node) mustCommitBlocks(count int) {
	n.rig.Helper()
	commit := commitOf(n.rig.random, pointAfter(n.has()), count, 0)
	for _, r := range commit {
		r.Kind, r.Status, r.Block = ledger.BlockRecord, 0, &ledger.Block{Slot: r.Slot, Blockhash: r.Hash}
	}
	must(n.rig, n.write(commit))
}

// lateCommit begins a commit whose outcome comes later.
func (n *node) lateCommit(records, updates int) <-chan error {
	late := make(chan error, 1)
	go func() { late <- n.commit(records, updates) }()
	return late
}

// version returns the newest that the node holds.
func (n *node) version() ledger.Version { return pointAfter(n.has()).Version }

// mustReach waits until the node holds what another one does, and nothing else.
func (n *node) mustReach(other *node) {
	n.rig.Helper()
	n.waitFor(other.version())
	mustEqual(n.rig, n.has(), other.has())
}

// mustEqual fails unless two nodes hold the same, as far as both go.
func mustEqual(t testing.TB, a, b []*ledger.Record) {
	t.Helper()
	ledgertest.MustHold(t, len(a) == len(b), "%d records and %d", len(a), len(b))
	for i := range a {
		if got, want := codec.AppendRecord(nil, a[i]), codec.AppendRecord(nil, b[i]); !slices.Equal(got, want) {
			t.Fatalf("record %d differs: version %d at slot %d, version %d at slot %d", i, a[i].Version, a[i].Slot, b[i].Version, b[i].Slot)
		}
	}
}

// withoutLease lets a node act as if it always held the lease: what keeps the log whole then is the fencing alone.
func withoutLease(c *Cluster) {
	c.log.lease = &lease{cluster: c}
	c.log.lease.now.Set(holding{has: true, renewed: time.Now().Add(24 * time.Hour), lost: make(chan struct{})})
}

// eventually waits until something holds.
var eventually = natstest.Eventually

var must = ledgertest.Must
