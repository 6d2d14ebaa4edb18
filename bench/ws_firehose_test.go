package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/bench/peer"
)

// At a scale of nothing every subject still tells every subscriber everything.
func TestFirehoseMeasuresLedgerdAndPeers(t *testing.T) {
	t.Parallel()
	f := &firehoseRun{
		env: &Env{
			Ledgerd: program(t, "ledgerd"), Dir: t.TempDir(), Rounds: 2, Duration: 50 * time.Millisecond,
			Scale: 3.0 / firehoseSubscribers, Peers: true, Progress: t.Output(),
		},
		self: []string{program(t, "ledgerbench"), "peer"},
	}
	result, err := f.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	subjects := map[string]*Row{}
	for i, row := range result.Rows {
		subjects[row.Subject] = &result.Rows[i]
		for _, figure := range row.Figures {
			if len(figure.Values) != 2 && row.Subject != "ledgerd" { // a peer that delivers nothing compares with nothing
				t.Errorf("%s: %s is %v, want two values", row.Subject, figure.Name, figure.Values)
			}
			if figure.Name == "subscribers who heard all" && figure.Median() != 3 {
				t.Errorf("%s: %v subscribers heard all, want 3", row.Subject, figure.Values)
			}
		}
	}
	for _, name := range []string{"ledgerd", "raw", "hub"} {
		if subjects[name] == nil {
			t.Errorf("%s was not measured; notes: %v", name, result.Notes)
		}
	}
	if subjects["nats"] == nil && (len(result.Notes) != 1 || !strings.Contains(result.Notes[0], "nats is left out: ")) {
		t.Errorf("nats is missing, and the notes are %q", result.Notes)
	}
	if len(result.Goals) == 0 {
		t.Error("there are no goals")
	}
}

// faulty is a broadcaster of one frame a batch that leaves some out, tells some twice or ends.
type faulty struct {
	tell  func(batch int) (frames int, err error)
	heard []chan int
	count int
}

func (f *faulty) BatchFrames() int { return 1 }
func (f *faulty) Pid() int         { return 1 }
func (f *faulty) Stop() error      { return nil }

func (f *faulty) Publish() error {
	f.count++
	for _, heard := range f.heard {
		heard <- f.count
	}
	return nil
}

func (f *faulty) Dial(context.Context) (peer.Subscriber, error) {
	heard := make(chan int, 1<<20)
	f.heard = append(f.heard, heard)
	return &faultySubscriber{f, heard, make(chan struct{})}, nil
}

type faultySubscriber struct {
	server *faulty
	heard  chan int
	closed chan struct{}
}

func (s *faultySubscriber) Close() error { close(s.closed); return nil }

func (s *faultySubscriber) Drain(visit func(bytes, frames int)) error {
	for {
		select {
		case batch := <-s.heard:
			frames, err := s.server.tell(batch)
			visit(100*frames, frames)
			if err != nil {
				return err
			}
		case <-s.closed:
			return errors.New("closed")
		}
	}
}

func TestFirehoseNoticesWhoDoesNotHearEverythingOnce(t *testing.T) {
	cut := errors.New("cut off")
	for name, tt := range map[string]struct {
		tell func(batch int) (int, error)
		want string // "": no error
	}{
		"all is well":     {func(int) (int, error) { return 1, nil }, ""},
		"one comes twice": {func(batch int) (int, error) { return 1 + batch/3%2, nil }, "has heard"},
		"one is dropped": {func(batch int) (int, error) {
			if batch == 3 {
				return 0, cut
			}
			return 1, nil
		}, "a subscriber was dropped after 2 of"},
	} {
		f := &firehoseRun{
			env:    &Env{Rounds: 1, Duration: time.Millisecond, Scale: 3.0 / firehoseSubscribers, Progress: t.Output()},
			result: &Result{},
		}
		_, err := f.measure(t.Context(), 0, "faulty", func(context.Context) (broadcaster, error) { return &faulty{tell: tt.tell}, nil })
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: err = %v, want %q", name, err, tt.want)
		case tt.want != "" && len(f.result.Rows) > 0:
			t.Errorf("%s: figures were noted all the same: %+v", name, f.result.Rows)
		}
	}
}

// stuck is a broadcaster that takes nothing.
type stuck struct {
	faulty
	ctx context.Context
}

func (s *stuck) Publish() error {
	<-s.ctx.Done()
	return s.ctx.Err()
}

func TestFirehoseGivesUpOnAServerThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &firehoseRun{
			env:    &Env{Rounds: 1, Duration: time.Second, Scale: 3.0 / firehoseSubscribers, Progress: t.Output()},
			result: &Result{},
		}
		_, err := f.measure(t.Context(), 0, "stuck", func(ctx context.Context) (broadcaster, error) { return &stuck{ctx: ctx}, nil })
		if err == nil || !strings.Contains(err.Error(), "has taken nothing") {
			t.Errorf("err = %v", err)
		}
	})
}
