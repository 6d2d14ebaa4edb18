package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// TestBehindIsSinceTheWholeLogWasHeld tells a node where the stream ended, and that it took what there was.
func TestBehindIsSinceTheWholeLogWasHeld(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l := newLog(&Cluster{})
		want := func(what string, want time.Duration) {
			t.Helper()
			ledgertest.Equal(t, l.Behind(), want, "%s: behind by", what)
		}
		time.Sleep(time.Minute)
		want("nothing is known", time.Minute)
		l.noteEnd(time.Now(), 10)
		time.Sleep(time.Second)
		l.noteEnd(time.Now(), 20) // this question is not settled before the first is
		want("the stream has more", 61*time.Second)
		time.Sleep(time.Second)
		l.noteTaken(9)
		want("not all of it was taken", 62*time.Second)
		l.noteTaken(10)
		want("what there was two seconds ago was taken", 2*time.Second)
		l.noteEnd(time.Now(), 30)
		time.Sleep(time.Second)
		l.noteTaken(29)
		want("not all of what was told then was taken", 3*time.Second)
		l.noteTaken(30)
		want("what there was a second ago was taken", time.Second)
		l.noteEnd(time.Now(), 30)
		want("there is no more", 0)
		l.noteEnd(time.Now().Add(-time.Second), 30)
		want("an older answer", 0)
	})
}

// F53: TestOddAnswersAreBelievedWhenTheyLast answers that the stream is gone, ends before what was taken, or begins after what comes next:
// for almost as long as is believed, then otherwise for a moment, and then again. It is never believed while messages come.
func TestOddAnswersAreBelievedWhenTheyLast(t *testing.T) {
	good := jetstream.StreamState{FirstSeq: 11, LastSeq: 10} // everything that was taken was purged
	type row struct {
		odd   *jetstream.StreamState // nil: there is none
		comes uint64                 // how many messages come between two answers
		want  error                  // nil: it is not believed
	}
	bubbletest.Each(t, map[string]row{
		"gone":          {nil, 0, ErrRecreated},
		"shortened":     {&jetstream.StreamState{FirstSeq: 1, LastSeq: 9}, 0, ErrShortened},
		"purged":        {&jetstream.StreamState{FirstSeq: 12, LastSeq: 20}, 0, ErrPurged},
		"messages come": {&jetstream.StreamState{FirstSeq: 1, LastSeq: 9}, 1, nil},
	}, func(t *testing.T, tt row) {
		c, begun := fakeNode(t, "n", nil), time.Now()
		c.ledgerID = "id"
		c.log.noteTaken(10)
		c.js = fakeBuckets{stream: &fakeStream{state: func() *jetstream.StreamState {
			c.log.noteTaken(c.log.lastTaken() + tt.comes)
			if since := time.Since(begun) - goneFor; since >= -time.Second && since < time.Second {
				return &good
			}
			return tt.odd
		}}}
		ctx, cancel := context.WithTimeout(t.Context(), 4*goneFor)
		defer cancel()
		err := c.watch(ctx, c.log)
		took := time.Since(begun)
		ledgertest.ErrorIs(t, err, tt.want, "what is believed")
		ledgertest.Holds(t, took >= 2*goneFor && (took <= 3*goneFor || err == nil), "it is believed after %v", took)
	})
	bubbletest.Test(t, func(t *testing.T) { // what was seen seldom is not believed
		var c confirmer
		for i := range goneLooks {
			ledgertest.Equal(t, c.persisted(goneFor), i == goneLooks-1, "what look %d is to believe", i)
			time.Sleep(goneFor)
		}
	})
	bubbletest.Test(t, func(t *testing.T) { // nor is what was seen, then no answer at all, and then again
		c, looks, unanswered := fakeNode(t, "n", nil), 0, time.Time{}
		err := c.Retry(t.Context(), "looking", func(context.Context) error {
			if looks++; looks == 8 {
				unanswered = time.Now()
				return context.DeadlineExceeded
			}
			return unlikely{ErrRecreated}
		})
		ledgertest.ErrorIs(t, err, ErrRecreated, "what is believed")
		if took := time.Since(unanswered); took < goneFor {
			t.Errorf("it is believed %v after there was no answer", took)
		}
	})
}

// TestMissingStreamIsMadeWhenItLasts looks for a stream that a server does not know of at first.
func TestMissingStreamIsMadeWhenItLasts(t *testing.T) {
	for _, known := range []string{"", "id"} {
		bubbletest.Test(t, func(t *testing.T) {
			c := fakeNode(t, "n", &fakeServer{})
			c.config.MayWrite, c.ledgerID = true, known
			begun := time.Now()
			_, _, err := c.bind(t.Context())
			took := time.Since(begun)
			switch {
			case known == "" && (!errors.Is(err, ErrUnsafe) || took < missingFor || took >= goneFor):
				t.Errorf("the stream is made after %v: %v", took, err)
			case known != "" && (!errors.Is(err, ErrRecreated) || took < goneFor):
				t.Errorf("the stream is believed to be gone after %v: %v", took, err)
			}
		})
	}
}

// fakeStream is a stream of claims that another server tells of than the one that is asked for them.
type fakeStream struct {
	jetstream.Stream
	state func() *jetstream.StreamState // nil: there is none
	known time.Time                     // when the server that is asked for messages learns of them
}

func (s *fakeStream) CachedInfo() *jetstream.StreamInfo {
	k := jetstream.StreamConfig{Metadata: map[string]string{idKey: "id", formatKey: streamFormat}, Storage: jetstream.FileStorage}
	return &jetstream.StreamInfo{Config: k, State: *s.state()}
}

// fakeMessage is the ninth of its stream.
type fakeMessage struct{ jetstream.Msg }

func (fakeMessage) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: jetstream.SequencePair{Stream: 9}}, nil
}

func (s *fakeStream) GetMsg(context.Context, uint64, ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	if time.Now().Before(s.known) {
		return nil, jetstream.ErrMsgNotFound
	}
	return &jetstream.RawStreamMsg{Data: encodeClaim(cursor{}, "other", [nonceBytes]byte{})}, nil
}

// F53: TestMissingMessageIsBelievedWhenItLasts receives message 9 where message 5 comes next, and asks a server for that which does not
// know it: for a while, or for ever.
func TestMissingMessageIsBelievedWhenItLasts(t *testing.T) {
	damage := &DamageError{}
	type row struct {
		known time.Duration
		first uint64 // of the stream
		want  func(err error) bool
	}
	bubbletest.Each(t, map[string]row{
		"the server learns of it late": {goneFor - 2*time.Second, 1, func(err error) bool { return err == nil }},
		"it was purged":                {time.Hour, 6, func(err error) bool { return errors.Is(err, ErrPurged) }},
		"it stays missing":             {time.Hour, 1, func(err error) bool { return errors.As(err, &damage) && damage.Sequence == 5 }},
	}, func(t *testing.T, tt row) {
		s := &fakeStream{
			state: func() *jetstream.StreamState { return &jetstream.StreamState{FirstSeq: tt.first, LastSeq: 9} },
			known: time.Now().Add(tt.known),
		}
		c := fakeNode(t, "n", nil)
		c.js = fakeBuckets{stream: s}
		f := &follower{log: c.log, stream: s, decoder: &decoder{at: cursor{sequence: 4}}}
		f.feed = &feed{messages: make(chan jetstream.Msg, 1), close: func() {}}
		f.feed.messages <- fakeMessage{}
		if _, err := f.step(t.Context()); !tt.want(err) || f.feed != nil {
			t.Errorf("err = %v, the feed is open: %t", err, f.feed != nil)
		}
	})
}

// F53: TestShortStreamIsBelievedWhenItLasts joins a stream of which a server knows one message, where the node holds four versions: for
// a while, or for ever.
func TestShortStreamIsBelievedWhenItLasts(t *testing.T) {
	for known, want := range map[time.Duration]error{goneFor - 2*time.Second: nil, time.Hour: ErrShortened} {
		bubbletest.Test(t, func(t *testing.T) {
			c, learns := fakeNode(t, "n", nil), time.Now().Add(known)
			c.js = fakeBuckets{stream: &fakeStream{state: func() *jetstream.StreamState {
				if time.Now().Before(learns) {
					return &jetstream.StreamState{FirstSeq: 1, LastSeq: 1}
				}
				return &jetstream.StreamState{FirstSeq: 1, LastSeq: 9}
			}}}
			f := &follower{log: c.log, from: ledger.LogPoint{Version: 4}, end: 1}
			f.decoder = decoderAt(t, f.from)
			_, err := f.take(t.Context(), 1, encodeClaim(cursor{}, "w", [nonceBytes]byte{}), time.Time{})
			ledgertest.ErrorIs(t, err, want, "known after %v", known)
		})
	}
}

func TestOnlyALeaderOfMostTellsOfAStream(t *testing.T) {
	peer := func(name string, active time.Duration) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Name: name, Active: active}
	}
	type peers = []*jetstream.PeerInfo
	for name, tt := range map[string]struct {
		cluster *jetstream.ClusterInfo
		want    error
	}{
		"one server, no cluster":        {nil, nil},
		"one copy in a cluster":         {&jetstream.ClusterInfo{Leader: "a"}, nil},
		"a leader that hears from all":  {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", time.Second), peer("c", time.Second)}}, nil},
		"a leader that hears from one":  {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", time.Second), peer("c", time.Hour)}}, nil},
		"a leader that was cut off":     {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", aliveWithin), peer("c", time.Hour)}}, errMinority},
		"a leader that never heard any": {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", 0), peer("c", 0)}}, errMinority},
		"the others are offline": {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{
			{Name: "b", Active: time.Second, Offline: true}, {Name: "c", Active: time.Second, Offline: true}}}, errMinority},
		"two of five":               {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", 1), peer("c", 0), peer("d", 0), peer("e", 0)}}, errMinority},
		"three of five":             {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", 1), peer("c", 1), peer("d", 0), peer("e", 0)}}, nil},
		"nobody leads":              {&jetstream.ClusterInfo{Replicas: peers{peer("a", time.Second), peer("b", time.Second), peer("c", time.Second)}}, errLeaderless},
		"one that follows a leader": {&jetstream.ClusterInfo{Leader: "b", Replicas: peers{peer("b", time.Second), peer("c", time.Second)}}, errLeaderless},
	} {
		ledgertest.ErrorIs(t, checkQuorumLeader(&jetstream.StreamInfo{Cluster: tt.cluster}), tt.want, "%s", name)
	}
}
