package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/httpd/ratelimit"
)

// piped returns a Conn and the other end.
func piped(t *testing.T) (c *Conn, far net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return newConn(near, ratelimit.Peer{}, newCaps(&Config{}, new(Counts))), far
}

func giveByte(far net.Conn) { _, _ = far.Write([]byte("x")) }

// TestReadDeadlinesAreKeptAsTheyAreWanted moves deadlines to and fro before each wait: later than
// what the socket has, earlier, none.
func TestReadDeadlinesAreKeptAsTheyAreWanted(t *testing.T) {
	for name, set := range map[string]func(*Conn, time.Time) error{"read": (*Conn).SetReadDeadline, "both": (*Conn).SetDeadline} {
		synctest.Test(t, func(t *testing.T) {
			c, far := piped(t)
			read := func() error { _, err := c.Read(make([]byte, 1)); return err }
			for _, wait := range []time.Duration{5 * time.Second, 30 * time.Second, 10 * time.Second, time.Minute, time.Second} {
				// The socket has a later deadline from the time before.
				go giveByte(far)
				must(t, errors.Join(set(c, time.Now().Add(time.Hour)), read(), set(c, time.Now().Add(wait))))
				began := time.Now()
				if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) < wait || time.Since(began) > wait+slack {
					t.Errorf("%s: %v after %v, want a timeout after %v", name, err, time.Since(began), wait)
				}
			}
			must(t, set(c, time.Time{}))
			time.AfterFunc(24*time.Hour, func() { _ = far.Close() })
			began := time.Now()
			if err := read(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != 24*time.Hour {
				t.Errorf("%s: without a deadline: %v after %v", name, err, time.Since(began))
			}
		})
	}
}

// F35: a client has time for each piece of an answer: one that reads steadily gets it whole however long that takes, and one that
// reads less than a piece in its time sees the connection end before.
func TestEachPieceOfAnAnswerHasItsTime(t *testing.T) {
	for name, tt := range map[string]struct {
		answer, every int           // bytes, and of how many the client reads each time
		pause         time.Duration // after that
		whole         bool
	}{
		"at once":                        {20 * pieceBytes, 20 * pieceBytes, 0, true},
		"a piece in nearly its time":     {20 * pieceBytes, pieceBytes, 9 * time.Second, true},
		"in tiny steps":                  {3 * pieceBytes, 100, 10 * time.Millisecond, true},
		"a piece in more than that":      {20 * pieceBytes, pieceBytes, 11 * time.Second, false},
		"a byte a second":                {20 * pieceBytes, 1, time.Second, false},
		"less than a piece, in its time": {1000, 100, 500 * time.Millisecond, true},
		"less than a piece, too slowly":  {pieceBytes / 2, 2000, 2 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			for _, encrypted := range []bool{false, true} {
				c, far := piped(t)
				if encrypted {
					far = shakeHands(t, c, far)
				}
				received := make(chan int, 1)
				go func() {
					n := 0
					for read, err := 0, error(nil); err == nil; n += read {
						read, err = io.ReadFull(far, make([]byte, tt.every))
						time.Sleep(tt.pause)
					}
					received <- n
				}()
				time.Sleep(time.Hour) // as long as it was quiet
				n, err := c.Write(make([]byte, tt.answer))
				_ = c.Close()
				got := <-received
				if (err == nil) != tt.whole || tt.whole && (n != tt.answer || got != n) || !tt.whole && (!isTimeout(err) || got >= tt.answer) {
					t.Errorf("%s, encrypted %t: %d bytes are written and %d read, %v; whole: %t", name, encrypted, n, got, err, tt.whole)
				}
			}
		})
	}
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
