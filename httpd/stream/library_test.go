package stream

import (
	"net"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// The dialer of a common library speaks with us too.
func TestACommonClientLibrary(t *testing.T) {
	n := serve(t, nil)
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return n.connect() }}
	conn, response, err := dialer.Dial("ws://ledger/api/ws/accounts?mode=none", nil)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer func() { _ = conn.Close() }()
	_ = response.Body.Close()
	if err := conn.WriteJSON(map[string]any{"type": "subscribe", "id": 1}); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != `{"type":"subscribed","id":1,"pubkeys":0,"programs":0,"slot":0,"seq":0}` {
		t.Fatalf("got %s, %v", got, err)
	}
	n.script.block(1, account(1, 1, programA))
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != basicFrame(account(1, 1, programA), 1) {
		t.Fatalf("got %s, %v", got, err)
	}
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye")
	if err := conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("err = %v, want the close frame back", err)
	}
}
