package main

import (
	"net/http"
	"testing"
)

// G18: a browser sends one Origin. Where origins are restricted every one that is sent must be allowed, and
// two are refused whatever they are.
func TestAbuseEveryOriginIsChecked(t *testing.T) {
	a := attack(t, 10, "--source", "none", "--ws-origins", "https://a.example")
	const allowed, foreign = "Origin: https://a.example\r\n", "Origin: https://b.example\r\n"
	tests := map[string]int{
		"":                http.StatusSwitchingProtocols,
		allowed:           http.StatusSwitchingProtocols,
		foreign:           http.StatusBadRequest,
		allowed + foreign: http.StatusBadRequest,
		foreign + allowed: http.StatusBadRequest,
	}
	for origins, want := range tests {
		c := a.mustDial(2, nil)
		if response, err := c.upgrade("", origins); err != nil || response.StatusCode != want {
			t.Errorf("%q: %v, %v, want %d", origins, response, err, want)
		}
		c.Close()
	}
}
