package rpc

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

// socketNode has a node offer slotSubscribe beside its calls: a notice is sent for each value of the
// channel. It returns how often somebody subscribed.
func socketNode(n *fakeNode, notices <-chan string) (subscribed chan string) {
	subscribed = make(chan string, 100)
	calls := n.server.Handler
	upgrader := websocket.Upgrader{}
	n.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			calls.ServeHTTP(w, r)
			return
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		_, text, _ := conn.ReadMessage()
		select {
		case subscribed <- string(text) + r.Header.Get("Authorization"):
		default:
		}
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_, _, _ = conn.ReadMessage()
		}()
		for {
			select {
			case notice, more := <-notices:
				if !more || conn.WriteMessage(websocket.TextMessage, []byte(notice)) != nil {
					return
				}
			case <-closed:
				return
			case <-n.done:
				return
			}
		}
	})
	return subscribed
}

const slotNotice = `{"jsonrpc":"2.0","method":"slotNotification","params":{"result":{"parent":75,"root":44,"slot":76},"subscription":0}}`

func TestANoticeWakesTheFollower(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11)
		notices := make(chan string)
		subscribed := socketNode(n, notices)
		c := n.config()
		c.Poll = time.Minute
		c.Socket = &url.URL{Scheme: "ws", Host: "node.example", User: url.UserPassword("u", "p")}
		var added time.Time
		go func() {
			for range 3 { // two silent sockets are given up
				if got, want := <-subscribed, `{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}`+"\nBasic dTpw"; got != want {
					t.Errorf("subscribed by %q, want %q", got, want)
				}
			}
			notices <- `{"jsonrpc":"2.0","result":0,"id":1}`
			notices <- `nonsense`
			n.add(11, 12)
			added = time.Now()
			notices <- slotNotice
		}()
		follow(t, New(c), at(10), untilSlot(12))
		if took := time.Since(added); took > 16*time.Second { // a quarter of the minute
			t.Errorf("it took %v", took)
		}
	})
}

func TestAbsenceOfTheSocketIsFine(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.add(10, 11)
		c := n.config()
		c.Socket = &url.URL{Scheme: "ws", Host: "node.example"}
		go func() {
			for slot := ledger.Slot(12); slot < 400 && n.wait(400*time.Millisecond); slot++ {
				n.add(slot-1, slot)
			}
		}()
		s := New(c)
		follow(t, s, at(10), untilSlot(399))
		if g := s.Upstream(); g.Errors != [len(g.Errors)]uint64{} {
			t.Errorf("errors: %v", g.Errors)
		}
	})
}
