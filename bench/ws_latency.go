package bench

import (
	"context"
	"fmt"
	"time"

	"ledgerd/bench/feed"
)

// latency has a busy network's blocks told to all who want everything, at the pace of the
// network.
var latency = Scenario{
	Name: "latency",
	Help: "How long after a block was due 500 subscribers of everything, and 100, have its frames.",
	Own:  "it must know when each block was due",
	Run:  runLatency,
}

// A busy network: 7,500 updates a second in a block every 400 ms.
const (
	networkInterval = 400 * time.Millisecond
	networkUpdates  = 3000
	networkAccounts = 200_000
	// networkWarmup is how many blocks nobody counts: buffers grow, caches fill.
	networkWarmup = 3
)

// latencySizes are how many subscribers there are, and the goal for each.
var latencySizes = []struct {
	subscribers int
	limit       time.Duration
}{
	{500, 100 * time.Millisecond},
	{100, 25 * time.Millisecond},
}

func runLatency(ctx context.Context, env *Env) (*Result, error) {
	result := &Result{Scenario: "latency"}
	for round := range env.Rounds {
		for _, size := range latencySizes {
			count := env.Scaled(size.subscribers)
			row := result.Row(fmt.Sprintf("%d subscribers", count))
			if err := measureLatency(ctx, env, row, count); err != nil {
				return nil, fmt.Errorf("%d subscribers: %w", count, err)
			}
			env.Say("latency round %d: %d subscribers have frames within %.1f ms (p99)", round+1, count, row.last("p99"))
		}
	}
	for _, size := range latencySizes {
		subject := fmt.Sprintf("%d subscribers", env.Scaled(size.subscribers))
		result.Goals = append(result.Goals, Goal{
			What: "ms from due to received, p99, " + subject, Value: result.Row(subject).figure("p99").Median(), Limit: milliseconds(size.limit),
		})
	}
	result.Notes = append(result.Notes, "The subscribers run on the same processors as the server.")
	return result, nil
}

// measureLatency runs a server for one round and notes how long frames took.
func measureLatency(ctx context.Context, env *Env, row *Row, count int) error {
	updates := env.Scaled(networkUpdates)
	r, err := startRig(ctx, env, feed.Config{Accounts: max(env.Scaled(networkAccounts), updates), Updates: updates})
	if err != nil {
		return err
	}
	defer r.Kill()
	everybody, err := join(ctx, r, count, func(int) []int { return nil })
	if err != nil {
		return err
	}
	defer everybody.leave()
	if err := r.pace(ctx, networkInterval, networkWarmup); err != nil {
		return err
	}
	if err := everybody.settle(ctx); err != nil {
		return err
	}
	r.publications() // those of the warm-up
	blocks := max(1, int(env.Duration/networkInterval))
	timed := everybody.time()
	before, err := r.spent()
	if err != nil {
		return err
	}
	if err := r.pace(ctx, networkInterval, blocks); err != nil {
		return err
	}
	after, err := r.spent()
	if err != nil {
		return err
	}
	if err := everybody.settle(ctx); err != nil {
		return err
	}
	if got, want := timed.latency.Count(), int64(blocks*updates*count); got != want {
		return fmt.Errorf("%d frames were timed, not %d", got, want)
	}
	addLatency(row, "", timed.latency)
	addLatency(row, "published ", r.publications())
	_, _, took := after.since(before)
	row.Add("frames", "M/s", float64(timed.latency.Count())/took.Seconds()/1e6)
	after.addCores(row, before)
	everybody.leave()
	return r.Stop()
}

// addLatency notes how long something took.
func addLatency(row *Row, prefix string, h *Histogram) {
	row.Add(prefix+"p50", "ms", milliseconds(h.Quantile(0.5)))
	row.Add(prefix+"p99", "ms", milliseconds(h.Quantile(0.99)))
	row.Add(prefix+"max", "ms", milliseconds(h.Quantile(1)))
	row.AddPercentiles(prefix+"latency", h)
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// figure returns a figure of a row, an empty one if there is none of that name.
func (r *Row) figure(name string) *Figure {
	for i := range r.Figures {
		if r.Figures[i].Name == name {
			return &r.Figures[i]
		}
	}
	return &Figure{Name: name}
}

// last returns the value of a figure that was noted last, 0 without any.
func (r *Row) last(name string) float64 {
	values := r.figure(name).Values
	if len(values) == 0 {
		return 0
	}
	return values[len(values)-1]
}
