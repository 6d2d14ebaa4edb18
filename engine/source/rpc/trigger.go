package rpc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/source/upstream"
)

const (
	// triggerSilence is how long a subscription may say nothing before it is made again.
	triggerSilence = 20 * time.Second
	// triggerTrust is for how long a notice makes the clock look less often.
	triggerTrust = 5 * time.Second
	// maxNotice bounds a notice; one takes some 150 bytes.
	maxNotice = 4 << 10
)

// trigger wakes the follower when the node says that it works on another slot. It only saves time: what
// it says is not believed, and what it does not say the clock finds. It belongs to Run.
type trigger struct {
	config *Config
	wake   chan struct{} // room for one
	last   atomic.Int64  // when the last notice came, by time.Now
}

func newTrigger(c *Config) *trigger {
	return &trigger{config: c, wake: make(chan struct{}, 1)}
}

// run subscribes, again and again, until ctx ends. A node that does not offer it is asked rarely.
func (t *trigger) run(ctx context.Context) {
	pause := upstream.Backoff{Min: time.Second, Max: time.Minute, Random: t.config.Random}
	for ctx.Err() == nil {
		if t.listen(ctx) {
			pause.Reset()
		}
		if pause.Wait(ctx, 0) != nil {
			return
		}
	}
}

// listen is one subscription. It reports whether a notice came.
func (t *trigger) listen(ctx context.Context) (worked bool) {
	dialer := websocket.Dialer{NetDialContext: t.config.Dial, HandshakeTimeout: t.config.Timeout}
	if t.config.Dial == nil {
		dialer.Proxy = http.ProxyFromEnvironment
	}
	address, header := *t.config.Socket, http.Header{}
	if address.User != nil {
		password, _ := address.User.Password()
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(address.User.Username()+":"+password)))
		address.User = nil
	}
	conn, answer, err := dialer.DialContext(ctx, address.String(), header)
	if answer != nil {
		answer.Body.Close()
	}
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetReadLimit(maxNotice)
	if err := conn.SetWriteDeadline(time.Now().Add(t.config.Timeout)); err != nil {
		return false
	}
	if err := conn.WriteJSON(request{"2.0", 1, "slotSubscribe", nil}); err != nil {
		return false
	}
	for {
		if err := conn.SetReadDeadline(time.Now().Add(triggerSilence)); err != nil {
			return worked
		}
		_, text, err := conn.ReadMessage()
		if err != nil {
			return worked
		}
		var notice struct {
			Method string `json:"method"`
		}
		if json.Unmarshal(text, &notice) != nil || notice.Method != "slotNotification" {
			continue
		}
		worked = true
		t.last.Store(time.Now().UnixNano())
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// wait waits for a notice or the time of a look by the clock, but never less than a quarter of it.
// A node that gives notices is looked at less often without one.
func (t *trigger) wait(ctx context.Context, since time.Time) error {
	poll := t.config.Poll
	if err := upstream.Sleep(ctx, poll/4); err != nil {
		return err
	}
	if time.Since(time.Unix(0, t.last.Load())) < triggerTrust {
		poll *= 3
	}
	left := poll - time.Since(since)
	if left <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
