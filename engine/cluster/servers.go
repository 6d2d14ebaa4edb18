package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// checkVersion returns ErrOldServer for a nats-server before 2.12, the first with atomic batches.
func checkVersion(server, version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < 2 || major == 2 && minor < 12 {
		return fmt.Errorf("%w: server %q is of version %q", ErrOldServer, server, version)
	}
	return nil
}

const (
	// syncQuestion reaches all servers. They answer only an account that the operator lets ask.
	syncQuestion = "$SYS.REQ.SERVER.PING.JSZ"
	syncEvery    = 10 * time.Minute
	// sizeEvery is between two looks at what the stream holds. A node that follows looks more often; the writer does not follow.
	sizeEvery = 5 * time.Second
)

// watchServers looks again and again at the stream, which tells how large it is, and asks whether the servers that hold it sync each message
// before they acknowledge it. It asks sooner where that is not proven: servers that have just started may not reach each other yet.
// A stream that a node which follows would refuse is trouble of the writer, too, which does not follow.
func (c *Cluster) watchServers() {
	const looking = "looking at the stream"
	told := ""
	pause, due := time.Second, time.Time{}
	for {
		_, info, err := c.look(c.ctx)
		switch {
		case permanent(err):
			c.setFault(looking, err)
		case err == nil:
			c.clearFault(looking, true)
		}
		if err == nil && !time.Now().Before(due) {
			pause = min(2*pause, syncEvery)
			due = time.Now().Add(pause)
			err = c.proveSync(info)
			c.stats.syncProven.Store(err == nil)
			switch {
			case err == nil:
				pause, due, told = time.Second, time.Now().Add(syncEvery), ""
			case told != err.Error():
				told = err.Error()
				c.logger.Warn("a power failure of several nats-servers may lose what was shown, unless each has sync_interval: always",
					"reason", err)
			}
		}
		if c.sleep(c.ctx, min(max(time.Until(due), time.Second), sizeEvery)) != nil {
			return
		}
	}
}

// proveSync returns nil where each server that holds the stream says that it syncs each message.
func (c *Cluster) proveSync(info *jetstream.StreamInfo) error {
	ctx, cancel := context.WithTimeout(c.ctx, requestTimeout)
	defer cancel()
	inbox := c.conn.NewInbox()
	answers, err := c.conn.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := c.conn.PublishRequest(syncQuestion, inbox, nil); err != nil {
		return err
	}
	for unknown := holders(info, c.conn.ConnectedServerName()); len(unknown) > 0; {
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return fmt.Errorf("%d servers do not tell this node's user whether they do (%s)", len(unknown), syncQuestion)
		}
		var answer struct {
			Server struct{ Name string }
			Data   struct {
				Config struct {
					SyncAlways bool `json:"sync_always"`
				}
			}
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return fmt.Errorf("cannot read an answer to %s: %w", syncQuestion, err)
		}
		if unknown[answer.Server.Name] && !answer.Data.Config.SyncAlways {
			return errors.New("server " + answer.Server.Name + " does not")
		}
		delete(unknown, answer.Server.Name)
	}
	return nil
}

// holders returns the names of the servers that hold a stream. alone is the one that tells of it where it has no cluster.
func holders(info *jetstream.StreamInfo, alone string) map[string]bool {
	if info.Cluster == nil {
		return map[string]bool{alone: true}
	}
	names := map[string]bool{info.Cluster.Leader: true}
	for _, p := range info.Cluster.Replicas {
		names[p.Name] = true
	}
	return names
}
