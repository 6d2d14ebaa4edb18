package bench

import (
	"context"
	"fmt"
)

// keyChoices are the ways of choosing accounts that are compared, the plain one first.
var keyChoices = []struct {
	subject string
	zipf    bool
	misses  float64
}{
	{"all equally often", false, 0},
	{"a few often (zipf)", true, 0},
	{"half do not exist", false, 0.5},
	{"none exists", false, 1},
}

// keys asks the same server for accounts that are chosen in one way after the other.
func (r *restRun) keys(ctx context.Context) error {
	s, accounts, kill, err := r.start(ctx, "ledgerd")
	if err != nil {
		return err
	}
	defer kill()
	subjects := make([]restSubject, len(keyChoices))
	for i, c := range keyChoices {
		run := *r
		run.o.Zipf, run.o.Misses = c.zipf, c.misses
		subjects[i] = *s
		run.prepare(&subjects[i], accounts)
	}
	for round := range r.env.Rounds {
		rates := make([]float64, len(keyChoices))
		for i := range subjects {
			i = (i + round) % len(subjects)
			m, err := r.measure(ctx, &subjects[i])
			if err != nil {
				return fmt.Errorf("%s: %w", keyChoices[i].subject, err)
			}
			rates[i] = m.perSecond()
			m.note(r.result.Row(keyChoices[i].subject), r.o.Rate)
			r.env.Say("keys round %d: %s: %.1f k/s at %s", round+1, keyChoices[i].subject, m.perSecond()/1e3, m.cost())
		}
		for i, c := range keyChoices[1:] {
			r.result.Row(c.subject).Add("requests, of all equally often", "×", ratio(rates[i+1], rates[0]))
		}
	}
	r.result.Notes = append(r.result.Notes, fmt.Sprintf("A few often: by Zipf's law with the exponent %v, of %d accounts.", restSkew, accounts))
	return s.stop()
}
