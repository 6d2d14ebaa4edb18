package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ledgerd/bench/peer"
)

// liveTruth is what can be said of the answers of a server whose ledger is not known: they are of
// what was asked for.
type liveTruth struct {
	*Live
	*known
	fresh    bool
	programs []knownProgram // that are asked for
	page     int            // accounts of a list
}

func (t *liveTruth) key(index uint32) string { return t.keys[int(index)%len(t.keys)] }

func (t *liveTruth) signature(index uint32) string {
	return t.signatures[int(index)%len(t.signatures)]
}

func (t *liveTruth) program(index uint32) string { return t.programs[int(index)%len(t.programs)].id }

// adapt asks for something else where the server has nothing of the kind.
func (t *liveTruth) adapt(a restAsk) restAsk {
	if a.kind == askTransaction && len(t.signatures) == 0 || a.kind == askProgram && len(t.programs) == 0 {
		a.kind = askAccount
	}
	return a
}

// write appends the request for something.
func (t *liveTruth) write(dst []byte, a restAsk) []byte {
	var path string
	switch a = t.adapt(a); a.kind {
	case askMissing:
		path = "/account/" + keyOf(int(a.index)) // which nobody has: keys of our ledgers look random
	case askBalance:
		path = "/account/" + t.key(a.index) + "/balance"
	case askBatch:
		keys := make([]string, restBatch)
		for i := range keys {
			keys[i] = t.key(a.index + uint32(i))
		}
		path = "/accounts?keys=" + strings.Join(keys, ",")
	case askLatest:
		path = "/blocks/latest"
	case askTransaction:
		path = "/transaction/" + t.signature(a.index)
	case askProgram:
		path = fmt.Sprintf("/accounts/program/%s?limit=%d", t.program(a.index), t.page)
	default:
		path = "/account/" + t.key(a.index)
	}
	return peer.Get(dst, t.base.Host, t.base.Path+path, a.coding(), t.fresh)
}

// check says what is wrong with an answer. What is found may be gone a moment later, and a server
// that is busy may say so: such answers are counted.
func (t *liveTruth) check(a restAsk, status int, head, body []byte) error {
	a = t.adapt(a)
	switch {
	case a.kind == askMissing && status == 200:
		return fmt.Errorf("an account is found that nobody knows: %.200q", body)
	case status != 200:
		return nil
	case fieldValue(head, slotField) == nil:
		return fmt.Errorf("it names no slot: %.500q", head)
	}
	switch a.kind {
	case askAccount, askBalance:
		return begins(body, fmt.Sprintf(`{"pubkey":"%s","lamports":`, t.key(a.index)))
	case askBatch:
		return begins(body, `{"accounts":[`)
	case askLatest:
		return begins(body, `{"slot":`)
	case askTransaction:
		return begins(body, fmt.Sprintf(`{"signature":"%s",`, t.signature(a.index)))
	case askProgram:
		return begins(body, fmt.Sprintf(`{"program_id":"%s",`, t.program(a.index)))
	}
	return nil
}

// liveSubject is the server that runs already as it is asked.
func (r *restRun) liveSubject(ctx context.Context, name string) (*restSubject, *liveTruth, error) {
	l := r.env.Live
	found, err := l.learn(ctx)
	if err != nil {
		return nil, nil, err
	}
	r.env.Say("%s: the server tells of %d accounts, %d programs and %d transactions", r.result.Scenario, len(found.keys), len(found.programs), len(found.signatures))
	r.result.Notes = append(r.result.Notes, fmt.Sprintf("The server is one that runs: %s. %d accounts were learned from it, and are what is asked for.", l, len(found.keys)))
	switch {
	case l.coarse:
		r.result.Notes = append(r.result.Notes, "What a request costs the server is by its own count, in steps of 10 ms.")
	case l.cpu == nil:
		r.result.Notes = append(r.result.Notes, "What a request costs the server is not known: that takes --pid on its machine, or --ops-url.")
	}
	if found.limit > 0 {
		said := fmt.Sprintf("The server lets a client ask %d times in a window, of which %d are left; %s.", found.limit, found.left, exemptHint)
		r.env.Say("%s: %s", r.result.Scenario, said)
		r.result.Notes = append(r.result.Notes, said)
	}
	t := &liveTruth{Live: l, known: found, fresh: r.o.Fresh, programs: found.programs, page: restPage}
	s := &restSubject{name: name, address: l.address, write: t.write, check: t.check, cpu: l.cpu, stop: func() error { return nil }}
	r.prepare(s, len(found.keys))
	return s, t, nil
}

// mixedLive asks a server that runs at half of its greatest rate, first alone and then beside
// subscribers of everything. What is written to it meanwhile is its own affair.
func (r *restRun) mixedLive(ctx context.Context) error {
	s, _, kill, err := r.start(ctx, "alone")
	if err != nil {
		return err
	}
	defer kill()
	r.result.Notes = append(r.result.Notes, "What is written to the server meanwhile is its own affair. Alone and beside subscribers of everything are compared.")
	rate := r.o.Rate
	if rate == 0 {
		most, err := r.measure(ctx, s)
		if err != nil {
			return err
		}
		rate = mixedShare * most.perSecond()
	}
	run := *r
	run.o.Rate = rate
	for round := range r.env.Rounds {
		alone, err := run.measure(ctx, s)
		if err != nil {
			return err
		}
		alone.note(r.result.Row("alone"), rate)
		crowd, err := follow(ctx, r.env.Live.StreamURL(), r.env.Scaled(followSubscribers))
		if err != nil {
			return err
		}
		beside, err := run.measure(ctx, s)
		crowd.leave()
		if err = errors.Join(err, crowd.check()); err != nil {
			return err
		}
		name := fmt.Sprintf("beside %d subscribers", len(crowd.members))
		row := r.result.Row(name)
		beside.note(row, rate)
		row.Add("p99, of alone", "×", ratio(float64(beside.Latency.Quantile(0.99)), float64(alone.Latency.Quantile(0.99))))
		row.Add("frames meanwhile", "k", float64(crowd.frames.Load())/1e3)
		r.env.Say("mixed round %d: p99 %.2f ms alone, %.2f ms %s, at %.0f requests/s", round+1,
			r.result.Row("alone").last("p99"), row.last("p99"), name, rate)
		if round == 0 {
			r.result.Notes = append(r.result.Notes, crowd.notes()...)
		}
	}
	return s.stop()
}
