package call

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// A call is sent the fields that were given, with the first key; a node's certificate is not checked where that is asked for.
func TestCallsAreSentTheFieldsThatWereGiven(t *testing.T) {
	var got *http.Request
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	defer server.Close()
	keys := filepath.Join(t.TempDir(), "keys")
	ledgertest.Must(t, os.WriteFile(keys, []byte("one\ntwo\n"), 0o600))
	f := Flags{Header: []string{"x-test: 1", "X-Test:2 ", "Host: node.example"}, APIKeyFile: keys, Insecure: true}
	client, err := f.Client()
	ledgertest.Must(t, err)
	response, err := client.Get(server.URL)
	ledgertest.Must(t, err)
	ledgertest.Must(t, response.Body.Close())
	client.CloseIdleConnections()
	ledgertest.Equal(t, got.Header["X-Test"], []string{"1", "2"}, "the field")
	ledgertest.Equal(t, got.Host+" "+got.Header.Get("X-API-Key"), "node.example one", "host and key")
	for _, field := range []string{"X-Test", ": 1", "X Test: 1", "X-Test: 1\nX-Other: 2"} {
		if _, err := (&Flags{Header: []string{field}}).Client(); err == nil {
			t.Errorf("%q is taken", field)
		}
	}
}
