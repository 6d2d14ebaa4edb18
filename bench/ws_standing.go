package bench

import (
	"context"
	"time"

	"ledgerd/bench/proc"
)

// standing is what a server holds at a moment.
type standing struct {
	rss, heap   float64 // MiB
	goroutines  float64
	files       float64
	connections float64 // WebSockets
}

const mebibyte = 1 << 20

// standingOf returns how a server stands, and all it counts.
func standingOf(server *proc.Server) (s standing, u proc.Usage, metrics map[string]float64, err error) {
	if u, err = server.Usage(); err != nil {
		return s, u, nil, err
	}
	if metrics, err = server.Metrics(); err != nil {
		return s, u, nil, err
	}
	return standing{
		rss: float64(u.RSSBytes) / mebibyte, heap: metrics["go_memstats_heap_inuse_bytes"] / mebibyte,
		goroutines: metrics["go_goroutines"], files: float64(u.FDs),
		connections: metrics["ledgerd_ws_connections"],
	}, u, metrics, nil
}

// strays are the goroutines and files that come and go with other work than sockets.
const strays = 5

// settle waits until the server holds no more connections, goroutines and files than before,
// but for strays, and returns how it stands then. A server that does not get there is
// described as it is.
func settle(ctx context.Context, server *proc.Server, before standing) (standing, error) {
	const patience = 30 * time.Second // the goroutines of ended connections wait for new ones for ten
	for until := time.Now().Add(patience); ; {
		now, _, _, err := standingOf(server)
		if err != nil {
			return now, err
		}
		if now.connections <= before.connections && now.goroutines <= before.goroutines+strays &&
			now.files <= before.files+strays || time.Now().After(until) {
			return now, nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return now, ctx.Err()
		}
	}
}

// compareStanding notes how the server stood before there was anybody and after all have gone.
func (r *Result) compareStanding(before, after standing) {
	for i, s := range []standing{before, after} {
		row := r.Row([...]string{"before anybody came", "after all have gone"}[i])
		row.Add("RSS", "MiB", s.rss)
		row.Add("goroutines", "", s.goroutines)
		row.Add("files", "", s.files)
	}
	r.Goals = append(r.Goals,
		Goal{What: "goroutines left when all have gone", Value: after.goroutines - before.goroutines, Limit: strays},
		Goal{What: "files left when all have gone", Value: after.files - before.files, Limit: strays},
		Goal{What: "connections left when all have gone", Value: after.connections - before.connections, Limit: 0})
}

// pause waits; false if ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
