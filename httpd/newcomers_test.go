package httpd

import (
	"bufio"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

func TestNewcomersWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomers()
		start := time.Now()
		var cohort int
		for range n.most {
			n.await(nil)
			cohort = n.enter()
		}
		if took := time.Since(start); took != 0 {
			t.Fatalf("the first %d waited for %v", n.most, took)
		}
		go func() {
			time.Sleep(newcomerPatience / 2)
			n.leave(cohort)
		}()
		n.await(nil)
		n.enter()
		if took, want := time.Since(start), newcomerPatience/2; took != want {
			t.Errorf("the next one waited for %v, want %v, when one settled", took, want)
		}
		// Those that stay are waited for once.
		start = time.Now()
		for range n.most {
			n.await(nil)
			n.enter()
		}
		if took := time.Since(start); took != newcomerPatience {
			t.Errorf("behind silent ones %d waited for %v, want %v", n.most, took, newcomerPatience)
		}
		n.leave(cohort)
		if n.hasRoom() {
			t.Error("one that is not counted any more made room")
		}
	})
}

func TestAClosedListenerWaitsForNoNewcomer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNewcomers()
		for range n.most {
			n.enter()
		}
		closed := make(chan struct{})
		close(closed)
		start := time.Now()
		n.await(closed)
		if took := time.Since(start); took != 0 {
			t.Errorf("waited for %v", took)
		}
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not after %v: %s", patience, what)
		}
	}
}

// TestAConnectionIsANewcomerUntilItsFirstAnswer goes over a real listener.
func TestAConnectionIsANewcomerUntilItsFirstAnswer(t *testing.T) {
	w := serveTCP(t, nil)
	eventually(t, "it listens", func() bool { return w.server.listener.Load() != nil })
	n := w.server.listener.Load().newcomers
	n.mu.Lock()
	n.most = 2 // so that nobody loses patience with the one
	n.mu.Unlock()
	count := func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.count
	}
	for name, say := range map[string]string{
		"a request":     "GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n",
		"no request":    "x\r\n\r\n",
		"its last word": "GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	} {
		c := w.dial()
		eventually(t, "it is counted", func() bool { return count() == 1 })
		if _, err := io.WriteString(c, say); err != nil {
			t.Fatal(err)
		}
		readReply(t, bufio.NewReader(c), "GET")
		eventually(t, name+" was answered", func() bool { return count() == 0 })
		_ = c.Close()
	}
}
