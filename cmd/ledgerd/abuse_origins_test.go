package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

// An origin that no browser can send protects nothing. The data directory of these nodes cannot be made:
// one that takes its origins ends with another exit code.
func TestAbuseImpossibleOriginsAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]int{
		"":                                    exitUsage,
		"foo":                                 exitUsage,
		"https://a/b":                         exitUsage,
		"https://*.x":                         exitUsage,
		"https://a.example":                   exitFailure,
		"https://a.example,http://[::1]:8080": exitFailure,
		"*":                                   exitFailure,
	}
	for origins, want := range tests {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--ops-listen=", "--source", "none",
			"--data-dir", filepath.Join(file, "data"), "--ws-origins=" + origins}, &streams{&out, &errs})
		if code != want || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("--ws-origins=%s: exit code %d, printed %q; want %d and one line", origins, code, errs.String(), want)
		}
	}
}
