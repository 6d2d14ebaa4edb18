package listen

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/bench/dial"
	"ledgerd/engine/ledger/ledgertest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func textOf(seq, slot int) string {
	return fmt.Sprintf(`{"type":"account_update","pubkey":"11111111111111111111111111111111","lamports":%d,"timestamp":%q,"slot":%d,"seq":%d,"owner":"","executable":false,"commitment":"processed"}`,
		seq, time.Now().UTC().Format(time.RFC3339), slot, seq)
}

func endOf(slot, seq int) string {
	return fmt.Sprintf(`{"type":"slot_end","slot":%d,"seq":%d}`, slot, seq)
}

// faultyServer sends a ledger of slots with updates, of which it leaves some out, sends some twice, closes connections, and cannot
// resume some. It counts what it did.
type faultyServer struct {
	faults bool // of updates

	mu                               sync.Mutex
	random                           *rand.Rand
	sent, left, twice                int64
	closed, resumed, resyncs, passed int64
	reached                          map[string]bool // who has received the end, by address
}

const (
	slots   = 60
	perSlot = 7
)

// ServeHTTP sends what follows what the client has seen, until the end or the next close.
func (f *faultyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var upgrader websocket.Upgrader
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	f.mu.Lock()
	defer f.mu.Unlock()
	say := func(text string) { _ = conn.WriteMessage(websocket.TextMessage, []byte(text)) } // a client that is gone comes back
	seq, slot := 0, 0
	if from := r.FormValue("resume_from"); from != "" {
		seq, _ = strconv.Atoi(from)
		slot = seq / perSlot
		newest := min(slot+2, slots-4) * perSlot
		if f.random.IntN(3) == 0 && newest > seq {
			say(fmt.Sprintf(`{"type":"resync_required","id":null,"oldest_seq":%d,"newest_seq":%d}`, newest, newest))
			f.resyncs++
			f.passed += int64(newest - seq)
			seq, slot = newest, newest/perSlot
		} else {
			say(fmt.Sprintf(`{"type":"resumed","id":null,"from_seq":%d}`, seq))
			f.resumed++
		}
	}
	end := slots
	if f.random.IntN(4) > 0 {
		end = min(slots, slot+3+f.random.IntN(10))
	}
	for ; slot < end; slot++ {
		for n := max(seq, slot*perSlot) + 1; n <= (slot+1)*perSlot; n++ {
			switch {
			case f.faults && n > 1 && f.random.IntN(10) == 0:
				f.left++
				continue
			case f.faults && f.random.IntN(10) == 0:
				f.twice++
				f.sent++
				say(textOf(n, slot+1))
			}
			f.sent++
			say(textOf(n, slot+1))
		}
		seq = (slot + 1) * perSlot
		say(endOf(slot+1, seq))
	}
	if end == slots {
		f.reached[client] = true
		f.mu.Unlock()
		_, _, _ = conn.ReadMessage() // until the client goes
		f.mu.Lock()
		return
	}
	f.closed++
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4008, "slow consumer"), time.Now().Add(patience))
	_, _, _ = conn.ReadMessage() // the answer, after which nothing is lost
}

// Whatever a server leaves out, sends twice, closes and cannot resume: the counts are what it did.
func TestCountsAreWhatTheServerDid(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*faultyServer{"faults": {faults: true}, "no faults": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			f.random, f.reached = rand.New(rand.NewPCG(seed, 0)), make(map[string]bool)
			address := serveHTTP(t, f)
			const sockets = 4
			pool := Open(t.Context(), Config{
				Sockets: sockets, URL: address, CheckNumbers: true, Reconnect: true,
				Dial: dial.Dialer{From: dial.Loopback(sockets)},
			})
			defer pool.Close()
			for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
				f.mu.Lock()
				over := len(f.reached) == sockets && pool.Counts().Updates == f.sent
				f.mu.Unlock()
				if over || time.Now().After(until) {
					break
				}
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			got := pool.Counts()
			want := Counts{Updates: f.sent, Missing: f.left, Twice: f.twice, Resumed: f.resumed, Resyncs: f.resyncs, Passed: f.passed}
			if got.Updates != want.Updates || got.Missing != want.Missing || got.Twice != want.Twice || got.Resumed != want.Resumed ||
				got.Resyncs != want.Resyncs || got.Passed != want.Passed || got.Closes[4008] != f.closed || got.Connected != sockets {
				t.Errorf("seed %d: got %+v, want %+v, %d closes and %d connected", seed, got, want, f.closed, sockets)
			}
		})
	}
}

func serveHTTP(t *testing.T, h http.Handler) (address string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http") + "/api/ws/accounts"
}

// TestBookFollowsTheContract holds the rules of the contract for numbers, frame by frame.
func TestBookFollowsTheContract(t *testing.T) {
	ledgertest.Scenes(t, "testdata/*.txt", "# ", *update, func(t *testing.T, scene string) string {
		scene, _, _ = strings.Cut(scene, "\n= ")
		commitment, script := "", make(scripted, len(scene))
		for _, line := range strings.Split(scene, "\n")[1:] {
			var seq, slot int
			if of, found := strings.CutPrefix(line, "commitment "); found {
				commitment = of
			} else if n, _ := fmt.Sscanf(line, "update %d of slot %d", &seq, &slot); n == 2 {
				script <- textOf(seq, slot)
			} else {
				script <- line
			}
		}
		close(script)
		all := int64(len(script))
		pool := Open(t.Context(), Config{
			Sockets: 1, CheckNumbers: true, Connect: func() (Stream, error) { return script, nil },
			Query: func(int) url.Values { return url.Values{"commitment": {commitment}} },
		})
		must(t, pool.Await(t.Context(), func(int) int64 { return all }))
		pool.Close()
		n := pool.Counts()
		return fmt.Sprintf("# %s\n= %d missing, %d twice\n\n", scene, n.Missing, n.Twice)
	})
}

// scripted is a stream of frames that come through a channel.
type scripted chan string

func (s scripted) Close() error { return nil }

func (s scripted) Next() (Piece, error) {
	text, more := <-s
	if !more {
		return Piece{}, io.EOF
	}
	return Piece{[]byte(text), 1, len(text)}, nil
}

// Of frames of one length most subscribers count the bytes and a sample reads them: the counts are as if all did. Who only counts says
// by itself that it is there.
func TestSampleReadsFramesAndOthersCountBytes(t *testing.T) {
	t.Parallel()
	const sockets, sample, frames = 8, 4, 1000
	text := `{"type":"account_update","pubkey":"11111111111111111111111111111111","lamports":9,"timestamp":"2026-01-01T00:00:00Z"}`
	publish := make(chan struct{})
	var pongs atomic.Int64
	var serving sync.WaitGroup
	serving.Add(sockets)
	address := serve(t, func(conn *websocket.Conn) {
		defer serving.Done()
		conn.SetPongHandler(func(string) error { pongs.Add(1); return nil })
		<-publish
		for range frames {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(text)) // or the counts tell
		}
		_, _, _ = conn.ReadMessage() // until the client goes
	})
	pool, err := OpenAll(t.Context(), Config{
		Sockets: sockets, URL: address, FrameBytes: 2 + len(text),
	})
	must(t, err)
	close(publish)
	must(t, pool.Await(t.Context(), func(int) int64 { return frames }))
	pool.Close()
	serving.Wait()
	ledgertest.Equal(t, pongs.Load(), sockets-sample, "pongs, one of each that only counts")
	if n := pool.Counts(); n.Frames != sockets*frames || n.Bytes != n.Frames*int64(2+len(text)) {
		t.Errorf("%d frames in %d bytes", n.Frames, n.Bytes)
	}
}

func TestRefusedSubscribersAreCounted(t *testing.T) {
	t.Parallel()
	address := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error":"Rate limit exceeded","details":"too many"}`, http.StatusTooManyRequests)
	}))
	pool := Open(t.Context(), Config{Sockets: 3, URL: address})
	defer pool.Close()
	if n := pool.Counts(); n.Refused[429] != 3 || n.Connected != 0 || n.Why == nil || !strings.HasSuffix(n.Why.Error(), "refused with 429: too many") {
		t.Errorf("got %+v", n)
	}
	if _, err := OpenAll(t.Context(), Config{Sockets: 1, URL: address}); !errors.As(err, new(*RefusedError)) {
		t.Errorf("OpenAll: %v", err)
	}
}

// Where nobody is connected, the counts say why, as soon as they say that.
func TestWhoIsGoneIsCountedWithTheReason(t *testing.T) {
	t.Parallel()
	over := make(scripted)
	close(over)
	for range 5000 { // it is a matter of moments
		pool := Open(t.Context(), Config{Sockets: 1, Connect: func() (Stream, error) { return over, nil }})
		n := pool.Counts()
		pool.Close()
		ledgertest.MustHold(t, n.Connected == 1 || n.Why != nil, "nobody is connected, and there is no reason")
	}
}

// What comes before the answer to a resume message comes again after it.
func TestBookWaitsForTheAnswerToAResume(t *testing.T) {
	t.Parallel()
	b := book{whole: true, seq: 5, behind: true}
	b.update(8)
	b.take(&message{Type: "heartbeat", Seq: 8})
	b.end(slotEnd{9, 8})
	b.take(&message{Type: "resumed", FromSeq: 5})
	for seq := range uint64(3) {
		b.update(6 + seq)
	}
	if b.updates != 3 || b.missing != 0 || b.twice != 0 || b.seq != 8 {
		t.Errorf("got %+v", b)
	}
}
