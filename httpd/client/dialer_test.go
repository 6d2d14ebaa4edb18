package client

import (
	"net/http"
	"sync"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// TestStreamsMayBeginBesideTheFirstCall is for the race detector: net/http sets a transport up at its first call.
func TestStreamsMayBeginBesideTheFirstCall(t *testing.T) {
	transport := new(http.Transport)
	c, err := New("http://127.0.0.1:1", Options{HTTP: &http.Client{Transport: transport}})
	ledgertest.Must(t, err)
	var first sync.WaitGroup
	first.Go(transport.CloseIdleConnections)
	c.dialer()
	first.Wait()
}
