package testnode

import (
	"encoding/json"
	"net/http"
	"sync/atomic"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
)

// serveSocket serves slotSubscribe and slotUnsubscribe over a WebSocket.
func (n *Node) serveSocket(w http.ResponseWriter, r *http.Request) {
	if n.config.NoSocket {
		http.Error(w, "Not Found", http.StatusNotFound)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	c, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it was answered
	}
	defer c.Close()
	c.SetReadLimit(maxCallBytes)
	var subscribed atomic.Bool
	answers := make(chan []byte)
	left := make(chan struct{})
	go func() {
		defer close(left)
		for {
			_, body, err := c.ReadMessage()
			if err != nil {
				return
			}
			select {
			case answers <- n.answerSocket(body, &subscribed):
			case <-n.ctx.Done():
				return
			}
		}
	}()
	defer func() { c.Close(); <-left }()
	var told ledger.Slot
	for {
		_, more := n.told(0)
		slot := n.Tip(ledger.Processed)
		if subscribed.Load() && slot != told {
			told = slot
			if c.WriteMessage(websocket.TextMessage, n.slotNotification(slot)) != nil {
				return
			}
		}
		select {
		case a := <-answers:
			if c.WriteMessage(websocket.TextMessage, a) != nil {
				return
			}
		case <-more:
		case <-left:
			return
		case <-n.ctx.Done():
			return
		}
	}
}

// answerSocket answers a call over a WebSocket.
func (n *Node) answerSocket(body []byte, subscribed *atomic.Bool) []byte {
	var c call
	if json.Unmarshal(body, &c) != nil {
		return answer(nil, nil, &callError{codeParse, "Parse error", nil})
	}
	n.count(func(t *Tally) { t.Calls[c.Method]++ })
	switch c.Method {
	case "slotSubscribe":
		subscribed.Store(true)
		return answer(c.ID, 0, nil)
	case "slotUnsubscribe":
		subscribed.Store(false)
		return answer(c.ID, true, nil)
	}
	return answer(c.ID, nil, &callError{codeMethod, "Method not found", nil})
}

func (n *Node) slotNotification(slot ledger.Slot) []byte {
	parent := ledger.Slot(0)
	if b := n.ledger.mainAt(slot); b != nil {
		parent = b.ParentSlot
	}
	b, _ := json.Marshal(object{"jsonrpc": "2.0", "method": "slotNotification", "params": object{
		"result": object{"parent": parent, "root": n.Tip(ledger.Finalized), "slot": slot}, "subscription": 0,
	}})
	return b
}
