package stream

import "time"

// Every frame a client sends, pings and fragments too, takes from its budget.
const (
	budgetBurst     = 100
	budgetPerSecond = 20
)

// budget is a token bucket of one client. The reader alone uses it.
type budget struct {
	tokens float64
	filled time.Time
}

// take spends one token; false if there is none.
func (b *budget) take(now time.Time) bool {
	if b.filled.IsZero() {
		b.tokens += budgetBurst // less what was charged already
	} else {
		b.tokens = min(budgetBurst, b.tokens+now.Sub(b.filled).Seconds()*budgetPerSecond)
	}
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// charge spends tokens, perhaps more than there are.
func (b *budget) charge(tokens int) { b.tokens -= float64(tokens) }
