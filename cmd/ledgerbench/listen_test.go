package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/ledgertest"
)

// A stream with a hole and a duplicate is counted as that, in words and in the file.
func TestListenCountsWhatIsMissingAndTwice(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/ws/accounts" || r.FormValue("extended") != "true" || r.FormValue("commitment") != "processed" {
			http.NotFound(w, r)
			return
		}
		var upgrader websocket.Upgrader
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for _, seq := range []int{1, 2, 4, 4, 5} {
			text := fmt.Appendf(nil, `{"type":"account_update","pubkey":"11111111111111111111111111111111","lamports":1,"timestamp":null,"slot":9,"seq":%d,"owner":"","executable":false,"commitment":"processed"}`, seq)
			_ = conn.WriteMessage(websocket.TextMessage, text) // or the counts tell
		}
		_, _, _ = conn.ReadMessage() // until the client goes
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "figures.json")
	code, s := does(t, "listen", server.URL, "--sockets", "2", "--duration", "300ms", "--json", file)
	if code != exitOK || !strings.Contains(s.out.String(), "updates   10 received, 2 missing, 2 twice") || s.err.Len() > 0 {
		t.Errorf("exit code %d, said %q and\n%s", code, &s.err, &s.out)
	}
	var got struct {
		Updates struct{ Received, Missing, Twice int }
	}
	content, err := os.ReadFile(file)
	must(t, err)
	must(t, json.Unmarshal(content, &got))
	ledgertest.Equal(t, got.Updates, struct{ Received, Missing, Twice int }{10, 2, 2}, "the updates of the file")
}
