package wire

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// piped returns a Conn and the other end.
func piped(t *testing.T) (c *Conn, far net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return &Conn{Conn: near, listener: new(listener)}, far
}

func giveByte(far net.Conn) { _, _ = far.Write([]byte("x")) }

func takeByte(far net.Conn) { _, _ = far.Read(make([]byte, 1)) }

// TestDeadlinesAreKeptAsTheyAreWanted moves deadlines to and fro before each wait: later than
// what the socket has, earlier, none.
func TestDeadlinesAreKeptAsTheyAreWanted(t *testing.T) {
	read := func(c *Conn) error { _, err := c.Read(make([]byte, 1)); return err }
	write := func(c *Conn) error { _, err := c.Write([]byte("x")); return err }
	for name, act := range map[string]struct {
		set   func(*Conn, time.Time) error
		do    func(*Conn) error
		serve func(net.Conn) // lets one act succeed
	}{
		"read":           {(*Conn).SetReadDeadline, read, giveByte},
		"write":          {(*Conn).SetWriteDeadline, write, takeByte},
		"both and read":  {(*Conn).SetDeadline, read, giveByte},
		"both and write": {(*Conn).SetDeadline, write, takeByte},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, far := piped(t)
			for _, wait := range []time.Duration{5 * time.Second, 30 * time.Second, 10 * time.Second, time.Minute, time.Second} {
				// The socket has a later deadline from the time before.
				go act.serve(far)
				must(t, errors.Join(act.set(c, time.Now().Add(time.Hour)), act.do(c), act.set(c, time.Now().Add(wait))))
				began := time.Now()
				if err := act.do(c); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) < wait || time.Since(began) > wait+slack {
					t.Errorf("%s: %v after %v, want a timeout after %v", name, err, time.Since(began), wait)
				}
			}
			must(t, act.set(c, time.Time{}))
			time.AfterFunc(24*time.Hour, func() { _ = far.Close() })
			began := time.Now()
			if err := act.do(c); err == nil || errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != 24*time.Hour {
				t.Errorf("%s: without a deadline: %v after %v", name, err, time.Since(began))
			}
		})
	}
}

// TestAWriteGoesOnAfterADeadlineThatIsNoneAnyMore lets the socket give up in the middle of a
// write, at a time that was wanted for an earlier one.
func TestAWriteGoesOnAfterADeadlineThatIsNoneAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far := piped(t)
		got := make(chan string, 1)
		go func() {
			var all [6]byte
			for i := range all {
				_, _ = far.Read(all[i : i+1])
				time.Sleep(3 * time.Second)
			}
			got <- string(all[:])
		}()
		for _, text := range []string{"a", "bcdef"} {
			must(t, c.SetWriteDeadline(time.Now().Add(20*time.Second)))
			if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
				t.Fatalf("%q: %d bytes, %v", text, n, err)
			}
			if text == "a" {
				time.Sleep(10 * time.Second) // the socket's deadline is in the middle of the next write
			}
		}
		ledgertest.Equal(t, <-got, "abcdef", "what the other end read")
	})
}

// TestANewOwnersDeadlinesReachTheSocketAtOnce sets one while a read waits, as who ends a
// WebSocket does.
func TestANewOwnersDeadlinesReachTheSocketAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := piped(t)
		c.TakeOver()
		ended := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		began := time.Now()
		must(t, c.SetReadDeadline(began))
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != 0 {
			t.Errorf("%v after %v, want a timeout at once", err, time.Since(began))
		}
	})
}
