package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"
)

// G18: a browser sends one Origin. Where origins are restricted every one that is sent must be allowed, and
// two are refused whatever they are.
func TestAbuseEveryOriginIsChecked(t *testing.T) {
	const allowed, foreign = "https://a.example", "https://b.example"
	r := start(t, "--data-dir", t.TempDir(), "--source", "none", "--ws-origins", allowed)
	for origins, want := range map[string]int{
		"":                      http.StatusSwitchingProtocols,
		allowed:                 http.StatusSwitchingProtocols,
		foreign:                 http.StatusBadRequest,
		allowed + " " + foreign: http.StatusBadRequest,
		foreign + " " + allowed: http.StatusBadRequest,
	} {
		ws, response, err := websocket.DefaultDialer.Dial(streamURL(r.base), http.Header{"Origin": strings.Fields(origins)})
		if response == nil || response.StatusCode != want {
			t.Errorf("%q: %v, %v, want %d", origins, response, err, want)
		}
		if err == nil {
			ws.Close()
		}
	}
}
