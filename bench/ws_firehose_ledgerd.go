package bench

import (
	"context"
	"fmt"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
)

// firehoseAccounts is how many accounts take turns: those of a busy ledger that are written
// again and again.
const firehoseAccounts = 10_000

// firehoseServer is ledgerd as a broadcaster. A batch is a block.
type firehoseServer struct {
	*proc.Server
	feed *feed.Feed
}

func (f *firehoseRun) startLedgerd(ctx context.Context) (broadcaster, error) {
	// A snapshot in the middle would slow one round and not the others.
	server, err := proc.Start(ctx, f.env.Ledgerd, []string{"--snapshot-interval", "0"}, proc.Options{Dir: f.env.Dir})
	if err != nil {
		return nil, err
	}
	s := &firehoseServer{Server: server}
	if s.feed, err = feed.New(server.Feed(), feed.Config{Accounts: firehoseAccounts, Updates: firehoseBatch}); err == nil {
		err = server.Ready(ctx)
	}
	if err != nil {
		server.Kill()
		return nil, err
	}
	return s, nil
}

// Dial connects a subscriber of literal frames.
func (s *firehoseServer) Dial(ctx context.Context) (peer.Subscriber, error) {
	return peer.WebSocket(ctx, s.StreamURL(), askPong)
}

func (s *firehoseServer) Publish() error {
	_, err := s.feed.Block()
	return err
}

func (s *firehoseServer) BatchFrames() int { return firehoseBatch }

// firehoseMessages are what peers tell: the frames of a block, as ledgerd writes them.
func firehoseMessages() [][]byte {
	out := make([][]byte, firehoseBatch)
	for i := range out {
		out[i] = fmt.Appendf(nil, `{"type":"account_update","pubkey":"%s","lamports":%d,"timestamp":"%s"}`,
			feed.Key(i), feed.FirstSlot+1, time.Now().UTC().Format(time.RFC3339))
	}
	return out
}
