package stream

import (
	"errors"
	"slices"

	"ledgerd/engine/ledger"
)

// maxSnapshot is how many accounts one snapshot may hold.
const maxSnapshot = 10_000

var errTooMany = errors.New("more than 10000 accounts: read them from GET /api/accounts/program/{program_id} instead")

// subscribeWithSnapshot subscribes and tells the named accounts as of the slot the
// subscription starts at, then exactly what was published after it.
//
// Emissions that come while the accounts are read are held; afterwards they are heard
// as the subscriber then wants. So whatever the reading ends with, nothing is lost,
// doubled, or changed by an error.
func (s *subscriber) subscribeWithSnapshot(pubkeys, programs []ledger.Pubkey, extended bool, id messageID) error {
	s.hub.mu.Lock()
	w, ok := s.widerLocked(pubkeys, programs, extended)
	head := s.hub.head
	s.holding = ok
	s.hub.mu.Unlock()
	if !ok {
		return nil
	}
	accounts, err := s.readSnapshot(head, pubkeys, programs)

	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	defer s.release()
	switch {
	case errors.Is(err, errTooMany):
		return err
	case errors.Is(err, ledger.ErrUnavailable):
		s.outbox.close(closing{code: closeTryAgain, text: "the snapshot cannot be read now, try again"})
		return nil
	case err != nil:
		s.hub.config.Logger.Error("cannot read a snapshot for a subscriber", "error", err)
		s.outbox.close(closing{code: closeInternal, text: "internal error"})
		return nil
	}
	s.changeLocked(w)
	s.tellSnapshot(head, accounts, id)
	return nil
}

// tellSnapshot says what was subscribed and how it stands at the head.
func (s *subscriber) tellSnapshot(head *ledger.Head, accounts []ledger.Account, id messageID) {
	var tip ledger.Tip
	if head != nil {
		tip = *head.Tip(s.level)
	}
	s.say(func(b []byte) []byte {
		b = appendCounts(appendReply(b, "subscribed", id), &s.wants)
		return append(appendPosition(append(b, ','), tip.Slot, tip.Seq), '}')
	})
	e := &emission{level: s.level, slot: tip.Slot, time: tip.Time, lastSeq: tip.Seq}
	for i := range accounts {
		e.updates = append(e.updates, ledger.Update{Account: accounts[i]})
		e.seqs = append(e.seqs, tip.Seq)
	}
	var p packer
	for i := range e.updates {
		p.open.data = e.appendUpdate(p.room(), s.wants.form(), i)
		p.count()
	}
	p.add(appendFrame(nil, func(b []byte) []byte {
		return append(appendPosition(append(appendReply(b, "snapshot_end", id), ','), tip.Slot, tip.Seq), '}')
	}))
	s.outbox.put(tip.Seq, p.finish()...)
}

// readSnapshot returns the live accounts among those named and among the programs'
// members, in pubkey order, each once.
func (s *subscriber) readSnapshot(head *ledger.Head, pubkeys, programs []ledger.Pubkey) ([]ledger.Account, error) {
	if head == nil || len(pubkeys)+len(programs) == 0 {
		return nil, nil
	}
	q := ledger.Query{Commitment: s.level, Head: head}
	accounts, _, err := s.hub.config.Ledger.Accounts(q, pubkeys)
	if err != nil {
		return nil, err
	}
	for _, program := range programs {
		members, more, _, err := s.hub.config.Ledger.Program(q, program, ledger.Opt[ledger.Pubkey]{}, maxSnapshot)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return nil, err
		}
		accounts = append(accounts, members...)
		if more || len(accounts) > maxSnapshot {
			return nil, errTooMany
		}
	}
	accounts = slices.DeleteFunc(accounts, func(a ledger.Account) bool { return !a.Exists() })
	slices.SortFunc(accounts, func(a, b ledger.Account) int { return a.Pubkey.Compare(&b.Pubkey) })
	return slices.CompactFunc(accounts, func(a, b ledger.Account) bool { return a.Pubkey == b.Pubkey }), nil
}
