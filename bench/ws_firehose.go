package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"ledgerd/bench/peer"
)

// firehose has 500 subscribers who want everything, as fast as it goes: a closed loop, in
// which blocks are published as long as the slowest subscriber is not too far behind.
var firehose = Scenario{
	Name: "firehose",
	Help: "How many frames 500 subscribers of everything are handed in a second, and how that compares.",
	Own:  "it publishes as fast as the slowest subscriber reads",
	Run:  runFirehose,
}

const (
	firehoseSubscribers = 500
	// firehoseBatch is how many accounts a block updates: so many that fsyncs keep up, and few
	// enough for a block to be news.
	firehoseBatch = 1000
	// firehoseWindow is how many bytes the publisher runs ahead of the slowest subscriber: enough
	// for nobody to wait for a block, far within what every server keeps for a subscriber, and
	// for all together less than what makes a kernel take back room from its sockets.
	firehoseWindow = 2 << 20
	// firehosePatience is how long the slowest subscriber may go without a byte, and a server
	// without taking a batch.
	firehosePatience = 20 * time.Second
)

// broadcaster tells what it is fed to all who listen: ledgerd, or a peer.
type broadcaster interface {
	Dial(ctx context.Context) (peer.Subscriber, error)
	Publish() error   // one batch more
	BatchFrames() int // for each subscriber
	Pid() int
	Stop() error
}

// firehoseRun is one run of the scenario.
type firehoseRun struct {
	env    *Env
	self   []string // what runs peers
	result *Result
}

func runFirehose(ctx context.Context, env *Env) (*Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return (&firehoseRun{env: env, self: []string{self, "peer"}}).run(ctx)
}

// run measures ledgerd and the peers in turns. A peer that fails is left out from then on.
func (f *firehoseRun) run(ctx context.Context) (*Result, error) {
	f.result = &Result{Scenario: "firehose"}
	var peers []peer.Peer
	if f.env.Peers {
		peers = slices.Clone(peer.Peers)
	}
	for round := range f.env.Rounds {
		own, err := f.measure(ctx, round, "ledgerd", f.startLedgerd)
		if err != nil {
			return nil, fmt.Errorf("ledgerd: %w", err)
		}
		var left []peer.Peer
		for _, p := range peers {
			theirs, err := f.measure(ctx, round, p.Name, func(ctx context.Context) (broadcaster, error) {
				return p.Start(ctx, peer.Config{Self: f.self, Dir: f.env.Dir, Messages: firehoseMessages()})
			})
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				f.env.Say("firehose: %s is left out: %v", p.Name, err)
				f.result.Notes = append(f.result.Notes, fmt.Sprintf("%s is left out: %v", p.Name, err))
				continue
			}
			if p.Name == "nats" && round == 0 {
				f.result.version(p.Name, peer.NATSVersion(ctx, f.self[0]))
			}
			left = append(left, p)
			f.compare(own, p.Name, theirs)
		}
		peers = left
	}
	f.goals()
	return f.result, nil
}

// compare notes how ledgerd did beside a peer in the same round. Blocks of raw sockets hold
// frames of about the same size, but bytes are what they are compared by.
func (f *firehoseRun) compare(own *flow, name string, theirs *flow) {
	ours, others := own.framesPerSecond(), theirs.framesPerSecond()
	if name == "raw" {
		ours, others = own.bytesPerSecond(), theirs.bytesPerSecond()
	}
	if others > 0 { // else the round was too short for it
		f.result.Row("ledgerd").Add(besides(name), "×", ours/others)
	}
}

// besides names the figure that compares ledgerd with a peer.
func besides(peer string) string {
	if peer == "raw" {
		return "bytes, of raw's"
	}
	return "frames, of " + peer + "'s"
}

func (f *firehoseRun) goals() {
	goal := func(what, figure string, limit float64) {
		for _, figures := range f.result.Row("ledgerd").Figures {
			if figures.Name == figure {
				f.result.Goals = append(f.result.Goals, Goal{what, figures.Median(), limit, true})
			}
		}
	}
	goal("million frames delivered a second", "frames", 20)
	goal("bytes delivered, of what raw sockets take", besides("raw"), 0.85)
	goal("deliveries, of nats-server's", besides("nats"), 5)
	goal("deliveries, of a one-channel-per-client hub's", besides("hub"), 50)
	goal("thousand updates a second", "updates", 40)
}

// measure runs one subject for a round and notes its figures.
func (f *firehoseRun) measure(ctx context.Context, round int, subject string, start func(context.Context) (broadcaster, error)) (*flow, error) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	server, err := start(ctx)
	if err != nil {
		return nil, err
	}
	a := &audience{server: server, giveUp: giveUp}
	measured, err := a.attend(ctx, f.env.Scaled(firehoseSubscribers), f.env.Duration)
	err = errors.Join(err, server.Stop())
	a.leave()
	if err == nil {
		err = a.check() // also what came while the server stopped
	}
	if err != nil {
		return nil, err
	}
	row := f.result.Row(subject)
	row.Add("frames", "M/s", measured.framesPerSecond()/1e6)
	row.Add("bytes", "MB/s", measured.bytesPerSecond()/1e6)
	if subject != "raw" {
		row.Add("updates", "k/s", measured.framesPerSecond()/float64(len(a.seats))/1e3)
	}
	row.Add("CPU of the server", "cores", measured.server.Seconds()/measured.time.Seconds())
	row.Add("CPU of the load", "cores", measured.load.Seconds()/measured.time.Seconds())
	row.Add("subscribers who heard all", "", float64(len(a.seats)))
	f.env.Say("firehose round %d: %s delivers %.2f M frames/s, %.0f MB/s", round+1, subject,
		measured.framesPerSecond()/1e6, measured.bytesPerSecond()/1e6)
	return measured, nil
}
