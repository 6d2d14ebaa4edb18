package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"ledgerd/bench/wsclient"
)

// witness is the life of one who asks over REST now and then, and holds the answer against what
// the stream says of the same account at the same slot.
func (m *member) witness(ctx context.Context) {
	c := m.join(ctx, "?extended=true", wsclient.Options{})
	if c == nil {
		return
	}
	const stay = 2 * time.Minute
	w := witness{member: m, answers: make(chan restAnswer, 1)}
	err := m.stay(ctx, c, m.about(stay), func(batch []byte, _ int) {
		wsclient.Each(batch, func(payload []byte) { w.hear(ctx, payload) })
	})
	if err != nil {
		m.soak.fault("a witness was thrown out: %v", err)
	}
	w.finish()
	m.leave(c)
}

// witness follows one account at a time: the states that the stream told since it was chosen.
type witness struct {
	*member
	key     string // the account; "" between questions
	told    []toldState
	answers chan restAnswer
	answer  *restAnswer
	next    time.Time // when to ask again
}

// toldState is the lamports of an account from a slot on.
type toldState struct{ slot, lamports uint64 }

// restAnswer is what REST said: the lamports at a slot.
type restAnswer struct {
	toldState
	failed error
}

// hear takes a frame.
func (w *witness) hear(ctx context.Context, payload []byte) {
	switch {
	case wsclient.IsUpdate(payload):
		key := updatedKey(payload)
		if now := time.Now(); w.key == "" && now.After(w.next) {
			w.key, w.told, w.answer = key, w.told[:0], nil
			w.next = now.Add(time.Second)
			go func() { w.answers <- w.soak.balance(ctx, key) }()
		}
		if key == w.key {
			slot, ok1 := numberAfter(payload, `,"slot":`)
			lamports, ok2 := numberAfter(payload, `,"lamports":`)
			if !ok1 || !ok2 {
				w.soak.fault("an update without slot or lamports: %.300q", payload)
			}
			w.told = append(w.told, toldState{slot, lamports})
		}
	case bytes.HasPrefix(payload, []byte(`{"type":"rollback"`)):
		// The answer may be of a slot that was undone: then no frame says any more what was there.
		w.finish()
	case bytes.HasPrefix(payload, []byte(`{"type":"slot_end"`)):
		if slot, ok := numberAfter(payload, `,"slot":`); ok && w.key != "" {
			w.compare(ctx, slot)
		}
	}
}

// finish ends a question, if there is one, without looking at the answer.
func (w *witness) finish() {
	if w.key != "" && w.answer == nil {
		<-w.answers
	}
	w.key = ""
}

// compare holds the answer against what was told, once the stream is complete up to its slot.
func (w *witness) compare(ctx context.Context, complete uint64) {
	if w.answer == nil {
		select {
		case a := <-w.answers:
			w.answer = &a
		default:
			return
		}
	}
	a := *w.answer
	switch {
	case ctx.Err() != nil:
	case a.failed != nil:
		w.soak.fault("%v", a.failed)
	case a.slot > complete:
		return
	default:
		if err := agrees(w.told, a.toldState); err != nil {
			w.soak.fault("account %s: %v", w.key, err)
		}
		w.soak.compared.Add(1)
	}
	w.key = ""
}

// agrees reports whether an answer is the newest state told up to its slot. One from before
// the first of them says nothing.
func agrees(told []toldState, answer toldState) error {
	var newest *toldState
	for i := range told {
		if told[i].slot <= answer.slot {
			newest = &told[i]
		}
	}
	if newest != nil && newest.lamports != answer.lamports {
		return fmt.Errorf("REST says %d lamports at slot %d, the stream told %v", answer.lamports, answer.slot, told)
	}
	return nil
}

// balance asks over REST for the lamports of an account.
func (s *soakRun) balance(ctx context.Context, key string) (a restAnswer) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.rest+"/account/"+key+"/balance", nil)
	if err != nil {
		return restAnswer{failed: err}
	}
	response, err := s.client.Do(request)
	if err != nil {
		return restAnswer{failed: fmt.Errorf("cannot ask for a balance: %w", err)}
	}
	defer response.Body.Close()
	var body struct{ Lamports uint64 }
	slot, err := strconv.ParseUint(response.Header.Get("X-Ledger-Slot"), 10, 64)
	if response.StatusCode == http.StatusNotFound && err == nil {
		return restAnswer{toldState: toldState{slot, 0}} // the stream tells a closed account so
	}
	if decoded := json.NewDecoder(response.Body).Decode(&body); decoded != nil || err != nil || response.StatusCode != http.StatusOK {
		return restAnswer{failed: fmt.Errorf("asked for a balance, was answered %d, slot %q: %w", response.StatusCode, response.Header.Get("X-Ledger-Slot"), decoded)}
	}
	return restAnswer{toldState: toldState{slot, body.Lamports}}
}
