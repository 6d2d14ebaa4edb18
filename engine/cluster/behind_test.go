package cluster

import (
	"errors"
	"testing"
	"time"

	"ledgerd/engine/ledger/bubble"
)

// TestBehindIsSinceTheWholeLogWasHeld tells a node where the stream ended, and that it took what there was.
func TestBehindIsSinceTheWholeLogWasHeld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := newLog(&Cluster{})
		want := func(what string, want time.Duration) {
			t.Helper()
			if got := l.Behind(); got != want {
				t.Errorf("%s: behind by %v, want %v", what, got, want)
			}
		}
		time.Sleep(time.Minute)
		want("nothing is known", time.Minute)
		l.told(time.Now(), 10)
		time.Sleep(time.Second)
		l.told(time.Now(), 20) // later questions wait until the first is settled
		want("the stream has more", 61*time.Second)
		time.Sleep(time.Second)
		l.took(9)
		want("not all of it was taken", 62*time.Second)
		l.took(10)
		want("what there was two seconds ago was taken", 2*time.Second)
		l.told(time.Now(), 30)
		time.Sleep(time.Second)
		l.took(30)
		want("what there was a second ago was taken", time.Second)
		l.told(time.Now(), 30)
		want("there is no more", 0)
		l.told(time.Now().Add(-time.Second), 30)
		want("an older answer", 0)
	})
}

// TestShorterIsBelievedWhenItLasts answers with less than was taken.
func TestShorterIsBelievedWhenItLasts(t *testing.T) {
	l := newLog(&Cluster{})
	odd := 0
	var err error
	for range goneLooks - 1 {
		if odd, err = l.compare(time.Now(), 10, 9, odd); err != nil {
			t.Fatal(err)
		}
	}
	if odd, err = l.compare(time.Now(), 10, 10, odd); odd != 0 || err != nil {
		t.Fatalf("after an answer that fits: %d, %v", odd, err)
	}
	for range goneLooks {
		odd, err = l.compare(time.Now(), 10, 9, odd)
	}
	if !errors.Is(err, ErrShortened) {
		t.Fatalf("err = %v, want %v", err, ErrShortened)
	}
}
