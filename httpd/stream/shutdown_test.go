package stream

import (
	"context"
	"testing"
)

func TestShutdownEndsEverybody(t *testing.T) {
	n := serve(t, nil)
	clients := []*client{n.dial(""), n.dial("?extended=true"), n.dial("?mode=none"), n.dial("?commitment=finalized")}
	n.script.block(1, account(1, 1, programA))
	n.script.block(2, account(1, 2, programA))
	done := make(chan error, 1)
	go func() { done <- n.hub.Shutdown(context.Background()) }()
	for i, c := range clients {
		before, code, text := c.ends()
		if want := []int{2, 4, 0, 1}[i]; len(before) != want || code != 1001 || text != "the server is shutting down" {
			t.Errorf("client %d: ended with %d %q after %q, want 1001 after %d frames", i, code, text, before, want)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	_, late := n.handshake("")
	if _, code, text := late.endsAndHangsUp(); code != 1001 || text != "the server is shutting down" {
		t.Errorf("who comes late: ended with %d %q, want 1001", code, text)
	}
	n.script.block(3, account(1, 3, programA)) // nobody hears it
}
