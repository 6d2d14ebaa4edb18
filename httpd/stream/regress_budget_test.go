package stream

import (
	"testing"
	"time"
)

// What a client resumes with as it connects takes from its budget like what it resumes with later.
func TestAResumeOnConnectIsPaidFor(t *testing.T) {
	var b budget
	b.charge(budgetBurst)
	now := time.Now()
	if b.take(now) {
		t.Error("a frame is heard although all was spent before the first")
	}
	if !b.take(now.Add(time.Second)) {
		t.Error("no frame is heard a second later")
	}
}
