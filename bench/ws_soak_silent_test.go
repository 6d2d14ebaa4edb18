package bench

import (
	"net"
	"testing"
	"time"
)

func TestUnreadTellsWhatWaitsInASocket(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	near, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	wait := func(want int) {
		t.Helper()
		deadline := time.Now().Add(10 * time.Second)
		for {
			got, err := unread(near)
			if err != nil {
				t.Fatal(err)
			}
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes wait, want %d", got, want)
			}
			time.Sleep(time.Millisecond)
		}
	}
	wait(0)
	if _, err := far.Write(make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	wait(5000)
	if _, err := near.Read(make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	wait(3000)
	if _, err := unread(nil); err == nil {
		t.Error("nothing is a socket")
	}
}
