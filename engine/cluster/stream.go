package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// What the stream's metadata hold.
const (
	formatKey = "ledgerd-format"
	idKey     = "ledgerd-ledger-id"
	factsKey  = "ledgerd-facts"
	// founderKey is there where the stream begins after the ledger that a node held: that node.
	founderKey = "ledgerd-founder"

	streamFormat = "1"
	// goneLooks is how many looks in a row must find what cannot be before it is believed, and goneFor how long they must go on
	// where a node stops for good then.
	goneLooks = 5
	goneFor   = 8 * time.Second
	// missingFor is how long looks must find no stream until a node that may makes one.
	missingFor = time.Second
	// aliveWithin is how long ago a server must have answered the one that leads the stream to count as there. They answer
	// each second.
	aliveWithin = 3 * time.Second
)

// Facts waits for the stream and returns its ledger's id, which the node is to keep, and the facts that whoever made it
// gave. A node that may write, and that never followed a stream, makes it.
func (c *Cluster) Facts(ctx context.Context) (ledgerID string, facts []byte, err error) {
	_, info, err := c.bind(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("cannot use stream %s: %w", c.config.Stream, err)
	}
	facts, err = base64.StdEncoding.DecodeString(info.Config.Metadata[factsKey])
	if err != nil {
		return "", nil, fmt.Errorf("cannot read the facts of stream %s: %w", c.config.Stream, err)
	}
	return info.Config.Metadata[idKey], facts, nil
}

// confirmer counts looks in a row that found what cannot be, or should not: the first may err, all of them for a while do not.
// The zero value has counted none.
type confirmer struct {
	since time.Time
	looks int
}

// persisted counts one more look, and reports whether what they found is to be believed, because they went on for so long.
func (c *confirmer) persisted(patience time.Duration) bool {
	if c.looks == 0 {
		c.since = time.Now()
	}
	c.looks++
	return c.looks >= goneLooks && time.Since(c.since) >= patience
}

// bind waits for the stream and returns it, once it is known to be the right one.
func (c *Cluster) bind(ctx context.Context) (stream jetstream.Stream, info *jetstream.StreamInfo, err error) {
	var missing confirmer
	err = c.Retry(ctx, "looking for stream "+c.config.Stream, func(ctx context.Context) error {
		stream, info, err = c.look(ctx)
		if !errors.Is(err, jetstream.ErrStreamNotFound) {
			missing = confirmer{}
		} else if c.config.MayWrite && missing.persisted(c.pace.missing) {
			if err = c.create(ctx); err == nil {
				stream, info, err = c.look(ctx)
			}
		}
		return err
	})
	return stream, info, err
}

func (c *Cluster) knownID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ledgerID
}

// create makes the stream. Where another node is faster, its stream is the one.
func (c *Cluster) create(ctx context.Context) error {
	id := make([]byte, 16)
	rand.Read(id) // never fails
	metadata := map[string]string{
		formatKey: streamFormat, idKey: hex.EncodeToString(id),
		factsKey: base64.StdEncoding.EncodeToString(c.config.Facts),
	}
	if c.config.Founds {
		metadata[founderKey] = c.config.NodeID
	}
	_, err := c.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: c.config.Stream, Description: "the log of a ledger, written by ledgerd", Subjects: []string{c.config.subject()},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: c.config.Replicas,
		// Whatever limit an operator sets: a full stream refuses what is new. It forgets nothing.
		Discard: jetstream.DiscardNew, MaxMsgs: -1, MaxBytes: cmp.Or(c.config.MaxBytes, -1), Placement: c.config.Placement(), MaxConsumers: -1, MaxMsgsPerSubject: -1,
		// Header lines beside the message count.
		MaxMsgSize: 2 * maxMessageBytes, DenyDelete: true, AllowAtomicPublish: true, Metadata: metadata,
	})
	switch {
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
		return nil
	case err != nil:
		return fmt.Errorf("cannot make it on %d servers (--log-replicas): %w", c.config.Replicas, err)
	}
	c.logger.Info("made the stream that nodes share", "stream", c.config.Stream, "ledger", hex.EncodeToString(id))
	return nil
}

// look asks how the stream is now. Whatever is concluded from that is concluded from its answers alone: they are of the stream
// that this node follows, and of a server that can know.
func (c *Cluster) look(ctx context.Context) (jetstream.Stream, *jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if version := c.conn.ConnectedServerVersion(); version != "" { // else there is no connection, and no answer
		if err := checkVersion(c.conn.ConnectedServerName(), version); err != nil {
			return nil, nil, err
		}
	}
	stream, err := c.js.Stream(ctx, c.config.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) && c.knownID() != "" {
		err = unlikely{fmt.Errorf("%w: there is none of this name", ErrRecreated)}
	}
	if err != nil {
		return nil, nil, err
	}
	readFromLeader(stream)
	info := stream.CachedInfo()
	return stream, info, c.identify(info)
}

// readFromLeader has messages that are read one by one come from the server that leads the stream, also where it lets others answer, which
// may lag: the client decides that by what it knows of the configuration.
func readFromLeader(stream jetstream.Stream) { stream.CachedInfo().Config.AllowDirect = false }

// What a server tells of a stream is that of the servers together only while it leads the stream and hears from most of them.
// Each that holds some of the stream answers what it holds itself while nobody leads, also one that lacks messages; and one that
// led when it was cut off goes on for a while.
var (
	errLeaderless = errors.New("the server that answers does not lead the stream")
	errMinority   = errors.New("the server that answers has lost most of the others")
)

// led refuses what is told by a server that does not lead a stream, or not most of the others.
func checkQuorumLeader(info *jetstream.StreamInfo) error {
	if info.Cluster == nil {
		return nil // it is alone
	}
	there := 1
	for _, p := range info.Cluster.Replicas {
		if p.Name == info.Cluster.Leader { // a leader names the others
			return errLeaderless
		}
		if !p.Offline && p.Active > 0 && p.Active < aliveWithin { // 0: never heard of
			there++
		}
	}
	switch {
	case info.Cluster.Leader == "":
		return errLeaderless
	case 2*there <= 1+len(info.Cluster.Replicas):
		return errMinority
	}
	return nil
}

// identify refuses a stream that is not the one that this node follows, or that loses messages, and what is told of it by a
// server that cannot know.
func (c *Cluster) identify(info *jetstream.StreamInfo) error {
	if err := checkQuorumLeader(info); err != nil {
		return err
	}
	m := info.Config.Metadata
	id := m[idKey]
	switch {
	case id == "":
		return fmt.Errorf("%w: it is not a log of ledgerd", ErrOtherLedger)
	case m[formatKey] != streamFormat:
		return fmt.Errorf("%w: its format is %q, this program reads %s", ErrFormat, m[formatKey], streamFormat)
	case c.knownID() != "" && c.knownID() != id:
		return fmt.Errorf("%w: its ledger is %s, this node's is %s", ErrRecreated, id, c.knownID())
	}
	k := &info.Config
	limited := k.MaxMsgs > 0 || k.MaxBytes > 0
	forgets := k.MaxAge > 0 || k.Retention != jetstream.LimitsPolicy || limited && k.Discard != jetstream.DiscardNew
	switch {
	case forgets || k.Storage != jetstream.FileStorage || k.PersistMode != jetstream.DefaultPersistMode:
		return fmt.Errorf("%w: it must be kept in files, written before it is acknowledged, have no maximum age, and discard what is new",
			ErrUnsafe)
	case k.MaxMsgsPerSubject > 0 && !k.DiscardNewPerSubject:
		return fmt.Errorf("%w: with a maximum of messages per subject it must discard what is new per subject, too", ErrUnsafe)
	}
	c.mu.Lock()
	c.ledgerID = id
	c.mu.Unlock()
	c.stats.first.Store(info.State.FirstSeq)
	c.stats.last.Store(info.State.LastSeq)
	c.stats.bytes.Store(info.State.Bytes)
	c.stats.maxBytes.Store(uint64(max(info.Config.MaxBytes, 0)))
	return nil
}
